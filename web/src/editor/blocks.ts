// What stands between the lines: the bar above each part with its buttons, lines that are not in the draft (taken out, or
// proposed and rejected), and the empty space that keeps the two sides level.

import { EditorState, type Extension, type Range, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { element } from "../dom";
import { count } from "../words";
import {
  currentField,
  hunksField,
  type Layout,
  layoutField,
  type PlacedHunk,
  setCurrent,
  setHunks,
  setLayout,
  side,
  spanOf,
  type Surroundings,
  surroundings,
} from "./hunks";
import { lineElements } from "./lines-of-text";
import { wordChanges } from "./words";

/** The same as in style.css: with equal heights on both sides nothing has to be measured. */
export const LINE_HEIGHT = 20;
export const BAR_HEIGHT = 30;
/** Lines of a rejected proposal that are shown. */
const MOST_GHOSTS = 12;
/** Lines taken out that are shown between those of the draft. */
const MOST_REMOVED = 400;

const STATES = { accepted: "accepted", rejected: "rejected", edited: "edited by hand", conflict: "conflict" } as const;

class Space extends WidgetType {
  constructor(readonly height: number) {
    super();
  }

  override eq(other: Space): boolean {
    return this.height === other.height;
  }

  override get estimatedHeight(): number {
    return this.height;
  }

  toDOM(): HTMLElement {
    const made = element("div", { class: "space", "aria-hidden": "true" });
    made.style.height = `${this.height}px`;
    return made;
  }

  override updateDOM(made: HTMLElement): boolean {
    if (!made.classList.contains("space")) return false;
    made.style.height = `${this.height}px`;
    return true;
  }
}

/** How many lines a bar shows below itself. */
function extraLines({ hunk }: PlacedHunk, layout: Layout): { kind: "ghost" | "removed" | "none"; shown: number; left: number } {
  const show = (kind: "ghost" | "removed", all: number, most: number) => ({
    kind,
    shown: Math.min(all, most),
    left: Math.max(0, all - most),
  });
  if (hunk.state === "rejected" && !hunk.yours) return show("ghost", hunk.proposal.count, MOST_GHOSTS);
  if (hunk.state === "conflict" && layout === "split") return show("ghost", hunk.proposal.count, MOST_GHOSTS);
  if (layout === "unified" && hunk.state !== "rejected") return show("removed", hunk.base.count, MOST_REMOVED);
  return { kind: "none", shown: 0, left: 0 };
}

function barHeight(placed: PlacedHunk, layout: Layout): number {
  const { shown, left } = extraLines(placed, layout);
  return BAR_HEIGHT + LINE_HEIGHT * (shown + (left > 0 ? 1 : 0));
}

class Bar extends WidgetType {
  private readonly key: string;

  constructor(
    readonly placed: PlacedHunk,
    readonly index: number,
    readonly total: number,
    readonly layout: Layout,
    readonly isCurrent: boolean,
    readonly around: Surroundings,
  ) {
    super();
    const { hunk, draft } = placed;
    const words = layout === "unified" ? draft.to - draft.from : 0;
    this.key = [hunk.id, hunk.state, hunk.yours, hunk.base.start, hunk.base.count, hunk.proposal.start, hunk.proposal.count]
      .concat([hunk.draft.count, index, total, layout, isCurrent, words])
      .join("|");
  }

  override eq(other: Bar): boolean {
    return this.key === other.key && this.around.base === other.around.base && this.around.proposal === other.around.proposal;
  }

  override get estimatedHeight(): number {
    return barHeight(this.placed, this.layout);
  }

  override ignoreEvent(): boolean {
    return true;
  }

  toDOM(view: EditorView): HTMLElement {
    const { hunk } = this.placed;
    const title = `${hunk.yours ? "Your edit" : "Part"} ${this.index + 1} of ${this.total}`;
    const made = element(
      "div",
      {
        class: `hunk hunk-${hunk.state}${this.isCurrent ? " current" : ""}`,
        "data-testid": "hunk",
        "data-hunk": hunk.id,
        "data-state": hunk.state,
        "data-yours": hunk.yours,
        role: "group",
        "aria-label": `${title}, ${STATES[hunk.state]}`,
        onmousedown: (event: MouseEvent) => {
          // The editor's cursor stays where it is.
          if (!(event.target instanceof HTMLButtonElement)) event.preventDefault();
          this.around.choose(hunk);
        },
      },
      this.bar(title),
    );
    const extra = extraLines(this.placed, this.layout);
    if (extra.kind !== "none") made.append(this.lines(view, extra));
    return made;
  }

  private bar(title: string): HTMLElement {
    const { hunk } = this.placed;
    const button = (decision: "accept" | "reject", text: string, label: string, pressed: boolean) =>
      element(
        "button",
        {
          type: "button",
          class: `decision decision-${decision}`,
          "data-testid": `hunk-${decision}`,
          "aria-pressed": String(pressed),
          "aria-label": `${label}: part ${this.index + 1}`,
          title: label,
          onclick: () => this.around.decide(hunk, decision),
        },
        text,
      );
    const conflict = hunk.state === "conflict";
    return element(
      "div",
      { class: "hunk-bar" },
      element("span", { class: "hunk-title" }, title),
      element("span", { class: "size" }, plusAndMinus(hunk.draft.count, hunk.base.count, hunk.state === "rejected")),
      element("span", { class: "hunk-state", "data-testid": "hunk-state" }, conflict ? "Conflict: the file changed here, too" : STATES[hunk.state]),
      element("span", { class: "grow" }),
      hunk.yours
        ? button("reject", "Undo", "Undo this edit of yours", hunk.state === "rejected")
        : button("reject", conflict ? "Keep the file\u2019s" : "Reject", "Reject this part", hunk.state === "rejected"),
      !hunk.yours &&
        button("accept", conflict ? "Take the agent\u2019s" : "Accept", "Accept this part as proposed", hunk.state === "accepted"),
    );
  }

  private lines(view: EditorView, { kind, shown, left }: ReturnType<typeof extraLines>): HTMLElement {
    const { hunk } = this.placed;
    const { base, proposal } = this.around;
    const made = element("div", { class: kind === "ghost" ? "ghost-lines" : "removed-lines" });
    const source: Text = kind === "ghost" ? proposal : base;
    const range = kind === "ghost" ? hunk.proposal : hunk.base;
    const span = spanOf(source, { start: range.start, count: shown });
    const marks = kind === "removed" ? wordChanges(this.placed, base, view.state.doc).map((change) => ({ from: change.fromA, to: change.toA })) : [];
    made.append(...lineElements(view.state, source.sliceString(span.from, span.to), shown, marks));
    if (left > 0) made.append(element("div", { class: "more-lines" }, `and ${count(left, "more line")}`));
    const label = kind === "ghost" ? "Proposed and not taken:" : "Taken out:";
    made.prepend(element("span", { class: "visually-hidden" }, label));
    return made;
  }
}

function plusAndMinus(added: number, removed: number, rejected: boolean): string {
  if (rejected) return "unchanged";
  const parts = [];
  if (added > 0) parts.push(`+${added.toLocaleString("en")}`);
  if (removed > 0) parts.push(`\u2212${removed.toLocaleString("en")}`);
  return parts.join(" ");
}

function build(state: EditorState): DecorationSet {
  const around = state.facet(surroundings);
  if (!around) return Decoration.none;
  const own = state.facet(side);
  const layout = state.field(layoutField);
  const current = state.field(currentField);
  const hunks = state.field(hunksField);
  const { doc } = state;
  const ranges: Range<Decoration>[] = [];
  const add = (position: number, before: number, widget: WidgetType) => {
    const at = Math.min(position, doc.length);
    // After the last line there is no beginning of a line to stand before.
    const startsLine = at === 0 || doc.lineAt(at).from === at;
    ranges.push(Decoration.widget({ widget, block: true, side: startsLine ? -before : 10 - before }).range(at));
  };
  hunks.forEach((placed, index) => {
    const { hunk } = placed;
    const span = placed[own];
    if (own === "draft") add(span.from, 1, new Bar(placed, index, hunks.length, layout, hunk.id === current, around));
    else add(span.from, 1, new Space(barHeight(placed, layout)));
    if (layout === "unified") return;
    const missing = own === "draft" ? hunk.base.count - hunk.draft.count : hunk.draft.count - hunk.base.count;
    // Before the bar of a part that follows at once.
    if (missing > 0) add(span.to, span.from === span.to ? 0.5 : 2, new Space(missing * LINE_HEIGHT));
  });
  return Decoration.set(ranges, true);
}

const blocks = StateField.define<DecorationSet>({
  create: build,
  update(decorations, transaction) {
    const isOurs = transaction.effects.some((effect) => effect.is(setHunks) || effect.is(setLayout) || effect.is(setCurrent));
    if (isOurs) return build(transaction.state);
    return transaction.docChanged ? decorations.map(transaction.changes) : decorations;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export function hunkBlocks(): Extension {
  return [hunksField, layoutField, currentField, blocks];
}
