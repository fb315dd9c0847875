// The draft of an open review: keeps the editor's text and the companion's the same.
//
// The page's `DraftLink` exchanges changes with the companion. Changes from there reach the editor a moment later, because VS
// Code applies edits asynchronously, and the user may type in between. So there are two more layers: changes that the editor
// was asked to make, and changes that come after those. The user's edits are rebased over both.

import { ChangeSet } from "@codemirror/state";
import { Draft, toText } from "../../../web/src/draft";
import { DraftLink } from "../../../web/src/draft-link";
import type { Hunk, HunkAction, Requester, ReviewTexts } from "./protocol";
import { difference, type Position, type Replacement, ShownText } from "./text";

/** Texts before an edit that are kept to undo it byte for byte. */
const MAX_REMEMBERED = 50;
const MAX_REMEMBERED_CHARS = 4_000_000;
/** Before an edit that the editor refused is tried again, in milliseconds. */
const RETRY_DELAY = 30;

export interface DraftEditor {
  /** Applies an edit, unless the text has changed since. */
  replace(edit: Replacement): Promise<boolean>;
}

export interface DraftObserver {
  /** Hunks or their positions have changed. */
  changed(): void;
  failed(error: Error): void;
}

export class EditedDraft {
  private shown: ShownText;
  private hunkList: readonly Hunk[];
  private readonly draft: Draft;
  private readonly link: DraftLink;
  private editor: DraftEditor | null = null;
  /** Changes that the editor was asked to make, and the text with them; null if the user typed first, upon which it refuses. */
  private applying: { changes: ChangeSet; target: ShownText | null } | null = null;
  /** Changes to make in the editor after that. */
  private waiting: ChangeSet | null = null;
  /** Where line endings differ, undo needs the text as it was: an editor does not have them. */
  private remembered: ShownText[] = [];
  private lastEdit = 0;
  private isClosed = false;

  constructor(
    connection: Requester,
    review: ReviewTexts,
    private readonly observer: DraftObserver,
  ) {
    this.shown = new ShownText(review.draft);
    this.hunkList = review.hunks;
    this.draft = new Draft(review.version, toText(review.draft));
    this.link = new DraftLink(connection, review.id, this.draft, review.hunks, {
      changed: (changes, hunks) => this.receive(changes, hunks),
      ahead: () => undefined,
      failed: (error) => observer.failed(error),
    });
  }

  get hunks(): readonly Hunk[] {
    return this.hunkList;
  }

  /** The text for the editor. */
  get content(): string {
    return this.shown.content;
  }

  /** The editor has opened the text. */
  attach(editor: DraftEditor, content: string): void {
    this.editor = editor;
    const actual = new ShownText(content, 0);
    const edit = actual.replacement(this.shown);
    if (!edit) return;
    // It changed while the editor was opening it.
    const target = this.shown;
    this.shown = actual;
    this.waiting = replaceAll(actual.draft, target.draft);
    this.pump();
  }

  detach(): void {
    this.editor = null;
    this.giveBack();
    this.pump();
  }

  close(): void {
    this.isClosed = true;
    this.link.close();
  }

  /** The editor's text has changed, by the user or by `DraftEditor.replace`. */
  editorChanged(replacements: readonly Replacement[]): void {
    if (this.isClosed || replacements.length === 0) return;
    let { changes, next } = this.shown.edit(replacements);
    if (this.applying?.target && next.lines === this.applying.target.lines) {
      this.shown = this.applying.target;
      this.applying = null;
      this.observer.changed();
      this.pump();
      return;
    }
    const before = this.recall(next);
    if (before) {
      changes = replaceAll(this.shown.draft, before.draft);
      next = before;
    }
    this.remember();
    this.shown = next;
    if (this.applying) {
      const theirs = this.applying.changes;
      this.applying = { changes: theirs.map(changes, true), target: null };
      changes = changes.map(theirs);
    }
    if (this.waiting) {
      const theirs = this.waiting;
      this.waiting = theirs.map(changes, true);
      changes = changes.map(theirs);
    }
    this.link.edit(changes);
    this.observer.changed();
  }

