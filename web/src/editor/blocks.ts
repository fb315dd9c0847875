// Widgets between the lines: the bar above each hunk with its buttons, lines that are not in the draft (removed, or proposed
// and rejected), and the spacers that keep both sides aligned.

import { type EditorState, type Extension, type Range, StateField, type Text, type Transaction } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { element } from "../dom";
import { count } from "../format";
import type { Hunk, LineRange } from "../protocol";
import {
  currentField,
  decidedField,
  hunksField,
  type Layout,
  layoutField,
  moveHunk,
  type PlacedHunk,
  type ShownState,
  type Side,
  type Surroundings,
  setCurrent,
  setDecided,
  setHunks,
  setLayout,
  shownState,
  side,
  spanOf,
  surroundings,
} from "./hunks";
import { lineElements } from "./lines-of-text";
import { wordChanges } from "./words";

/** As in styles/editor.css and styles/hunk.css: with fixed heights, both sides align without measuring. */
export const LINE_HEIGHT = 20;
export const BAR_HEIGHT = 30;
const MAX_REJECTED_LINES = 12;
const MAX_REMOVED_LINES = 400;

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

/** The lines shown below a bar. */
function extraLines({ hunk }: PlacedHunk, layout: Layout): { kind: "ghost" | "removed" | "none"; shown: number; left: number } {
  const show = (kind: "ghost" | "removed", all: number, most: number) => ({
    kind,
    shown: Math.min(all, most),
    left: Math.max(0, all - most),
  });
  if (hunk.state === "rejected" && !hunk.yours) return show("ghost", hunk.proposal.count, MAX_REJECTED_LINES);
  if (hunk.state === "conflict" && layout === "split") return show("ghost", hunk.proposal.count, MAX_REJECTED_LINES);
  if (layout === "unified" && hunk.state !== "rejected") return show("removed", hunk.base.count, MAX_REMOVED_LINES);
  return { kind: "none", shown: 0, left: 0 };
}

function barHeight(placed: PlacedHunk, layout: Layout): number {
  const { shown, left } = extraLines(placed, layout);
  return BAR_HEIGHT + LINE_HEIGHT * (shown + (left > 0 ? 1 : 0));
}

class Bar extends WidgetType {
  constructor(
    readonly placed: PlacedHunk,
    readonly index: number,
    readonly total: number,
    readonly layout: Layout,
    readonly isCurrent: boolean,
    readonly shownState: ShownState,
    readonly around: Surroundings,
  ) {
    super();
  }

  override eq(other: Bar): boolean {
    const isAlike =
      this.index === other.index && this.total === other.total && this.layout === other.layout && this.isCurrent === other.isCurrent;
    return (
      isAlike && this.shownState === other.shownState && this.around === other.around && looksTheSame(this.placed, other.placed, "draft")
    );
  }

  override get estimatedHeight(): number {
    return barHeight(this.placed, this.layout);
  }

  override ignoreEvent(): boolean {
    return true;
  }

