import assert from "node:assert/strict";
import { test } from "node:test";
import { Follower } from "../src/chat/follower";
import type { AgentEvent, ChatState } from "../src/chat/protocol";

const chunk = (text: string): AgentEvent => ({ type: "assistantChunk", promptId: "p", content: { type: "text", text } });
const news = (sequence: number, text: string, epoch = "e") => ({ epoch, sequence, event: chunk(text) });
const state = (sequence: number, ...texts: string[]): ChatState => ({
  agents: [],
  agent: null,
  phase: "connected",
  writes: "review",
  epoch: "e",
  sequence,
  events: texts.map(chunk),
});
const words = (follower: Follower) => follower.shown.items.map((item) => (item.kind === "answer" ? item.text : "")).join("");

function following(...texts: string[]): Follower {
  const follower = new Follower();
  follower.ask();
  assert.ok(follower.whole(state(texts.length, ...texts)));
  return follower;
}

test("news follow the whole, each once", () => {
  const follower = following("a");
  assert.equal(follower.take(news(2, "b")), "taken");
  assert.equal(follower.take(news(2, "b")), "known");
  assert.equal(words(follower), "ab");
});

test("a gap is noticed and the whole closes it without doubling a word", () => {
  const follower = following("a");
  assert.equal(follower.take(news(3, "c")), "gap");
  follower.ask();
  assert.equal(follower.take(news(4, "d")), "early");
  assert.ok(follower.whole(state(3, "a", "b", "c")));
  assert.equal(words(follower), "abcd");
});

test("news that the whole has already are not taken again", () => {
  const follower = following();
  follower.ask();
  follower.take(news(1, "a"));
  follower.take(news(2, "b"));
  follower.take(news(3, "c"));
  assert.ok(follower.whole(state(2, "a", "b")));
  assert.equal(words(follower), "abc");
});

test("another epoch means to forget and ask", () => {
  const follower = following("a");
  assert.equal(follower.take(news(2, "b", "other")), "gap");
  follower.ask();
  follower.take(news(1, "x", "third"));
  assert.equal(follower.whole(state(0)), false, "what came meanwhile is of another log");
});

test("after an attempt that failed what is shown stays, and the next news ask for everything", () => {
  const follower = following("a");
  follower.ask();
  follower.take(news(2, "b"));
  follower.failed();
  assert.equal(words(follower), "a");
  assert.equal(follower.take(news(3, "c")), "gap");
});
