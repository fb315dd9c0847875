// The draft as the editor shows it, and where each position of the editor is in the draft.
//
// VS Code hides a byte order mark and has one line ending per document: "\r\n", "\n" and a lone "\r" all end a line. The
// companion's draft has every byte. So positions are exchanged as line and character, which do not depend on line endings, and
// a table has the draft's offset of each line.

import { ChangeSet } from "@codemirror/state";
import { toText } from "../../../web/src/draft";

/** 0-based; characters are UTF-16 code units. */
export interface Position {
  readonly line: number;
  readonly character: number;
}

/** A change in the editor. Any line ending in `text` is a line break. */
export interface Replacement {
  readonly start: Position;
  readonly end: Position;
  readonly text: string;
}

type Ending = "" | "\n" | "\r\n" | "\r";

const BREAK = /\r\n|\r|\n/g;
const MARK = "\ufeff";

export class ShownText {
  /** The draft's offset of each line's first character. */
  private readonly starts: number[] = [];
  /** The draft's offset right after each line's last character. */
  private readonly ends: number[] = [];
  private readonly hasLoneReturn: boolean;
  /** Whether all line breaks are the same. */
  readonly isUniform: boolean;
  readonly ending: "\n" | "\r\n";
  private joined: string | null = null;

  /** @param hidden how many byte order marks at the start of the draft the editor does not have */
  constructor(
    readonly draft: string,
    readonly hidden: number = leadingMarks(draft),
  ) {
    const counts = { "\n": 0, "\r\n": 0, "\r": 0 };
    this.starts.push(hidden);
    BREAK.lastIndex = hidden;
    for (let found = BREAK.exec(draft); found; found = BREAK.exec(draft)) {
      counts[found[0] as "\n" | "\r\n" | "\r"] += 1;
      this.ends.push(found.index);
      this.starts.push(found.index + found[0].length);
    }
    this.ends.push(draft.length);
    this.hasLoneReturn = counts["\r"] > 0;
    this.isUniform = Object.values(counts).filter((count) => count > 0).length <= 1 && !this.hasLoneReturn;
    // As VS Code chooses for a text with several.
    this.ending = counts["\r\n"] + counts["\r"] > counts["\n"] ? "\r\n" : "\n";
  }

  get lineCount(): number {
    return this.starts.length;
  }

  /** The lines as the editor has them, joined by "\n". */
  get lines(): string {
    this.joined ??= this.starts.map((start, line) => this.draft.slice(start, this.ends[line])).join("\n");
    return this.joined;
  }

  /** The text for the editor: without a byte order mark and with one line ending, so that the editor keeps it as it is. */
  get content(): string {
    return this.ending === "\n" ? this.lines : this.lines.replaceAll("\n", this.ending);
  }

  /** The draft's offset of a position; positions outside of the text are moved into it. */
  offsetAt({ line, character }: Position): number {
    if (line < 0) return this.hidden;
    const [start, end] = [this.starts[line], this.ends[line]];
    if (start === undefined || end === undefined) return this.draft.length;
    return Math.min(start + Math.max(0, character), end);
  }

  positionAt(offset: number): Position {
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.start(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    const end = this.ends[low] ?? 0;
    return { line: low, character: Math.max(0, Math.min(offset, end) - this.start(low)) };
  }

  /** The user changed the editor. Each change is for the text after those before it. */
  edit(changes: readonly Replacement[]): { readonly changes: ChangeSet; readonly next: ShownText } {
    if (!this.hasLoneReturn && isDescending(changes)) {
      const all = changes.map((change) => this.toDraft(change));
      const set = ChangeSet.of(
        all.map(({ from, to, insert }) => ({ from, to, insert: toText(insert) })),
        this.draft.length,
      );
      return { changes: set, next: this.after(all) };
    }
    // Next to a lone "\r", a change may depend on the one before it.
    let set = ChangeSet.empty(this.draft.length);
    let next: ShownText = this;
    for (const change of changes) {
      const one = next.toDraft(change);
      set = set.compose(ChangeSet.of({ ...one, insert: toText(one.insert) }, next.draft.length));
      next = next.after([one]);
    }
    return { changes: set, next };
  }

  /** What to change in the editor so that it shows `target`: one range, or nothing. */
  replacement(target: ShownText): Replacement | null {
    const [before, after] = [this.lines, target.lines];
    if (before === after) return null;
    const { from, end, newEnd } = difference(before, after);
    return { start: position(before, from), end: position(before, end), text: after.slice(from, newEnd) };
  }

  private start(line: number): number {
    return this.starts[line] ?? this.draft.length;
  }

  /** The line ending of a line, or of the one above the last. */
  private endingOf(line: number): Ending {
    for (const at of [line, line - 1]) {
      const ending = this.draft.slice(this.ends[at], this.starts[at + 1]) as Ending;
      if (at >= 0 && at + 1 < this.starts.length && ending !== "") return ending;
    }
    return this.ending;
  }

  private toDraft({ start, end, text }: Replacement): { from: number; to: number; insert: string } {
    const to = this.offsetAt(end);
    let from = this.offsetAt(start);
    let insert = text.replace(BREAK, this.endingOf(start.line));
    const following = this.draft[to];
    // A lone "\r" and a "\n" that come together would be one line break where the editor has two.
    if (following === "\n") insert = insert.replace(/\r+$/, (returns) => "\n".repeat(returns.length));
    if (from > this.hidden && this.draft[from - 1] === "\r" && (insert[0] ?? following) === "\n") {
      from -= 1;
      insert = `\n${insert}`;
    }
    return { from, to, insert };
  }

  /** The text after changes in descending order. */
  private after(changes: readonly { from: number; to: number; insert: string }[]): ShownText {
    const pieces: string[] = [];
    let rest = this.draft.length;
    for (const { from, to, insert } of changes) {
      pieces.push(this.draft.slice(to, rest), insert);
      rest = from;
    }
    pieces.push(this.draft.slice(0, rest));
    return new ShownText(pieces.reverse().join(""), this.hidden);
  }
}

/** The range that differs, without splitting a surrogate pair. */
export function difference(before: string, after: string): { from: number; end: number; newEnd: number } {
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before.charCodeAt(from) === after.charCodeAt(from)) from += 1;
  let same = 0;
  while (same < shorter - from && before.charCodeAt(before.length - same - 1) === after.charCodeAt(after.length - same - 1)) same += 1;
  if (from > 0 && isHighSurrogate(before.charCodeAt(from - 1))) from -= 1;
  if (same > 0 && isLowSurrogate(before.charCodeAt(before.length - same))) same -= 1;
  return { from, end: before.length - same, newEnd: after.length - same };
}

function leadingMarks(text: string): number {
  let count = 0;
  while (text[count] === MARK) count += 1;
  return count;
}

function isDescending(changes: readonly Replacement[]): boolean {
  return changes.every(({ end }, index) => {
    const previous = changes[index - 1];
    return !previous || end.line < previous.start.line || (end.line === previous.start.line && end.character <= previous.start.character);
  });
}

function position(text: string, offset: number): Position {
  let [line, start] = [0, 0];
  for (let next = text.indexOf("\n"); next >= 0 && next < offset; next = text.indexOf("\n", next + 1)) {
    line += 1;
    start = next + 1;
  }
  return { line, character: offset - start };
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}