  /** Sends the user's edits; resolves when the companion has them. */
  flush(): Promise<void> {
    return this.link.flush();
  }

  decideHunk(hunk: Hunk["id"], decision: HunkAction): Promise<void> {
    return this.link.decideHunk(hunk, decision);
  }

  edited(note: Parameters<DraftLink["edited"]>[0]): void {
    this.link.edited(note);
  }

  catchUp(now: ReviewTexts): void {
    this.link.catchUp(now);
  }

  /** Where a hunk is in the editor: its first line and the line after its last. */
  linesOf(hunk: Hunk): { readonly first: number; readonly end: number } {
    const first = this.lineOf(hunk.draft.start, -1);
    return { first, end: hunk.draft.count === 0 ? first : Math.max(first + 1, this.lineOf(hunk.draft.start + hunk.draft.count, 1)) };
  }

  /** The hunk at a line of the editor, or next to it. */
  hunkAt(line: number): Hunk | undefined {
    return this.hunkList.find((hunk) => {
      const { first, end } = this.linesOf(hunk);
      return line >= first && line < Math.max(end, first + 1);
    });
  }

  get lineCount(): number {
    return this.shown.lineCount;
  }

  /** The editor's line for a line of the companion's text, from 1. */
  private lineOf(line: number, side: -1 | 1): number {
    const { confirmed } = this.draft;
    if (line > confirmed.lines) return this.shown.lineCount;
    return this.toEditor(confirmed.line(line).from, side).line;
  }

  private toEditor(offset: number, side: -1 | 1): Position {
    let at = this.draft.toView(offset, side);
    // The draft has changes that the editor does not have yet.
    for (const layer of [this.waiting, this.applying?.changes]) {
      if (layer) at = layer.invertedDesc.mapPos(at, side);
    }
    return this.shown.positionAt(at);
  }

  private receive(changes: ChangeSet, hunks: readonly Hunk[]): void {
    this.hunkList = hunks;
    if (!changes.empty) {
      this.waiting = this.waiting ? this.waiting.compose(changes) : changes;
      this.pump();
    }
    this.observer.changed();
  }

  /** Makes the waiting changes in the editor. */
  private pump(): void {
    if (this.applying || !this.waiting || this.isClosed) return;
    const changes = this.waiting;
    this.waiting = null;
    const target = new ShownText(changes.apply(toText(this.shown.draft)).toString());
    const edit = this.editor && this.shown.replacement(target);
    if (!this.editor || !edit) {
      this.remember();
      this.shown = target;
      return;
    }
    this.remember();
    this.applying = { changes, target };
    const number = ++this.lastEdit;
    void this.editor.replace(edit).then(
      (isApplied) => this.settle(number, isApplied),
      () => this.settle(number, false),
    );
  }

  private settle(number: number, isApplied: boolean): void {
    // Usually the editor has reported its change already, and the next edit may be on its way.
    if (!this.applying || number !== this.lastEdit) return;
    if (isApplied && this.applying.target) {
      this.shown = this.applying.target;
      this.applying = null;
      this.pump();
      this.observer.changed();
      return;
    }
    // The user typed in between.
    this.giveBack();
    setTimeout(() => this.pump(), RETRY_DELAY);
  }

  private giveBack(): void {
    if (!this.applying) return;
    const { changes } = this.applying;
    this.waiting = this.waiting ? changes.compose(this.waiting) : changes;
    this.applying = null;
  }

  private remember(): void {
    if (this.shown.isUniform) return;
    this.remembered.push(this.shown);
    const most = Math.max(1, Math.min(MAX_REMEMBERED, Math.floor(MAX_REMEMBERED_CHARS / (this.shown.draft.length + 1))));
    this.remembered.splice(0, this.remembered.length - most);
  }

  /** The text that the editor shows again, with its line endings. */
  private recall(now: ShownText): ShownText | undefined {
    return this.remembered.findLast(({ hidden, lines }) => hidden === now.hidden && lines === now.lines);
  }
}

function replaceAll(before: string, after: string): ChangeSet {
  const { from, end, newEnd } = difference(before, after);
  return ChangeSet.of({ from, to: end, insert: toText(after.slice(from, newEnd)) }, before.length);
}
