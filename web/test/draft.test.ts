// Drafts edited concurrently, with a companion that responds late and out of order, converge to the same text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeSet, type Text } from "@codemirror/state";
import { Draft, fromWire, toText, toWire } from "../src/draft";
import type { WireChange } from "../src/protocol";

/** Deterministic random numbers. */
function numbers(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

const PIECES = ["a", "bc\n", "\r\n", "\n\n", "\ufeff", "\u{1f600}", "word ", ""];

function randomChange(random: (below: number) => number, length: number): ChangeSet {
  const from = random(length + 1);
  const to = Math.min(length, from + random(4));
  return ChangeSet.of({ from, to, insert: toText(PIECES[random(PIECES.length)] as string) }, length);
}

class Companion {
  version = 1;
  readonly log: { version: number; changes: readonly WireChange[] }[] = [];

  constructor(public text: Text) {}

  change(version: number, changes: readonly WireChange[]): number | null {
    if (version !== this.version) return null;
    this.text = fromWire(changes, this.text.length).apply(this.text);
    this.version += 1;
    this.log.push({ version: this.version, changes });
    return this.version;
  }
}

class Front {
  readonly draft: Draft;
  shown: Text;
  private read = 0;

  constructor(private readonly companion: Companion) {
    this.draft = new Draft(companion.version, companion.text);
    this.shown = companion.text;
    this.read = companion.log.length;
  }

  type(change: ChangeSet): void {
    this.shown = change.apply(this.shown);
    this.draft.edit(change);
  }

  /** Sends, and receives what happened before the response. */
  send(): void {
    const batch = this.draft.take();
    if (!batch) return;
    const version = this.companion.change(batch.version, batch.changes);
    if (version === null) this.draft.refused();
    else this.draft.arrived(version);
    this.receive(Infinity);
  }

  receive(most: number): void {
    for (; most > 0 && this.read < this.companion.log.length; most--, this.read++) {
      const note = this.companion.log[this.read] as (typeof this.companion.log)[number];
      if (note.version <= this.draft.version) continue;
      assert.equal(note.version, this.draft.version + 1);
      this.shown = this.draft.receive(note.version, fromWire(note.changes, this.draft.confirmed.length)).apply(this.shown);
    }
  }

  /** Reconnects; whether the last batch arrived is unknown to the draft. */
  reconnect(sent: boolean): void {
    const batch = this.draft.take();
    if (batch && sent) this.companion.change(batch.version, batch.changes);
    this.read = this.companion.log.length;
    this.shown = this.draft.catchUp(this.companion.version, this.companion.text.toString()).apply(this.shown);
  }
}

test("concurrent drafts converge", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const random = numbers(seed);
    const companion = new Companion(toText("one\r\ntwo\nthree \u{1f600}\n"));
    const fronts = [new Front(companion), new Front(companion), new Front(companion)];
    for (let step = 0; step < 40; step++) {
      const front = fronts[random(3)] as Front;
      const what = random(4);
      if (what <= 1) front.type(randomChange(random, front.shown.length));
      else if (what === 2) front.receive(random(3));
      else front.send();
      assert.ok(front.draft.text.eq(front.shown), `seed ${seed}: the editor and the draft differ`);
    }
    for (let round = 0; round < 4; round++) {
      for (const front of fronts) {
        front.receive(Infinity);
        front.send();
      }
    }
    for (const front of fronts) front.receive(Infinity);
    for (const front of fronts) {
      assert.equal(front.draft.isAhead, false);
      assert.equal(front.shown.toString(), companion.text.toString(), `seed ${seed}`);
    }
  }
});

test("offline edits are neither lost nor doubled", () => {
  for (const arrived of [true, false]) {
    for (const others of [true, false]) {
      const companion = new Companion(toText("first line\nsecond line\nthird line\n"));
      const front = new Front(companion);
      front.type(ChangeSet.of({ from: 0, insert: "typed before " }, front.shown.length));
      if (others) companion.change(companion.version, [{ from: 23, to: 23, insert: "another client\n" }]);
      front.reconnect(arrived && !others);
      front.type(ChangeSet.of({ from: front.shown.length, insert: "typed after" }, front.shown.length));
      front.send();
      const text = companion.text.toString();
      assert.equal(text, front.shown.toString());
      assert.equal(text.split("typed before ").length, 2, text);
      assert.equal(text.split("typed after").length, 2, text);
      assert.equal(text.includes("another client"), others);
    }
  }
});

test("acknowledged edit is not sent again after a concurrent edit", () => {
  const companion = new Companion(toText("first line\nsecond line\n"));
  const front = new Front(companion);
  front.type(ChangeSet.of({ from: 0, insert: "a longer piece of typed text " }, front.shown.length));
  const batch = front.draft.take();
  assert.ok(batch);
  companion.change(batch.version, batch.changes);
  companion.change(companion.version, [{ from: companion.text.length, to: companion.text.length, insert: "x" }]);
  front.shown = front.draft.catchUp(companion.version, companion.text.toString()).apply(front.shown);
  assert.equal(front.draft.isAhead, false);
  assert.equal(front.shown.toString(), companion.text.toString());
});

test("wire offsets include line endings and byte order marks", () => {
  const text = toText("\ufeffa\r\nb\rc\n");
  assert.equal(text.toString(), "\ufeffa\r\nb\rc\n");
  assert.equal(text.length, 9 - 1);
  const wire = toWire(ChangeSet.of({ from: 4, to: 4, insert: toText("x\r\n") }, text.length));
  assert.deepEqual(wire, [{ from: 4, to: 4, insert: "x\r\n" }]);
  assert.equal(fromWire(wire, text.length).apply(text).toString(), "\ufeffa\r\nx\r\nb\rc\n");
});
