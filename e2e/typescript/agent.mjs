// An agent made of the official TypeScript SDK, driven line by line by `cargo xtask faults`. Unlike client.mjs, it outlives its
// connection: it reconnects as the SDK does, its event stream can be cut, and it can start another session.
//
// Usage: node agent.mjs SDK NAME VERSION
//
// It reads `{"id": 1, "do": "connect", "url": …, "token": …}`, `{"id": 2, "do": "call", "name": …, "arguments": …}`,
// `{"id": 3, "do": "cut"}` and `{"id": 4, "do": "leave"}`, and answers each with `{"id": …, "result": …}`,
// `{"id": …, "refused": "…"}` (the server's own error) or `{"id": …, "lost": "…"}` (no response). It also writes
// `{"event": "listening" | "deaf" | "gave-up"}` and `{"event": "notification", "session": …, "method": …, "params": …}`.
import { createInterface } from 'node:readline';

const [sdk, name, version] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { McpError, ResultSchema } = await import(`${sdk}/types.js`);

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

let client;
let transport;
let cut = () => {};

// The SDK's own `fetch`, with a handle on the body of the event stream.
async function cuttable(url, init) {
  const response = await fetch(url, init);
  if (init?.method !== 'GET' || !response.ok || !response.body) return response;
  const { readable, writable } = new TransformStream();
  const broken = new AbortController();
  cut = () => broken.abort();
  say({ event: 'listening' });
  response.body.pipeTo(writable, { signal: broken.signal }).then(
    () => say({ event: 'deaf' }),
    () => say({ event: 'deaf' }),
  );
  return new Response(readable, { status: response.status, headers: response.headers });
}

const actions = {
  async connect({ url, token }) {
    const previous = client;
    const own = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
      fetch: cuttable,
    });
    const next = new Client({ name, version });
    next.fallbackNotificationHandler = async ({ method, params }) =>
      say({ event: 'notification', session: own.sessionId, method, params });
    next.onerror = (error) => {
      if (String(error).includes('Maximum reconnection attempts')) say({ event: 'gave-up' });
    };
    await next.connect(own);
    [client, transport] = [next, own];
    await previous?.close();
    return { session: own.sessionId };
  },
  call: ({ name, arguments: values }) =>
    client.request({ method: 'tools/call', params: { name, arguments: values } }, ResultSchema.passthrough()),
  async cut() {
    cut();
    return {};
  },
  async leave() {
    await transport.terminateSession();
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, do: action, ...details } = JSON.parse(line);
  // Not awaited: a call may take longer than the next order.
  actions[action](details).then(
    (result) => say({ id, result }),
    (error) => {
      // Negative codes are JSON-RPC errors of the server; -32000 and -32001 are the SDK's own, for a lost connection.
      const refused = error instanceof McpError && error.code !== -32000 && error.code !== -32001;
      say({ id, [refused || error?.code >= 400 ? 'refused' : 'lost']: String(error) });
    },
  );
}
process.exit(0);
