// Hunk positions: the companion's line ranges mapped to positions in both texts, updated while typing.

import { type ChangeDesc, type EditorState, Facet, StateEffect, StateField, type Text } from "@codemirror/state";
import type { Hunk, LineRange } from "../protocol";

/** From the start of the first line to the start of the line after the last, or to the end of the text. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface PlacedHunk {
  readonly hunk: Hunk;
  readonly base: Span;
  readonly draft: Span;
}

export type Layout = "split" | "unified";
export type Side = "base" | "draft";

export interface Surroundings {
  readonly base: Text;
  readonly proposal: Text;
  decide(hunk: Hunk, decision: "accept" | "reject"): void;
  choose(hunk: Hunk): void;
}

export const side = Facet.define<Side, Side>({ combine: (values) => values[0] ?? "draft" });
export const surroundings = Facet.define<Surroundings, Surroundings | null>({ combine: (values) => values[0] ?? null });

/** Hunk indexes, `to` excluded. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** The hunks, and which of them did more than move with the text. */
export const setHunks = StateEffect.define<{ readonly hunks: readonly PlacedHunk[]; readonly touched: Stretch }>();
export const setLayout = StateEffect.define<Layout>();
export const setCurrent = StateEffect.define<Hunk["id"] | null>();
/** A decision about a hunk was made. */
export const setDecided = StateEffect.define<Hunk["id"]>();

export function spanOf(text: Text, range: LineRange): Span {
  const at = (line: number) => (line > text.lines ? text.length : text.line(Math.max(1, line)).from);
  return { from: at(range.start), to: at(range.start + range.count) };
}

/** Maps a hunk through a change of the draft. */
export function moveHunk(placed: PlacedHunk, changes: ChangeDesc, own: Side): PlacedHunk {
  if (own === "base" || changes.empty) return placed;
  const from = changes.mapPos(placed.draft.from, -1);
  const to = Math.max(from, changes.mapPos(placed.draft.to, -1));
  if (from === placed.draft.from && to === placed.draft.to) return placed;
  return { ...placed, draft: { from, to } };
}

export const hunksField = StateField.define<readonly PlacedHunk[]>({
  create: () => [],
  update(hunks, transaction) {
    for (const effect of transaction.effects) if (effect.is(setHunks)) return effect.value.hunks;
    if (!transaction.docChanged || transaction.startState.facet(side) === "base") return hunks;
    return hunks.map((placed) => moveHunk(placed, transaction.changes, "draft"));
  },
});

export const layoutField = StateField.define<Layout>({
  create: () => "split",
  update(layout, transaction) {
    for (const effect of transaction.effects) if (effect.is(setLayout)) return effect.value;
    return layout;
  },
});

export const currentField = StateField.define<Hunk["id"] | null>({
  create: () => null,
  update(current, transaction) {
    for (const effect of transaction.effects) if (effect.is(setCurrent)) return effect.value;
    return current;
  },
});

/** Hunks that were decided or edited. The others are proposals: they will be accepted with the whole, but nothing was said about them. */
export const decidedField = StateField.define<ReadonlySet<Hunk["id"]>>({
  create: (state) => withTouched(new Set(), state.field(hunksField)),
  update(decided, transaction) {
    let next = decided;
    for (const effect of transaction.effects) {
      if (effect.is(setDecided)) next = new Set([...next, effect.value]);
      else if (effect.is(setHunks)) next = withTouched(next, effect.value.hunks.slice(effect.value.touched.from, effect.value.touched.to));
    }
    return next;
  },
});

function withTouched(decided: ReadonlySet<Hunk["id"]>, hunks: readonly PlacedHunk[]): ReadonlySet<Hunk["id"]> {
  const touched = hunks.filter(({ hunk }) => hunk.state !== "accepted" && !decided.has(hunk.id));
  return touched.length > 0 ? new Set([...decided, ...touched.map(({ hunk }) => hunk.id)]) : decided;
}

/** A hunk's state for users. */
export type ShownState = Hunk["state"] | "proposed";

export function shownState({ state, id }: Hunk, decided: ReadonlySet<Hunk["id"]>): ShownState {
  return state === "accepted" && !decided.has(id) ? "proposed" : state;
}

/** What accepting the whole change does, as the label of its button. */
export function acceptLabel(hunks: readonly Pick<Hunk, "state" | "yours">[]): string {
  const kept = hunks.filter(({ state }) => state !== "rejected");
  const edited = kept.some(({ state, yours }) => state === "edited" || yours) ? ", as edited" : "";
  if (hunks.length === 0) return "Accept";
  if (kept.length === 0) return "Accept without changes";
  const size = hunks.length.toLocaleString("en");
  if (kept.length < hunks.length) return `Accept ${kept.length.toLocaleString("en")} of ${size} hunks${edited}`;
  return hunks.length === 1 ? `Accept 1 hunk${edited}` : `Accept all ${size} hunks${edited}`;
}

/** Index of the hunk at a position in the draft, or of the next one after it. */
export function hunkAt(state: EditorState, position: number): number {
  const hunks = state.field(hunksField);
  let low = 0;
  let high = hunks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { from, to } = (hunks[middle] as PlacedHunk).draft;
    if (Math.max(from, to - 1) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
