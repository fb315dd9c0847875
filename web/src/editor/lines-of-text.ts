// Lines that are not in the editor's document (removed or rejected), highlighted and marked like those that are.

import { language } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";
import { classHighlighter, highlightTree } from "@lezer/highlight";
import { element } from "../dom";
import { appendVisibly } from "./special";

interface Piece {
  readonly from: number;
  readonly to: number;
}

/** Longer texts are not highlighted. */
const MAX_HIGHLIGHTED_CHARS = 10_000;
/** Longer lines are truncated. */
const MAX_LINE_CHARS = 5_000;

export function lineElements(state: EditorState, text: string, lines: number, marks: readonly Piece[]): HTMLElement[] {
  const styles = colors(state, text);
  const made: HTMLElement[] = [];
  let start = 0;
  for (let number = 0; number < lines; number++) {
    let end = text.indexOf("\n", start);
    if (end < 0) end = text.length;
    const line = element("div", { class: "text-line" });
    append(line, text, start, Math.min(end, start + MAX_LINE_CHARS), styles, marks);
    if (end - start > MAX_LINE_CHARS)
      line.append(element("span", { class: "cut" }, `\u2026 ${(end - start).toLocaleString("en")} characters`));
    if (!line.firstChild) line.append(document.createElement("br"));
    made.push(line);
    start = end + 1;
  }
  return made;
}

function colors(state: EditorState, text: string): (Piece & { style: string })[] {
  const known = state.facet(language);
  const styles: (Piece & { style: string })[] = [];
  if (!known || text.length > MAX_HIGHLIGHTED_CHARS) return styles;
  highlightTree(known.parser.parse(text), classHighlighter, (from, to, style) => styles.push({ from, to, style }));
  return styles;
}

function append(
  line: HTMLElement,
  text: string,
  from: number,
  to: number,
  styles: readonly (Piece & { style: string })[],
  marks: readonly Piece[],
): void {
  const stops = new Set<number>([from, to]);
  for (const { from: begin, to: end } of [...styles, ...marks]) {
    if (begin > from && begin < to) stops.add(begin);
    if (end > from && end < to) stops.add(end);
  }
  const sorted = [...stops].sort((one, other) => one - other);
  for (let index = 0; index + 1 < sorted.length; index++) {
    const begin = sorted[index] as number;
    const end = sorted[index + 1] as number;
    const covers = (piece: Piece) => piece.from <= begin && piece.to >= end;
    const classes = styles.filter(covers).map((piece) => piece.style);
    if (marks.some(covers)) classes.push("changed-word");
    const piece = element("span", { class: classes.join(" ") || null });
    appendVisibly(piece, text.slice(begin, end));
    line.append(piece);
  }
}
