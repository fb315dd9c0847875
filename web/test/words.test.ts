import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "@codemirror/merge";
import { Text } from "@codemirror/state";
import type { PlacedHunk } from "../src/editor/hunks";
import { wordChanges } from "../src/editor/words";

function changesOf(before: string, after: string): readonly Change[] {
  const lines = (text: string) => ({ start: 1, count: text.split("\n").length });
  const placed: PlacedHunk = {
    hunk: { id: 1, state: "accepted", base: lines(before), proposal: lines(after), draft: lines(after), yours: false },
    base: { from: 0, to: before.length },
    draft: { from: 0, to: after.length },
  };
  return wordChanges(placed, Text.of(before.split("\n")), Text.of(after.split("\n")));
}

/** The marked words of both sides. */
function marked(before: string, after: string): [string[], string[]] {
  const changes = changesOf(before, after);
  return [
    changes.map(({ fromA, toA }) => before.slice(fromA, toA)).filter(Boolean),
    changes.map(({ fromB, toB }) => after.slice(fromB, toB)).filter(Boolean),
  ];
}

test("words with a common ending are marked whole", () => {
  assert.deepEqual(marked("    pub first_wait: Duration,", "    pub first_wait: Span,"), [["Duration"], ["Span"]]);
});

test("words with a common beginning are marked whole", () => {
  assert.deepEqual(marked("let value = load(path);", "let value = loaded(path);"), [["load"], ["loaded"]]);
  assert.deepEqual(marked("wait for retry_after first", "wait for retry_before first"), [["retry_after"], ["retry_before"]]);
});

test("two changes in one word are one mark", () => {
  assert.deepEqual(marked("call the xaaaaaaaaaax function now", "call the yaaaaaaaaaay function now"), [
    ["xaaaaaaaaaax"],
    ["yaaaaaaaaaay"],
  ]);
});

test("changes next to a word leave it unmarked", () => {
  assert.deepEqual(marked("return first + second;", "return (first) + second;"), [[], ["(", ")"]]);
  assert.deepEqual(marked("return first;", "return first + 1;"), [[], [" + 1"]]);
});

test("letters outside of ASCII and surrogate pairs are not split", () => {
  assert.deepEqual(marked("der Satz über Größe hier", "der Satz über Größen hier"), [["Größe"], ["Größen"]]);
  assert.deepEqual(marked("a sign \u{1f600} here", "a sign \u{1f601} here"), [["\u{1f600}"], ["\u{1f601}"]]);
});

test("text outside of the marks is the same on both sides", () => {
  const pieces = ["one", "two", " ", "_", "(", ")", "\n", "é", "\u{1f600}", "longer words in between stay the same"];
  let state = 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
  for (let round = 0; round < 2000; round++) {
    const before = Array.from({ length: 12 }, () => pieces[random(pieces.length)]);
    const after = before.map((piece) => (random(4) === 0 ? pieces[random(pieces.length)] : piece));
    const [one, other] = [before.join(""), after.join("")];
    if (changesOf(one, other).length === 0) continue;
    let unmarked = ["", ""];
    let at = [0, 0];
    for (const { fromA, toA, fromB, toB } of changesOf(one, other)) {
      assert.ok(fromA >= (at[0] as number) && fromB >= (at[1] as number), "marks overlap");
      unmarked = [unmarked[0] + one.slice(at[0], fromA), unmarked[1] + other.slice(at[1], fromB)];
      at = [toA, toB];
    }
    assert.equal(unmarked[0] + one.slice(at[0]), unmarked[1] + other.slice(at[1]));
  }
});
