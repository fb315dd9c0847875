// An editor that applies edits late, a user who types in between, and another front end: all end with the companion's text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fromWire, toText } from "../../../web/src/draft";
import { type DraftEditor, EditedDraft } from "../src/drafts";
import type { Hunk, Requester, ReviewTexts } from "../src/protocol";
import { type Replacement, ShownText } from "../src/text";
import { Document } from "./editor";
import { numbers, type Random, randomText } from "./random";

interface Change {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** A model of the companion's draft: refuses changes for another version and notifies every front end. */
class Companion implements Requester {
  version = 1;
  notify: (note: Parameters<EditedDraft["edited"]>[0]) => void = () => undefined;

  constructor(public text: string) {}

  change(version: number, changes: readonly Change[]): number | null {
    if (version !== this.version) return null;
    this.text = fromWire(changes, this.text.length).apply(toText(this.text)).toString();
    this.version += 1;
    const note = { review: 1, version: this.version, changes, hunks: { at: 0, removed: 0, now: [], shift: 0 } };
    queueMicrotask(() => this.notify(note));
    return this.version;
  }

  texts(): ReviewTexts {
    const hunks: Hunk[] = [];
    return { id: 1, version: this.version, draft: this.text, hunks, notes: [], base: "", proposal: "" } as unknown as ReviewTexts;
  }

  request: Requester["request"] = async (method, ...[params]) => {
    await Promise.resolve();
    if (method === "review/get") return this.texts() as never;
    assert.equal(method, "review/change");
    const { version, changes } = params as unknown as { version: number; changes: readonly Change[] };
    const now = this.change(version, changes);
    if (now === null) throw Object.assign(new Error("stale"), { kind: "stale" });
    return { version: now } as never;
  };
}

/** The editor: applies an edit a moment later, and only if the document has not changed since. */
class Editor implements DraftEditor {
  readonly document: Document;

  constructor(private readonly draft: EditedDraft) {
    this.document = new Document(draft.content);
    draft.attach(this, draft.content);
  }

  type(edit: Replacement): void {
    this.document.apply(edit);
    this.draft.editorChanged([edit]);
  }

  async replace(edit: Replacement): Promise<boolean> {
    const { version } = this.document;
    await pause(1);
    if (this.document.version !== version) return false;
    this.type(edit);
    return true;
  }
}

function open(text: string): { companion: Companion; draft: EditedDraft; editor: Editor } {
  const companion = new Companion(text);
  const observer = {
    changed: () => undefined,
    failed: (error: Error) => assert.fail(error),
  };
  const draft = new EditedDraft(companion, companion.texts(), observer);
  companion.notify = (note) => draft.edited(note);
  return { companion, draft, editor: new Editor(draft) };
}

function randomRemoteChange(random: Random, length: number): Change[] {
  const from = random(length + 1);
  return [{ from, to: Math.min(length, from + random(4)), insert: randomText(random, 2) }];
}

/** Waits until nothing is on its way. */
async function settle({ draft, companion, editor }: ReturnType<typeof open>): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    await draft.flush();
    await pause(5);
    if (isSame({ companion, editor })) return;
  }
}

/** Whether the editor shows the companion's text. A byte order mark that the user typed at the start is visible until the next opening. */
function isSame({ companion, editor }: { companion: Companion; editor: Editor }): boolean {
  return new ShownText(companion.text).lines === editor.document.text.replace(/^\ufeff+/, "");
}

test("typing reaches the companion and leaves every other byte alone", async () => {
  const review = open("\ufeffone\r\ntwo\nthree\rfour");
  review.editor.type({ start: { line: 1, character: 3 }, end: { line: 1, character: 3 }, text: "!" });
  await review.draft.flush();
  assert.equal(review.companion.text, "\ufeffone\r\ntwo!\nthree\rfour");
});

test("undo in a file with mixed line endings restores it byte for byte", async () => {
  const text = "one\r\ntwo\nthree\r\nfour\n";
  const review = open(text);
  review.editor.type({ start: { line: 0, character: 0 }, end: { line: 3, character: 0 }, text: "" });
  await review.draft.flush();
  assert.equal(review.companion.text, "four\n");
  review.editor.type({ start: { line: 0, character: 0 }, end: { line: 0, character: 0 }, text: "one\ntwo\nthree\n" });
  await review.draft.flush();
  assert.equal(review.companion.text, text);
});

test("a change of line endings alone changes nothing in the editor", async () => {
  const review = open("a\r\nb\r\n");
  review.companion.change(1, [{ from: 1, to: 2, insert: "" }]);
  await settle(review);
  assert.equal(review.editor.document.version, 1);
  review.editor.type({ start: { line: 1, character: 1 }, end: { line: 1, character: 1 }, text: "B" });
  await review.draft.flush();
  assert.equal(review.companion.text, "a\nbB\r\n");
});

test("the text that the editor opened late is brought up to date", async () => {
  const review = open("one\n");
  review.draft.detach();
  const { content } = review.draft;
  review.companion.change(1, [{ from: 0, to: 3, insert: "1\n2" }]);
  await pause(1);
  review.draft.attach(review.editor, content);
  await settle(review);
  assert.equal(review.editor.document.text, "1\n2\n");
});

test("a hunk's line follows what the user typed above it", () => {
  const companion = new Companion("a\nb\nc\n");
  const hunk = { id: 0, state: "accepted", yours: false, draft: { start: 2, count: 1 } } as unknown as Hunk;
  const draft = new EditedDraft(companion, { ...companion.texts(), hunks: [hunk] }, { changed: () => undefined, failed: assert.fail });
  assert.deepEqual(draft.linesOf(hunk), { first: 1, end: 2 });
  const editor = new Editor(draft);
  editor.type({ start: { line: 0, character: 0 }, end: { line: 0, character: 0 }, text: "x\ny\n" });
  assert.deepEqual(draft.linesOf(hunk), { first: 3, end: 4 });
  assert.equal(draft.hunkAt(3), hunk);
  assert.equal(draft.hunkAt(2), undefined);
  draft.close();
});

test("user, other front ends and a slow editor converge", { timeout: 120_000 }, async () => {
  const seeds = Array.from({ length: 150 }, (_, seed) => seed);
  await Promise.all(
    seeds.map(async (seed) => {
      const random = numbers(seed);
      const review = open(randomText(random, 15));
      for (let step = 0; step < 25; step += 1) {
        const { companion, editor } = review;
        if (random(3) > 0) editor.type(editor.document.randomEdit(random));
        else companion.change(companion.version, randomRemoteChange(random, companion.text.length));
        if (random(3) === 0) await pause(random(4));
      }
      await settle(review);
      assert.ok(isSame(review), `seed ${seed}: ${JSON.stringify([review.editor.document.text, review.companion.text])}`);
      review.draft.close();
    }),
  );
});
