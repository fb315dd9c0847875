// Colors of changed lines and words, and the sign next to each line; only for the visible range.

import { type Extension, type Range, RangeSet } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, GutterMarker, gutter, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { hunksField, type PlacedHunk, type Side, side, surroundings } from "./hunks";
import { wordChanges } from "./words";

type Kind = "removed" | "added" | "edited" | "conflict" | "kept";

const SIGNS: Record<Kind, string> = { removed: "\u2212", added: "+", edited: "~", conflict: "!", kept: "" };

class Sign extends GutterMarker {
  override elementClass: string;

  constructor(readonly kind: Kind) {
    super();
    this.elementClass = `sign sign-${kind}`;
  }

  override toDOM(): Node {
    return document.createTextNode(SIGNS[this.kind]);
  }
}

const kinds: Kind[] = ["removed", "added", "edited", "conflict", "kept"];
const signs = new Map(kinds.map((kind) => [kind, new Sign(kind)]));
/** How screen readers announce the lines; the signs and colors are only visible. */
const ROLES: Record<Kind, Record<string, string>> = {
  removed: { role: "deletion" },
  added: { role: "insertion" },
  edited: { role: "insertion" },
  conflict: {},
  kept: {},
};
const lineMarks = new Map(kinds.map((kind) => [kind, Decoration.line({ class: `line-${kind}`, attributes: ROLES[kind] })]));
const word = Decoration.mark({ class: "changed-word" });

function kindOf({ hunk }: PlacedHunk, own: Side): Kind {
  if (hunk.state === "rejected") return "kept";
  if (own === "base") return hunk.state === "conflict" ? "conflict" : "removed";
  if (hunk.state === "conflict") return "conflict";
  return hunk.state === "edited" || hunk.yours ? "edited" : "added";
}

class Lines {
  decorations: DecorationSet = Decoration.none;
  signs: RangeSet<GutterMarker> = RangeSet.empty;

  constructor(view: EditorView) {
    this.build(view);
  }

  update(update: ViewUpdate): void {
    const changed = update.startState.field(hunksField) !== update.state.field(hunksField);
    if (changed || update.docChanged || update.viewportChanged) this.build(update.view);
  }

  private build(view: EditorView): void {
    const { state } = view;
    const own = state.facet(side);
    const around = state.facet(surroundings);
    const decorations: Range<Decoration>[] = [];
    const found: Range<GutterMarker>[] = [];
    const { from, to } = view.viewport;
    for (const placed of around ? state.field(hunksField) : []) {
      const span = placed[own];
      if (span.from > to) break;
      if (span.to < from || span.from === span.to) continue;
      const kind = kindOf(placed, own);
      const mark = lineMarks.get(kind) as Decoration;
      const sign = signs.get(kind) as Sign;
      for (let position = Math.max(span.from, from); position < Math.min(span.to, to + 1); ) {
        const line = state.doc.lineAt(position);
        decorations.push(mark.range(line.from));
        found.push(sign.range(line.from));
        position = line.to + 1;
      }
      if (!around) continue;
      const draft = own === "draft" ? state.doc : null;
      for (const change of draft ? wordChanges(placed, around.base, draft) : (baseWords.get(placed.hunk) ?? [])) {
        const [begin, end] = own === "draft" ? [change.fromB, change.toB] : [change.fromA, change.toA];
        const limit = Math.min(span.from + end, state.doc.length);
        if (begin < end && span.from + begin < limit) decorations.push(word.range(span.from + begin, limit));
      }
      if (draft) baseWords.set(placed.hunk, wordChanges(placed, around.base, draft));
    }
    this.decorations = Decoration.set(decorations, true);
    this.signs = RangeSet.of(found, true);
  }
}

/** The base's editor has no access to the draft, so the draft's editor stores its word changes here. */
const baseWords = new WeakMap<object, ReturnType<typeof wordChanges>>();

const lines = ViewPlugin.fromClass(Lines, { decorations: (plugin) => plugin.decorations });

export function changedLines(): Extension {
  return [
    lines,
    gutter({
      class: "signs",
      markers: (view) => view.plugin(lines)?.signs ?? RangeSet.empty,
      initialSpacer: () => signs.get("added") as Sign,
    }),
  ];
}
