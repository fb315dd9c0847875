// The companion's tests read the same recordings: what it keeps of a conversation is shown like the whole.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { AgentEvent } from "../src/chat/protocol";
import { EMPTY, foldAll, type Item, openApprovals } from "../src/chat/transcript";

// The tests run in the folder of the page.
const FOLDER = join("..", "crates", "alongside-companion", "tests", "logs");

interface Recording {
  readonly about: string;
  readonly events: readonly AgentEvent[];
  readonly log: readonly AgentEvent[];
  readonly shown: unknown;
}

function said(item: Item): string {
  if (item.kind === "user" || item.kind === "answer") return `${item.kind} ${item.text}`;
  return item.kind === "tool" ? `tool ${item.call.id}` : item.kind;
}

function summary(events: readonly AgentEvent[]): unknown {
  const shown = foldAll(EMPTY, events);
  return {
    said: shown.items.map(said),
    running: shown.turn !== null,
    approvals: openApprovals(shown).map(({ request }) => request.requestId),
    queue: shown.queue.map(({ promptId }) => promptId),
    over: shown.over !== null,
    interrupted: shown.interrupted !== null,
  };
}

const names = readdirSync(FOLDER);
assert.notEqual(names.length, 0);

for (const name of names) {
  const recording = JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Recording;
  test(`recorded log: ${recording.about}`, () => {
    assert.deepEqual(summary(recording.events), recording.shown, "the events");
    assert.deepEqual(summary(recording.log), recording.shown, "what the companion keeps of them");
  });
}
