// The editor's text and the draft stay the same text, and what was not edited stays the same bytes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toText } from "../../../web/src/draft";
import { ShownText } from "../src/text";
import { Document } from "./editor";
import { numbers, randomText } from "./random";

function edited(draft: string, start: [number, number], end: [number, number], text: string): string {
  const at = ([line, character]: [number, number]) => ({ line, character });
  return new ShownText(draft).edit([{ start: at(start), end: at(end), text }]).next.draft;
}

test("an edit behind a byte order mark is not off by one", () => {
  assert.equal(edited("\ufeffone\r\ntwo", [0, 3], [0, 3], "!"), "\ufeffone!\r\ntwo");
});

test("deleting everything keeps the byte order mark", () => {
  assert.equal(edited("\ufeffone\ntwo\n", [0, 0], [2, 0], ""), "\ufeff");
});

test("untouched line endings of a mixed file are kept", () => {
  assert.equal(edited("a\r\nb\nc\rd", [1, 1], [1, 1], "B"), "a\r\nbB\nc\rd");
});

test("an inserted line break is like the one of its line", () => {
  assert.equal(edited("a\r\nb\nc", [0, 1], [0, 1], "\nx"), "a\r\nx\r\nb\nc");
  assert.equal(edited("a\r\nb\nc", [1, 1], [1, 1], "\r\nx"), "a\r\nb\nx\nc");
});

test("an inserted line break in the last line is like the one above", () => {
  assert.equal(edited("a\r\nb", [1, 1], [1, 1], "\n"), "a\r\nb\r\n");
});

test("a lone carriage return and a newline do not become one line break", () => {
  assert.equal(edited("a\rb\nc", [1, 0], [1, 1], ""), "a\n\nc");
});

test("a missing final newline stays missing", () => {
  assert.equal(edited("a\nb", [0, 0], [0, 1], "A"), "A\nb");
});

test("NUL is an ordinary character", () => {
  assert.equal(edited("a\0b\n", [0, 2], [0, 2], "x"), "a\0xb\n");
});

test("several edits at once are each for the text before them", () => {
  const shown = new ShownText("\ufeffone\r\ntwo\r\nthree");
  const at = (line: number, character: number) => ({ line, character });
  const changes = [
    { start: at(2, 0), end: at(2, 5), text: "3" },
    { start: at(0, 0), end: at(0, 3), text: "1\n1" },
  ];
  assert.equal(shown.edit(changes).next.draft, "\ufeff1\r\n1\r\ntwo\r\n3");
});

test("positions and offsets are inverse", () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const random = numbers(seed);
    const draft = randomText(random, 12);
    const shown = new ShownText(draft);
    const document = new Document(shown.content);
    assert.equal(document.text, shown.lines, JSON.stringify(draft));
    const position = document.randomPosition(random);
    assert.deepEqual(shown.positionAt(shown.offsetAt(position)), position, JSON.stringify(draft));
  }
});

test("edits keep the editor and the draft the same text, and untouched lines the same bytes", () => {
  for (let seed = 0; seed < 3000; seed += 1) {
    const random = numbers(seed);
    let shown = new ShownText(randomText(random, 12));
    const document = new Document(shown.content);
    for (let step = 0; step < 8; step += 1) {
      const before = shown;
      const edit = document.randomEdit(random);
      document.apply(edit);
      const { changes, next } = shown.edit([edit]);
      const where = `seed ${seed}, step ${step}: ${JSON.stringify([before.draft, edit, next.draft])}`;
      assert.equal(next.lines, document.text, where);
      assert.equal(changes.apply(toText(before.draft)).toString(), next.draft, where);
      // A carriage return right above may have become a newline, so that it does not merge with one.
      const above = before.draft.slice(0, before.offsetAt({ line: edit.start.line, character: 0 }));
      const below = before.draft.slice(before.offsetAt(edit.end));
      assert.ok(next.draft.startsWith(above) || next.draft.startsWith(above.replace(/\r$/, "\n")), where);
      assert.ok(next.draft.endsWith(below), where);
      shown = next;
    }
  }
});

test("a replacement turns one text into the other", () => {
  for (let seed = 0; seed < 1000; seed += 1) {
    const random = numbers(seed);
    const [before, after] = [new ShownText(randomText(random, 10)), new ShownText(randomText(random, 10))];
    const document = new Document(before.content);
    const edit = before.replacement(after);
    if (edit) document.apply(edit);
    assert.equal(document.text, after.lines, `seed ${seed}`);
  }
});

test("a replacement does not split a surrogate pair", () => {
  const edit = new ShownText("\u{1f600}").replacement(new ShownText("\u{1f601}"));
  assert.deepEqual(edit, { start: { line: 0, character: 0 }, end: { line: 0, character: 2 }, text: "\u{1f601}" });
});
