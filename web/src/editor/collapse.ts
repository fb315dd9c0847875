// Folds long runs of unchanged lines into one row, on both sides together.

import { type Extension, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { element } from "../dom";
import { count } from "../format";
import type { Hunk } from "../protocol";
import { setHunks, side } from "./hunks";

/** Unchanged lines that stay visible around a hunk. */
const MARGIN = 3;
/** Shorter runs are not folded. */
const MIN_FOLDED_LINES = 6;
const ROW_HEIGHT = 26;

/** A run of lines that are the same in both texts. */
export interface Gap {
  readonly id: number;
  readonly baseLine: number;
  readonly draftLine: number;
  readonly count: number;
}

/** The runs to fold, given the hunks in order. */
export function gapsBetween(hunks: readonly Hunk[], draftLines: number): Gap[] {
  const gaps: Gap[] = [];
  let baseLine = 1;
  let draftLine = 1;
  const add = (end: number, isFirst: boolean, isLast: boolean) => {
    const before = isFirst ? 0 : MARGIN;
    const after = isLast ? 0 : MARGIN;
    const hidden = end - draftLine - before - after;
    if (hidden >= MIN_FOLDED_LINES)
      gaps.push({ id: gaps.length, baseLine: baseLine + before, draftLine: draftLine + before, count: hidden });
  };
  hunks.forEach((hunk, index) => {
    add(hunk.draft.start, index === 0, false);
    baseLine = hunk.base.start + hunk.base.count;
    draftLine = hunk.draft.start + hunk.draft.count;
  });
  // The last line stays visible, so the cursor can go to the end.
  if (hunks.length > 0) add(draftLines, false, true);
  return gaps;
}

export const unfold = StateEffect.define<readonly number[] | "all">();

class Row extends WidgetType {
  constructor(
    readonly id: number,
    readonly lines: number,
    readonly isDraft: boolean,
  ) {
    super();
  }

  override eq(other: Row): boolean {
    return this.id === other.id && this.lines === other.lines;
  }

  override get estimatedHeight(): number {
    return ROW_HEIGHT;
  }

  override ignoreEvent(): boolean {
    return true;
  }

  toDOM(view: EditorView): HTMLElement {
    const text = count(this.lines, "unchanged line");
    const button = element(
      "button",
      {
        type: "button",
        class: "fold",
        "data-testid": "unfold",
        "aria-label": `Show ${text}`,
        // The other side has the same row; one tab stop is enough.
        tabindex: this.isDraft ? 0 : -1,
        "aria-hidden": this.isDraft ? null : "true",
        onclick: () => view.dispatch({ effects: unfold.of([this.id]) }),
      },
      text,
    );
    return element("div", { class: "fold-row" }, button);
  }
}

function build(gaps: readonly Gap[], text: Text, isDraft: boolean): DecorationSet {
  const ranges = gaps.map((gap) => {
    const first = isDraft ? gap.draftLine : gap.baseLine;
    const last = Math.min(first + gap.count - 1, text.lines);
    const widget = new Row(gap.id, gap.count, isDraft);
    return Decoration.replace({ widget, block: true, id: gap.id }).range(text.line(first).from, text.line(last).to);
  });
  return Decoration.set(ranges);
}

const foldsField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(folds, transaction) {
    let result = folds.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(unfold)) {
        const { value } = effect;
        result = value === "all" ? Decoration.none : result.update({ filter: (_from, _to, row) => !value.includes(row.spec.id as number) });
      }
      if (effect.is(setHunks) && result.size > 0 && transaction.state.facet(side) === "draft") {
        const touched: number[] = [];
        const { hunks, touched: stretch } = effect.value;
        for (const { draft } of hunks.slice(stretch.from, stretch.to)) {
          result.between(draft.from, Math.max(draft.from, draft.to - 1), (_from, _to, row) => void touched.push(row.spec.id as number));
        }
        if (touched.length > 0) result = result.update({ filter: (_from, _to, row) => !touched.includes(row.spec.id as number) });
      }
    }
    // Edited lines must be visible.
    if (transaction.docChanged && result.size > 0) {
      const touched: number[] = [];
      transaction.changes.iterChangedRanges((_fromA, _toA, from, to) =>
        result.between(from, to, (_from, _to, row) => void touched.push(row.spec.id as number)),
      );
      if (touched.length > 0) result = result.update({ filter: (_from, _to, row) => !touched.includes(row.spec.id as number) });
    }
    return result;
  },
  provide: (field) => [EditorView.decorations.from(field), EditorView.atomicRanges.of((view) => view.state.field(field))],
});

export function foldCount(view: EditorView): number {
  return view.state.field(foldsField).size;
}

export function foldedIds(view: EditorView): number[] {
  const ids: number[] = [];
  for (const cursor = view.state.field(foldsField).iter(); cursor.value; cursor.next()) ids.push(cursor.value.spec.id as number);
  return ids;
}

/** The folded run that hides a position, if any. */
export function foldAt(view: EditorView, position: number): number | null {
  let found: number | null = null;
  view.state.field(foldsField).between(position, position, (from, to, row) => {
    if (from < position && position < to) found = row.spec.id as number;
  });
  return found;
}

export function collapse(gaps: readonly Gap[]): Extension {
  return foldsField.init((state) => build(gaps, state.doc, state.facet(side) === "draft"));
}
