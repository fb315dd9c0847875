import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEvent, PermissionRequest, ToolCall } from "../src/chat/protocol";
import { EMPTY, fold, foldAll, openApprovals } from "../src/chat/transcript";

const text = (words: string) => ({ type: "text", text: words }) as const;
const chunk = (words: string, promptId: string | null = "p"): AgentEvent => ({ type: "assistantChunk", promptId, content: text(words) });
const call = (more: Partial<ToolCall> = {}): ToolCall => ({
  id: "c",
  title: "Edit",
  kind: "edit",
  status: "pending",
  toolName: null,
  input: null,
  output: null,
  locations: [],
  content: [],
  ...more,
});
const request = (more: Partial<PermissionRequest> = {}): PermissionRequest => ({
  requestId: "r",
  promptId: "p",
  toolCall: call(),
  options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
  questions: [],
  ...more,
});
const sent = (words: string, promptId = "p"): AgentEvent => ({ type: "promptAccepted", promptId, text: words });

test("chunks join into one answer until another item comes", () => {
  const shown = foldAll(EMPTY, [sent("hi"), chunk("He"), chunk("llo"), { type: "toolCall", promptId: "p", call: call() }, chunk("Done")]);
  assert.deepEqual(
    shown.items.map((item) => (item.kind === "answer" ? item.text : item.kind)),
    ["user", "Hello", "tool", "Done"],
  );
});

test("unchanged item stays the same object", () => {
  const before = foldAll(EMPTY, [sent("hi"), chunk("a")]);
  const after = fold(before, chunk("b"));
  assert.equal(after.items[0], before.items[0]);
  assert.notEqual(after.items[1], before.items[1]);
  assert.deepEqual(before.items[1], { kind: "answer", promptId: "p", text: "a" });
});

test("thinking is separate and empty chunks are ignored", () => {
  const shown = foldAll(EMPTY, [{ type: "thinkingChunk", promptId: "p", content: text("hm") }, chunk(""), chunk("yes")]);
  assert.deepEqual(
    shown.items.map((item) => item.kind),
    ["thinking", "answer"],
  );
});

test("tool call update keeps fields it does not have", () => {
  const content = [{ type: "diff", path: "/a", oldText: "", newText: "x" }] as const;
  const shown = foldAll(EMPTY, [
    { type: "toolCall", promptId: null, call: call({ content, locations: [{ path: "/a", line: 1 }] }) },
    { type: "toolCall", promptId: null, call: call({ status: "completed", title: "" }) },
  ]);
  const item = shown.items[0];
  assert.ok(item?.kind === "tool" && shown.items.length === 1);
  assert.deepEqual([item.call.status, item.call.title, item.call.content, item.call.locations.length], ["completed", "Edit", content, 1]);
});

test("approval belongs to its tool call and keeps its first outcome", () => {
  const opened = foldAll(EMPTY, [
    { type: "toolCall", promptId: "p", call: call({ status: "pending" }) },
    { type: "approvalOpened", request: request() },
  ]);
  assert.equal(opened.items.length, 1);
  assert.equal(openApprovals(opened).length, 1);
  const closed = fold(opened, { type: "approvalClosed", requestId: "r", optionId: "yes", own: false });
  assert.equal(openApprovals(closed).length, 0);
  const item = closed.items[0];
  assert.deepEqual(item?.kind === "tool" && item.approval?.closed, { optionId: "yes", own: false });
  const again = fold(closed, { type: "approvalClosed", requestId: "r", optionId: null, own: true }).items[0];
  assert.deepEqual(again?.kind === "tool" && again.approval?.closed, { optionId: "yes", own: false }, "the first outcome stays");
});

test("approval without a tool call adds one, and only once", () => {
  const shown = foldAll(EMPTY, [
    { type: "approvalOpened", request: request() },
    { type: "approvalOpened", request: request() },
  ]);
  assert.equal(shown.items.length, 1);
  assert.equal(openApprovals(shown).length, 1);
});

test("queued prompt returns to the conversation when its turn starts", () => {
  const waiting = foldAll(EMPTY, [
    sent("one", "1"),
    { type: "turnStarted", promptId: "1" },
    sent("two", "2"),
    { type: "promptQueued", promptId: "2", text: "two" },
    chunk("answer", "1"),
  ]);
  assert.deepEqual(
    waiting.items.map((item) => item.kind),
    ["user", "answer"],
  );
  assert.deepEqual(
    waiting.queue.map((waits) => waits.text),
    ["two"],
  );
  const begun = foldAll(waiting, [
    { type: "turnEnded", promptId: "1", end: { outcome: "completed", stopReason: "end_turn" } },
    { type: "promptUnqueued", promptId: "2", removed: false },
    { type: "turnStarted", promptId: "2" },
  ]);
  assert.deepEqual(
    begun.items.map((item) => (item.kind === "user" ? item.text : item.kind)),
    ["one", "answer", "two"],
  );
  assert.equal(begun.turn?.promptId, "2");
  assert.equal(fold(waiting, { type: "promptUnqueued", promptId: "2", removed: true }).items.length, 2);
});

