// A client made of the official TypeScript SDK, driven line by line.
//
// Usage: node client.mjs SDK URL TOKEN NAME VERSION
//
// SDK is the package to use (the SDK is installed at the versions that the command lines pin). NAME and VERSION are what it
// calls itself. It reads requests as JSON lines, `{"method": …, "params": …}`, and writes what happens as JSON lines:
// `{"event": "connected" | "result" | "error" | "notification" | "transport-error", …}`. All the thinking is in the test.
import { createInterface } from 'node:readline';

const [sdk, url, token, name, version] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { ResultSchema } = await import(`${sdk}/types.js`);

const say = (event, details) => process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);

const client = new Client({ name, version });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
client.fallbackNotificationHandler = async ({ method, params }) => say('notification', { method, params });
client.onerror = (error) => say('transport-error', { message: String(error) });

try {
  await client.connect(transport);
} catch (error) {
  say('error', { message: String(error) });
  process.exit(1);
}
say('connected', {
  session: transport.sessionId,
  protocol: transport.protocolVersion,
  server: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
});

for await (const line of createInterface({ input: process.stdin })) {
  try {
    say('result', { result: await client.request(JSON.parse(line), ResultSchema.passthrough()) });
  } catch (error) {
    say('error', { message: String(error) });
  }
}
process.exit(0);
