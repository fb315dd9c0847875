import assert from "node:assert/strict";
import { test } from "node:test";
import { checkMessage } from "../src/chat/messages";

const command = (fields: object) => ({ id: 1, method: "chat/command", params: { command: fields } });
const text = (length: number) => "x".repeat(length);
const file = (data: string) => ({ type: "file", name: "a.png", mimeType: "image/png", data });

const ALLOWED: readonly object[] = [
  { method: "view/ready", params: {} },
  { method: "view/openReview", params: {} },
  { method: "view/openReview", params: { review: 3 } },
  { method: "view/waiting", params: { count: 2 } },
  { method: "view/startCompanion", params: {} },
  { id: 1, method: "chat/state", params: {} },
  { id: 1, method: "chat/connect", params: { agent: "qwen" } },
  { id: 1, method: "chat/disconnect", params: {} },
  { id: 1, method: "chat/writes", params: { writes: "allow" } },
  { id: 1, method: "context/show", params: {} },
  { id: 1, method: "diff", params: { base: "a\n", proposal: "b\n" } },
  command({ type: "prompt", blocks: [{ type: "text", text: "Hello" }, file("aGk=")] }),
  command({ type: "midTurn", blocks: [{ type: "text", text: "Hello" }] }),
  command({ type: "rewind", turn: 0 }),
  command({ type: "readAttachment", name: "a.png" }),
  command({ type: "cancel" }),
  command({ type: "answer", requestId: "r", decision: { decision: "select", optionId: "once" } }),
  command({ type: "answer", requestId: "r", decision: { decision: "select", optionId: "once", answers: { "0": "blue" } } }),
  command({ type: "answer", requestId: "r", decision: { decision: "cancel" } }),
  command({ type: "removeQueued", promptId: "p" }),
  command({ type: "setModel", modelId: "m" }),
  command({ type: "setMode", modeId: "m" }),
  command({ type: "listSessions" }),
  command({ type: "listSessions", cursor: "c" }),
  command({ type: "newSession" }),
  command({ type: "loadSession", sessionId: "s" }),
  command({ type: "rename", title: "t" }),
  command({ type: "findFiles", pattern: "**/*a*" }),
];

const REFUSED: readonly unknown[] = [
  undefined,
  null,
  "chat/state",
  [],
  {},
  { id: 1 },
  // Requests of the protocol that are not the chat's.
  ...["hello", "status", "stop", "leaving", "page/link", "page/file", "terminal/environment", "review/list", "review/accept"].map(
    (method) => ({
      id: 1,
      method,
      params: { review: 1 },
    }),
  ),
  { id: 1, method: "review/acceptAll", params: { session: "s" } },
  { id: 1, method: "hook/review", params: { agent: "qwen", session: "s", files: [] } },
  { id: 1, method: "file/open", params: { path: "/etc/passwd" } },
  { id: 1, method: "context/buffer", params: { path: "/w/a", text: "" } },
  // Names that every object has.
  { id: 1, method: "constructor", params: {} },
  { id: 1, method: "__proto__", params: {} },
  command({ type: "toString" }),
  // A request without an id, and a notification with one.
  { method: "chat/state", params: {} },
  { id: 1, method: "view/ready", params: {} },
  { id: -1, method: "chat/state", params: {} },
  { id: "1", method: "chat/state", params: {} },
  { id: 1, method: "chat/state", params: [] },
  // Wrong shapes.
  { id: 1, method: "chat/connect", params: {} },
  { id: 1, method: "chat/connect", params: { agent: ["qwen"] } },
  { id: 1, method: "chat/writes", params: { writes: "never" } },
  { id: 1, method: "diff", params: { base: null, proposal: "b" } },
  { method: "view/waiting", params: { count: "many" } },
  { method: "view/openReview", params: { review: "1" } },
  { id: 1, method: "chat/command", params: {} },
  command({ type: "unknown" }),
  command({}),
  command({ type: "prompt" }),
  command({ type: "prompt", blocks: [] }),
  command({ type: "prompt", blocks: ["Hello"] }),
  command({ type: "prompt", blocks: [{ type: "resource_link", name: "a", uri: "file:///etc/passwd" }] }),
  command({ type: "prompt", blocks: [{ type: "text" }] }),
  command({ type: "rewind", turn: 1.5 }),
  command({ type: "rewind", turn: -1 }),
  command({ type: "answer", requestId: "r", decision: { decision: "select" } }),
  command({ type: "answer", requestId: "r", decision: { decision: "always", optionId: "o" } }),
  command({ type: "answer", requestId: "r", decision: { decision: "select", optionId: "o", answers: { "0": 1 } } }),
  command({ type: "loadSession", sessionId: { $ne: "" } }),
  // Too large.
  { id: 1, method: "chat/connect", params: { agent: text(4097) } },
  command({ type: "rename", title: text(4097) }),
  command({ type: "findFiles", pattern: text(4097) }),
  command({ type: "prompt", blocks: [{ type: "text", text: text(4 * 1024 * 1024 + 1) }] }),
  command({ type: "prompt", blocks: [file(text(12 * 1024 * 1024))] }),
  command({ type: "prompt", blocks: Array.from({ length: 5 }, () => file(text(11 * 1024 * 1024))) }),
  command({ type: "prompt", blocks: Array.from({ length: 65 }, () => ({ type: "text", text: "" })) }),
];

test("each message of the chat passes unchanged", () => {
  for (const message of ALLOWED) assert.deepEqual(checkMessage(message), message);
});

test("everything else is dropped", () => {
  for (const message of REFUSED) assert.equal(checkMessage(message), undefined, JSON.stringify(message)?.slice(0, 200));
});

test("unknown fields are removed", () => {
  const sent = { id: 1, jsonrpc: "2.0", method: "chat/connect", params: { agent: "qwen", ifIdle: true, url: "http://x" }, more: 1 };
  assert.deepEqual(checkMessage(sent), { id: 1, method: "chat/connect", params: { agent: "qwen" } });
  const block = { type: "text", text: "Hello", uri: "file:///etc/passwd" };
  assert.deepEqual(
    checkMessage(command({ type: "prompt", blocks: [block], id: "x" })),
    command({ type: "prompt", blocks: [{ type: "text", text: "Hello" }] }),
  );
});
