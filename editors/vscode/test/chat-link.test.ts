import assert from "node:assert/strict";
import { test } from "node:test";
import type { EditorState } from "../../../web/src/webview-messages";
import { chatHtml, policy } from "../src/chat/html";
import { ChatLink, FORWARDED } from "../src/chat/link";
import type { Message, Requester } from "../src/protocol";

const TOKEN = 'a "quoted" token of the daemon';
const STATE: EditorState = { companion: "running", run: 1, folders: ["/w"], reviews: [{ id: 1, path: "/w/a", session: "chat-1" }] };

/** A link to a companion that responds with `respond`, and everything that it sends to the webview. */
function start(respond: (method: string, params: unknown) => unknown = () => ({})) {
  const sent: Message[] = [];
  const requests: unknown[] = [];
  const done: string[] = [];
  const companion = {
    async request(method: string, params: unknown) {
      requests.push({ method, params });
      return respond(method, params);
    },
  } as unknown as Requester;
  const link = new ChatLink(companion, (message) => sent.push(message), {
    state: () => STATE,
    openReview: ({ review }) => done.push(`open ${review}`),
    waiting: (count) => done.push(`waiting ${count}`),
    startCompanion: () => done.push("start"),
    token: () => TOKEN,
    log: () => undefined,
  });
  return { link, sent, requests, done };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("nothing is sent before the webview is ready or after it was hidden", () => {
  const { link, sent } = start();
  link.stateChanged();
  link.forward("resync", {});
  assert.deepEqual(sent, []);
  link.receive({ method: "view/ready", params: {} });
  assert.deepEqual(sent, [{ method: "editor/state", params: STATE }]);
  link.hidden();
  link.forward("resync", {});
  assert.equal(sent.length, 1);
});

test("requests reach the companion and are answered by their id", async () => {
  const { link, sent, requests } = start((method) => {
    if (method === "chat/connect") throw Object.assign(new Error("cannot connect"), { kind: "agentFailed", hint: "Try again." });
    return { epoch: "e" };
  });
  link.receive({ method: "view/ready", params: {} });
  link.receive({ id: 7, method: "chat/state", params: {} });
  link.receive({ id: 8, method: "chat/connect", params: { agent: "daemon" } });
  await settled();
  assert.deepEqual(requests, [
    { method: "chat/state", params: {} },
    { method: "chat/connect", params: { agent: "daemon" } },
  ]);
  assert.deepEqual(sent.slice(1), [
    { id: 7, result: { epoch: "e" } },
    { id: 8, error: { message: "cannot connect", data: { kind: "agentFailed", hint: "Try again." } } },
  ]);
});

test("a message that is not on the list has no effect", async () => {
  const { link, sent, requests, done } = start();
  link.receive({ method: "view/ready", params: {} });
  for (const method of ["stop", "page/link", "review/accept", "terminal/environment"])
    link.receive({ id: 1, method, params: { review: 1 } });
  await settled();
  assert.deepEqual([requests, done, sent.length], [[], [], 1]);
});

test("the editor opens reviews, counts requests and starts the companion", () => {
  const { link, done } = start();
  link.receive({ method: "view/openReview", params: { review: 4 } });
  link.receive({ method: "view/waiting", params: { count: 2 } });
  link.receive({ method: "view/startCompanion" });
  assert.deepEqual(done, ["open 4", "waiting 2", "start"]);
});

test("only the chat's notifications are forwarded", () => {
  assert.deepEqual([...FORWARDED], ["chat/event", "chat/changed", "resync"]);
});

test("the daemon's token never reaches the webview", async () => {
  const { link, sent } = start(() => {
    throw Object.assign(new Error(`refused: Bearer ${TOKEN}`), { kind: "agentFailed", hint: TOKEN });
  });
  link.receive({ method: "view/ready", params: {} });
  const event = { type: "notice", level: "warning", message: `401 for ${TOKEN}` } as const;
  link.forward("chat/event", { epoch: "e", sequence: 1, event });
  link.forward("chat/event", { epoch: "e", sequence: 2, event: { ...event, ...{ [TOKEN]: [{ deep: TOKEN }] } } });
  link.receive({ id: 1, method: "chat/connect", params: { agent: "daemon" } });
  await settled();
  assert.equal(sent.length, 4);
  const bytes = JSON.stringify(sent);
  assert.ok(!bytes.includes(JSON.stringify(TOKEN).slice(1, -1)), bytes);
  assert.match(bytes, /401 for \[hidden\]/);
});

test("the document allows its own script and nothing from the network", () => {
  const chat = { source: "https://files", script: "https://files/chat.js", styles: "https://files/chat.css", nonce: "n0nce" };
  assert.equal(
    policy(chat),
    "default-src 'none'; script-src 'nonce-n0nce'; style-src https://files 'nonce-n0nce'; img-src data:; base-uri 'none'; form-action 'none'",
  );
  const html = chatHtml(chat);
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.match(html, /<script nonce="n0nce" src="https:\/\/files\/chat.js">/);
  assert.doesNotMatch(html, /unsafe|\son[a-z]+=/);
});