test("prompt queued elsewhere is shown once when its turn starts", () => {
  const shown = foldAll(EMPTY, [
    { type: "promptQueued", promptId: "2", text: "two" },
    { type: "promptUnqueued", promptId: "2", removed: false },
    { type: "turnStarted", promptId: "2" },
    { type: "userMessage", promptId: "2", content: text("two") },
  ]);
  assert.deepEqual(shown.items, [{ kind: "user", promptId: "2", text: "two", others: [], own: false, midTurn: false }]);
});

test("cancelled and failed turns add a notice, completed ones do not", () => {
  const running = foldAll(EMPTY, [sent("hi"), { type: "turnStarted", promptId: "p" }, chunk("a")]);
  const cancelling = fold(running, { type: "cancelRequested", promptId: "p" });
  assert.equal(cancelling.turn?.cancelling, true);
  const ends = (end: Extract<AgentEvent, { type: "turnEnded" }>["end"]) => fold(cancelling, { type: "turnEnded", promptId: "p", end });
  assert.equal(ends({ outcome: "completed", stopReason: "end_turn" }).items.length, 2);
  assert.deepEqual(ends({ outcome: "completed", stopReason: "cancelled" }).items.at(-1), {
    kind: "notice",
    level: "information",
    message: "Cancelled. Send a message to continue.",
  });
  assert.deepEqual(ends({ outcome: "failed", message: "Overloaded", code: null }).items.at(-1), {
    kind: "notice",
    level: "problem",
    message: "Overloaded. Send your message again to retry.",
  });
});

test("history replaces the items, a new connection nothing", () => {
  const shown = foldAll(EMPTY, [
    sent("old"),
    { type: "models", current: "m", available: [] },
    { type: "approvalOpened", request: request() },
  ]);
  const replayed = foldAll(shown, [
    { type: "historyStart", reason: "loaded" },
    { type: "userMessage", promptId: null, content: text("ol") },
    { type: "userMessage", promptId: null, content: text("der") },
    { type: "historyEnd" },
  ]);
  assert.deepEqual(replayed.items, [{ kind: "user", promptId: null, text: "older", others: [], own: true, midTurn: false }]);
  assert.equal(replayed.models.current, "m");
  const abilities = {
    listSessions: false,
    loadSessions: false,
    renameSessions: false,
    switchModels: false,
    switchModes: false,
    images: false,
    shared: false,
    reviewsWrites: false,
  };
  const fresh = fold(replayed, {
    type: "connected",
    sessionId: "s",
    agent: "A",
    attached: false,
    workspace: "/w",
    abilities,
    locality: { where: "child" },
  });
  assert.deepEqual([fresh.items, fresh.models.current, fresh.session?.agent], [replayed.items, "m", "A"]);
});

test("ended session closes approvals and can be reopened", () => {
  const shown = foldAll(EMPTY, [
    { type: "turnStarted", promptId: "p" },
    { type: "approvalOpened", request: request() },
    { type: "interrupted", reason: "cut", retryInMilliseconds: 100 },
    { type: "disconnected", kind: "died", reason: "It died", reopen: "s" },
  ]);
  assert.equal(openApprovals(shown).length, 0);
  assert.deepEqual([shown.turn, shown.interrupted, shown.over], [null, null, { kind: "died", reason: "It died", reopen: "s" }]);
});

test("unknown events and blocks are shown", () => {
  const shown = fold(EMPTY, { type: "hologram" } as unknown as AgentEvent);
  assert.ok(shown.items[0]?.kind === "notice" && shown.items[0].level === "unsupported" && shown.items[0].message.includes("hologram"));
  const block = fold(EMPTY, { type: "assistantChunk", promptId: null, content: { type: "hologram" } });
  assert.equal(block.items[0]?.kind, "block");
});

test("request whose daemon was killed expires", () => {
  const asked = foldAll(EMPTY, [
    sent("write"),
    { type: "turnStarted", promptId: "p" },
    { type: "toolCall", promptId: "p", call: call() },
    { type: "approvalOpened", request: request() },
  ]);
  const history: AgentEvent[] = [
    { type: "historyStart", reason: "session_reopened" },
    sent("write"),
    { type: "toolCall", promptId: "p", call: call() },
    { type: "historyEnd" },
  ];
  const after = foldAll(asked, history);
  const card = after.items.find((item) => item.kind === "tool");
  assert.ok(card?.kind === "tool");
  assert.deepEqual([card.call.status, card.approval?.closed], ["stopped", "expired"]);
  assert.equal(openApprovals(after).length, 0);
  const reloaded = foldAll(EMPTY, history).items.find((item) => item.kind === "tool");
  assert.equal(reloaded?.kind === "tool" && reloaded.call.status, "stopped", "a page that never saw the request says the same");
  const again = fold(after, { type: "approvalOpened", request: request({ requestId: "r2" }) });
  assert.equal(openApprovals(again).length, 1, "a new request can be answered");
});

test("request of a turn that ended expires", () => {
  const shown = foldAll(EMPTY, [
    { type: "turnStarted", promptId: "p" },
    { type: "approvalOpened", request: request() },
    { type: "turnEnded", promptId: "p", end: { outcome: "failed", message: "x", code: null } },
  ]);
  assert.equal(openApprovals(shown).length, 0);
});