  toDOM(view: EditorView): HTMLElement {
    const { hunk } = this.placed;
    const title = `${hunk.yours ? "Your edit" : "Hunk"} ${this.index + 1} of ${this.total}`;
    const made = element(
      "div",
      {
        class: `hunk hunk-${this.shownState}${this.isCurrent ? " current" : ""}`,
        "data-testid": "hunk",
        "data-hunk": hunk.id,
        "data-state": hunk.state,
        "data-yours": hunk.yours,
        role: "group",
        "aria-label": `${title}, ${this.shownState}`,
        onmousedown: (event: MouseEvent) => {
          // Buttons select the hunk themselves. Selecting it here would rebuild the bar under the pointer and lose the click.
          if (event.target instanceof Element && event.target.closest("button")) return;
          // Do not move the editor's cursor.
          event.preventDefault();
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
          "aria-label": `${text}: hunk ${this.index + 1}`,
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
      element(
        "span",
        { class: "hunk-state", "data-testid": "hunk-state" },
        conflict ? "Conflict: the file also changed here. Proposed:" : this.shownState,
      ),
      element("span", { class: "grow" }),
      hunk.yours
        ? button("reject", "Undo", "Undo your edit", hunk.state === "rejected")
        : button("reject", conflict ? "Keep the file\u2019s version" : "Reject", "Reject this hunk", hunk.state === "rejected"),
      !hunk.yours &&
        button(
          "accept",
          conflict ? "Use the agent\u2019s version" : "Accept",
          "Accept this hunk as proposed",
          this.shownState === "accepted",
        ),
    );
  }

  private lines(view: EditorView, { kind, shown, left }: ReturnType<typeof extraLines>): HTMLElement {
    const { hunk } = this.placed;
    const { base, proposal } = this.around;
    const made = element("div", {
      class: kind === "ghost" ? "ghost-lines" : "removed-lines",
      role: kind === "ghost" ? "note" : "deletion",
    });
    const source: Text = kind === "ghost" ? proposal : base;
    const range = kind === "ghost" ? hunk.proposal : hunk.base;
    const span = spanOf(source, { start: range.start, count: shown });
    const marks =
      kind === "removed" ? wordChanges(this.placed, base, view.state.doc).map((change) => ({ from: change.fromA, to: change.toA })) : [];
    made.append(...lineElements(view.state, source.sliceString(span.from, span.to), shown, marks));
    if (left > 0) made.append(element("div", { class: "more-lines" }, `and ${count(left, "more line")}`));
    const label = kind === "ghost" ? "Proposed but rejected:" : "Removed:";
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

interface Scene {
  readonly state: EditorState;
  readonly around: Surroundings;
  readonly own: Side;
  readonly layout: Layout;
  readonly current: Hunk["id"] | null;
  readonly decided: ReadonlySet<Hunk["id"]>;
  readonly hunks: readonly PlacedHunk[];
}

function scene(state: EditorState): Scene | null {
  const around = state.facet(surroundings);
  if (!around) return null;
  const [own, layout, current, hunks] = [state.facet(side), state.field(layoutField), state.field(currentField), state.field(hunksField)];
  return { state, around, own, layout, current, decided: state.field(decidedField), hunks };
}

/** The widgets before and after one hunk. */
function around({ state, around, own, layout, current, decided, hunks }: Scene, index: number): Range<Decoration>[] {
  const placed = hunks[index] as PlacedHunk;
  const { hunk } = placed;
  const span = placed[own];
  const { doc } = state;
  const ranges: Range<Decoration>[] = [];
  const add = (position: number, before: number, widget: WidgetType) => {
    // After a last line without a line break there is no next line to place the widget before.
    const isAfter = position >= doc.length && doc.length > 0 && doc.line(doc.lines).length > 0;
    ranges.push(
      Decoration.widget({ widget, block: true, side: isAfter ? 10 - before : -before, hunk: hunk.id }).range(
        Math.min(position, doc.length),
      ),
    );
  };
  const widget =
    own === "draft"
      ? new Bar(placed, index, hunks.length, layout, hunk.id === current, shownState(hunk, decided), around)
      : new Space(barHeight(placed, layout));
  add(span.from, 1, widget);
  const missing = own === "draft" ? hunk.base.count - hunk.draft.count : hunk.draft.count - hunk.base.count;
  // After this hunk's bar, but before the bar of a directly following hunk.
  if (layout === "split" && missing > 0) add(span.to, span.from === span.to ? 0.5 : 2, new Space(missing * LINE_HEIGHT));
  return ranges;
}

function build(state: EditorState): DecorationSet {
  const found = scene(state);
  if (!found) return Decoration.none;
  return Decoration.set(
    found.hunks.flatMap((_, index) => around(found, index)),
    true,
  );
}

function looksTheSame(one: PlacedHunk, other: PlacedHunk, own: Side): boolean {
  const sameLines = (a: LineRange, b: LineRange) => a.start === b.start && a.count === b.count;
  const [a, b] = [one.hunk, other.hunk];
  const sameHunk = a.id === b.id && a.state === b.state && a.yours === b.yours && a.draft.count === b.draft.count;
  return (
    sameHunk &&
    sameLines(a.base, b.base) &&
    sameLines(a.proposal, b.proposal) &&
    one[own].from === other[own].from &&
    one[own].to === other[own].to
  );
}

/** Rebuilds only the hunks that changed, so that a decision among thousands stays fast. */
function rebuild(before: DecorationSet, transaction: Transaction): DecorationSet {
  const now = scene(transaction.state);
  const old = transaction.startState.field(hunksField);
  if (!now || old.length !== now.hunks.length) return build(transaction.state);
  const { own, hunks, current } = now;
  const previous = transaction.startState.field(currentField);
  const candidates = new Set<number>();
  const marked = (id: Hunk["id"] | null) => (previous === current ? -1 : hunks.findIndex(({ hunk }) => hunk.id === id));
  const marks = [marked(previous), marked(current)].filter((index) => index >= 0);
  for (const effect of transaction.effects) {
    if (effect.is(setDecided)) marks.push(...hunks.flatMap(({ hunk }, index) => (hunk.id === effect.value ? [index] : [])));
    if (effect.is(setHunks)) for (let index = effect.value.touched.from; index < effect.value.touched.to; index++) candidates.add(index);
  }
  const isOther = (index: number) => {
    const mapped = moveHunk(old[index] as PlacedHunk, transaction.changes, own);
    return marks.includes(index) || !looksTheSame(mapped, hunks[index] as PlacedHunk, own);
  };
  const changed = [...new Set([...candidates, ...marks])].filter(isOther).sort((one, other) => one - other);
  if (changed.length > 50) return build(transaction.state);
  if (changed.length === 0) return before;
  // The widgets of the changed hunks are between these positions, before and after the change.
  const [first, last] = [changed[0] as number, changed.at(-1) as number];
  const oldSpan = (index: number) => moveHunk(old[index] as PlacedHunk, transaction.changes, own)[own];
  const filterFrom = Math.min(oldSpan(first).from, (hunks[first] as PlacedHunk)[own].from);
  const filterTo = Math.max(oldSpan(last).to, (hunks[last] as PlacedHunk)[own].to);
  const ids = new Set(changed.map((index) => (hunks[index] as PlacedHunk).hunk.id));
  const add = changed.flatMap((index) => around(now, index)).sort((a, b) => a.from - b.from || a.value.startSide - b.value.startSide);
  return before.update({ filter: (_from, _to, { spec }) => !ids.has((spec as { hunk: Hunk["id"] }).hunk), filterFrom, filterTo, add });
}

const blocks = StateField.define<DecorationSet>({
  create: build,
  update(decorations, transaction) {
    const isLaidOut = transaction.effects.some((effect) => effect.is(setLayout));
    if (isLaidOut) return build(transaction.state);
    const mapped = transaction.docChanged ? decorations.map(transaction.changes) : decorations;
    const isOurs = transaction.effects.some((effect) => effect.is(setHunks) || effect.is(setCurrent) || effect.is(setDecided));
    return isOurs ? rebuild(mapped, transaction) : mapped;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export function hunkBlocks(hunks: readonly PlacedHunk[], layout: Layout, current: Hunk["id"] | null): Extension {
  return [hunksField.init(() => hunks), decidedField, layoutField.init(() => layout), currentField.init(() => current), blocks];
}
