import assert from "node:assert/strict";
import { test } from "node:test";
import { Follower } from "../src/chat/follower";
import type { AgentEvent, ChatState } from "../src/chat/protocol";

const chunk = (text: string): AgentEvent => ({ type: "assistantChunk", promptId: "p", content: { type: "text", text } });
const event = (sequence: number, text: string, epoch = "e") => ({ epoch, sequence, event: chunk(text) });
const state = (sequence: number, ...texts: string[]): ChatState => ({
  agents: [],
  agent: null,
  phase: "connected",
  writes: "review",
  epoch: "e",
  sequence,
  events: texts.map(chunk),
});
const text = (follower: Follower) => follower.shown.items.map((item) => (item.kind === "answer" ? item.text : "")).join("");

function following(...texts: string[]): Follower {
  const follower = new Follower();
  follower.startFetch();
  assert.ok(follower.applyState(state(texts.length, ...texts)));
  return follower;
}

test("events after the state are applied once", () => {
  const follower = following("a");
  assert.equal(follower.apply(event(2, "b")), "applied");
  assert.equal(follower.apply(event(2, "b")), "known");
  assert.equal(text(follower), "ab");
});

test("gap is detected and closed without doubling", () => {
  const follower = following("a");
  assert.equal(follower.apply(event(3, "c")), "gap");
  follower.startFetch();
  assert.equal(follower.apply(event(4, "d")), "early");
  assert.ok(follower.applyState(state(3, "a", "b", "c")));
  assert.equal(text(follower), "abcd");
});

test("events contained in the state are skipped", () => {
  const follower = following();
  follower.startFetch();
  follower.apply(event(1, "a"));
  follower.apply(event(2, "b"));
  follower.apply(event(3, "c"));
  assert.ok(follower.applyState(state(2, "a", "b")));
  assert.equal(text(follower), "abc");
});

test("another epoch causes a fetch", () => {
  const follower = following("a");
  assert.equal(follower.apply(event(2, "b", "other")), "gap");
  follower.startFetch();
  follower.apply(event(1, "x", "third"));
  assert.equal(follower.applyState(state(0)), false, "the held event is from another log");
});

test("failed fetch keeps the transcript and the next event retries", () => {
  const follower = following("a");
  follower.startFetch();
  follower.apply(event(2, "b"));
  follower.fetchFailed();
  assert.equal(text(follower), "a");
  assert.equal(follower.apply(event(3, "c")), "gap");
});
