// The two texts: the file on the left (hidden in the unified layout) and the editable draft on the right.

import { Annotation, type ChangeSet, Compartment, EditorState, type Extension, Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { element } from "./dom";
import { type Draft, toText } from "./draft";
import { foldAt, foldCount, foldedIds, type Gap, gapsBetween, unfold } from "./editor/collapse";
import {
  currentField,
  decidedField,
  hunkAt,
  hunksField,
  type Layout,
  moveHunk,
  type PlacedHunk,
  type Stretch,
  type Surroundings,
  setCurrent,
  setDecided,
  setHunks,
  setLayout,
  shownState,
  side,
  spanOf,
  surroundings,
} from "./editor/hunks";
import { languageOf } from "./editor/languages";
import { common, editable, readOnly } from "./editor/setup";
import type { Hunk, HunkChange, ReviewTexts } from "./protocol";

/** Marks changes from the companion, which must not be sent back. */
const fromElsewhere = Annotation.define<boolean>();
/** Texts with a longer line are neither wrapped nor highlighted. */
const LONG_LINE = 20_000;
/** Highlighting a longer text would keep the page busy in the background. */
const MAX_HIGHLIGHTED_CHARS = 2_000_000;

export interface PanesListener {
  edited(changes: ChangeSet): void;
  decide(hunk: Hunk, decision: "accept" | "reject"): void;
  /** Another hunk became current. */
  moved(): void;
}

export class Panes {
  readonly element: HTMLElement;
  readonly draftView: EditorView;
  private baseView: EditorView | null = null;
  private readonly around: Surroundings;
  private readonly basePane = element("div", { class: "pane pane-base", "data-testid": "pane-base" });
  private readonly draftPane = element("div", { class: "pane pane-draft", "data-testid": "pane-draft" });
  private readonly wide = element("div", { class: "wide-scroll", "aria-hidden": "true" }, element("div"));
  private readonly language = new Compartment();
  private readonly wrapping = new Compartment();
  private readonly permission = new Compartment();
  private readonly hasLongLine: boolean;
  private readonly gaps: Gap[];
  private layout: Layout;
  private readonly sizes = new ResizeObserver(() => this.fitWideScroll());

  constructor(
    review: ReviewTexts,
    private readonly draft: Draft,
    layout: Layout,
    private readonly listener: PanesListener,
  ) {
    this.layout = layout;
    this.around = {
      base: toText(review.base ?? ""),
      proposal: review.proposal === review.draft ? draft.confirmed : toText(review.proposal),
      decide: (hunk, decision) => this.listener.decide(hunk, decision),
      choose: (hunk) => this.choose(hunk.id),
    };
    this.hasLongLine = hasLongLine(review.base ?? "") || hasLongLine(review.draft);
    this.gaps = gapsBetween(review.hunks, draft.confirmed.lines);
    this.element = element(
      "div",
      { class: "panes", tabindex: "-1", "data-testid": "panes", "data-layout": layout },
      element("div", { class: "pane-row" }, this.basePane, this.draftPane),
      this.wide,
    );
    const hunks = this.place(review.hunks);
    this.draftView = new EditorView({
      parent: this.draftPane,
      state: EditorState.create({
        doc: draft.text,
        extensions: [
          side.of("draft"),
          surroundings.of(this.around),
          common({ hunks, layout, current: hunks[0]?.hunk.id ?? null, gaps: this.gaps }),
          this.language.of([]),
          this.wrapping.of(this.wrapped()),
          this.permission.of(editable("Draft, as it will be accepted; press Escape to leave the editor")),
          EditorView.updateListener.of((update) => {
            for (const transaction of update.transactions) {
              if (transaction.docChanged && !transaction.annotation(fromElsewhere)) this.listener.edited(transaction.changes);
            }
            if (update.selectionSet) this.followCursor();
            if (update.transactions.length > 0) this.levelFolds();
          }),
        ],
      }),
    });
    if (layout === "split") this.addBase();
    void this.loadLanguage(review.path);
    this.wide.addEventListener("scroll", () => this.scrollSideways(this.wide));
    this.watchWidth(this.draftView);
  }

  destroy(): void {
    this.sizes.disconnect();
    this.draftView.destroy();
    this.baseView?.destroy();
  }

  get hunks(): readonly PlacedHunk[] {
    return this.draftView.state.field(hunksField);
  }

  get current(): PlacedHunk | undefined {
    return this.hunks[this.currentIndex];
  }

  /** `-1` if no hunk is current. */
  get currentIndex(): number {
    const current = this.draftView.state.field(currentField);
    return this.hunks.findIndex(({ hunk }) => hunk.id === current);
  }

  setLayout(layout: Layout): void {
    if (layout === this.layout) return;
    this.layout = layout;
    this.element.dataset["layout"] = layout;
    this.draftView.dispatch({ effects: [setLayout.of(layout), this.wrapping.reconfigure(this.wrapped())] });
    if (layout === "split") this.addBase();
    else {
      this.baseView?.destroy();
      this.baseView = null;
    }
    this.scrollToCurrent();
  }

  /** Applies a change from another client. The hunks have ranges in the companion's text. */
  apply(changes: ChangeSet, hunks: readonly Hunk[], change?: HunkChange): void {
    const effects = setHunks.of(
      change ? this.replace(changes, hunks, change) : { hunks: this.place(hunks), touched: { from: 0, to: hunks.length } },
    );
    const annotations = [fromElsewhere.of(true), Transaction.addToHistory.of(false)];
    this.draftView.dispatch({ ...(changes.empty ? {} : { changes, annotations }), effects });
    this.baseView?.dispatch({ effects });
    this.listener.moved();
  }

  setReadOnly(label = "Draft, read-only"): void {
    this.draftView.dispatch({ effects: this.permission.reconfigure(readOnly(label)) });
  }

  /** Selects the next or previous hunk and scrolls to it. */
  step(by: 1 | -1): void {
    const { hunks } = this;
    if (hunks.length === 0) return;
    const index = this.currentIndex;
    const next = hunks[Math.max(0, Math.min(hunks.length - 1, index < 0 ? 0 : index + by))];
    if (next) this.choose(next.hunk.id, true);
  }

  choose(id: Hunk["id"], show = false): void {
    if (this.draftView.state.field(currentField) !== id) this.draftView.dispatch({ effects: setCurrent.of(id) });
    this.listener.moved();
    if (show) this.scrollToCurrent();
  }

  /** A decision about a hunk was made, even if that does not change its text. */
  decided(id: Hunk["id"]): void {
    this.draftView.dispatch({ effects: setDecided.of(id) });
  }

  /** A hunk's state for users. */
  stateOf(hunk: Hunk): string {
    return shownState(hunk, this.draftView.state.field(decidedField));
  }

  /** Runs the code of a decision once before decisions are enabled, so that the first one is as fast as the others. */
  warmUp(): void {
    const current = this.draftView.state.field(currentField);
    for (const id of [null, current]) this.draftView.dispatch({ effects: setCurrent.of(id) });
    const { hunks } = this;
    for (const view of [this.draftView, this.baseView])
      view?.dispatch({ effects: setHunks.of({ hunks, touched: { from: 0, to: Math.min(1, hunks.length) } }) });
  }

  scrollToCurrent(): void {
    const { current } = this;
    if (!current) return;
    this.draftView.dispatch({ effects: EditorView.scrollIntoView(current.draft.from, { y: "center" }) });
  }

  /** Restores the scroll position and selection of another view of the same review. */
  resume(before: Panes): void {
    const { anchor, head } = before.draftView.state.selection.main;
    const { length } = this.draftView.state.doc;
    this.draftView.dispatch({ selection: { anchor: Math.min(anchor, length), head: Math.min(head, length) } });
    const { scrollTop } = before.element;
    // Once it has its final height.
    queueMicrotask(() => (this.element.scrollTop = scrollTop));
    if (before.draftView.hasFocus) queueMicrotask(() => this.draftView.focus());
  }

  unfoldAll(): void {
    this.draftView.dispatch({ effects: unfold.of("all") });
    this.baseView?.dispatch({ effects: unfold.of("all") });
  }

  private place(hunks: readonly Hunk[]): PlacedHunk[] {
    return hunks.map((hunk) => this.placeOne(hunk));
  }

  private placeOne(hunk: Hunk): PlacedHunk {
    const span = spanOf(this.draft.confirmed, hunk.draft);
    const moved = this.draft.isAhead;
    const from = moved ? this.draft.toView(span.from, -1) : span.from;
    const to = moved ? Math.max(from, this.draft.toView(span.to, -1)) : span.to;
    return { hunk, base: spanOf(this.around.base, hunk.base), draft: { from, to } };
  }

  /** Looks up only the hunks that changed; the others have moved with the text. */
  private replace(changes: ChangeSet, hunks: readonly Hunk[], { at, removed, now }: HunkChange): { hunks: PlacedHunk[]; touched: Stretch } {
    const before = this.hunks;
    // Where hunks touch, a position may belong to either, so the neighbors are looked up too.
    const touches = (index: number) => before[index]?.draft.to === before[index + 1]?.draft.from;
    let above = Math.max(0, at - 1);
    while (above > 0 && touches(above - 1)) above--;
    let below = at + removed;
    while (below + 1 < before.length && touches(below)) below++;
    const touched = { from: above, to: Math.min(hunks.length, below + 1 - removed + now.length) };
    const placed = hunks.map((hunk, index) => {
      if (index >= touched.from && index < touched.to) return this.placeOne(hunk);
      const moved = moveHunk(before[index < at ? index : index - now.length + removed] as PlacedHunk, changes, "draft");
      return moved.hunk === hunk ? moved : { ...moved, hunk };
    });
    return { hunks: placed, touched };
  }

  private wrapped(): Extension {
    return this.layout === "unified" && !this.hasLongLine ? EditorView.lineWrapping : [];
  }

  private addBase(): void {
    const folded = new Set(foldedIds(this.draftView));
    const gaps = this.gaps.filter((gap) => folded.has(gap.id));
    this.baseView = new EditorView({
      parent: this.basePane,
      state: EditorState.create({
        doc: this.around.base,
        extensions: [
          side.of("base"),
          surroundings.of(this.around),
          common({ hunks: this.hunks, layout: "split", current: null, gaps }),
          this.language.of(this.loaded ?? []),
          readOnly("Current file"),
          EditorView.updateListener.of((update) => {
            const effects = update.transactions.flatMap((transaction) => transaction.effects).filter((effect) => effect.is(unfold));
            if (effects.length > 0 && foldCount(this.draftView) > foldCount(update.view)) this.draftView.dispatch({ effects });
          }),
        ],
      }),
    });
    this.watchWidth(this.baseView);
  }

  private loaded: Extension | null = null;

  private languageEffect() {
    return this.loaded ? [this.language.reconfigure(this.loaded)] : [];
  }

  private async loadLanguage(path: string): Promise<void> {
    if (this.hasLongLine || this.draft.confirmed.length > MAX_HIGHLIGHTED_CHARS) return;
    this.loaded = await languageOf(path);
    for (const view of [this.draftView, this.baseView]) view?.dispatch({ effects: this.languageEffect() });
  }

  /** Selects the hunk under the cursor, and unfolds lines that hide it. */
  private followCursor(): void {
    const { state } = this.draftView;
    const { head } = state.selection.main;
    const index = hunkAt(state, head);
    const placed = this.hunks[index];
    const folded = foldAt(this.draftView, head);
    queueMicrotask(() => {
      if (folded !== null) this.draftView.dispatch({ effects: unfold.of([folded]) });
      if (placed && placed.draft.from <= head && this.draftView.hasFocus) this.choose(placed.hunk.id);
    });
  }

  /** Unfolds on the left what was unfolded on the right. */
  private levelFolds(): void {
    if (!this.baseView || foldCount(this.baseView) <= foldCount(this.draftView)) return;
    const right = new Set(foldedIds(this.draftView));
    const gone = foldedIds(this.baseView).filter((id) => !right.has(id));
    if (gone.length > 0) this.baseView.dispatch({ effects: unfold.of(gone) });
  }

  // Both sides scroll horizontally together, with a scrollbar that stays visible.

  private watchWidth(view: EditorView): void {
    view.scrollDOM.addEventListener("scroll", () => this.scrollSideways(view.scrollDOM), { passive: true });
    for (const part of [view.contentDOM, view.scrollDOM, ...view.dom.querySelectorAll(".cm-gutters")]) this.sizes.observe(part);
  }

  private scrollers(): HTMLElement[] {
    return [this.draftView.scrollDOM, ...(this.baseView ? [this.baseView.scrollDOM] : [])];
  }

  private fitWideScroll(): void {
    // Bars and folds are as wide as the visible area, not as the longest line.
    for (const scroller of this.scrollers()) {
      const gutter = scroller.querySelector<HTMLElement>(".cm-gutters")?.offsetWidth ?? 0;
      scroller.style.setProperty("--gutter", `${gutter}px`);
      scroller.style.setProperty("--visible", `${scroller.clientWidth - gutter}px`);
    }
    const beyond = Math.max(...this.scrollers().map((scroller) => scroller.scrollWidth - scroller.clientWidth));
    this.wide.hidden = beyond <= 1;
    (this.wide.firstElementChild as HTMLElement).style.width = `${this.wide.clientWidth + beyond}px`;
  }

  private scrollSideways(source: HTMLElement): void {
    for (const other of [...this.scrollers(), this.wide]) {
      if (other !== source && other.scrollLeft !== source.scrollLeft) other.scrollLeft = source.scrollLeft;
    }
  }
}

function hasLongLine(text: string): boolean {
  for (let start = 0; start + LONG_LINE < text.length; ) {
    const end = text.indexOf("\n", start);
    if ((end < 0 ? text.length : end) - start > LONG_LINE) return true;
    if (end < 0) return false;
    start = end + 1;
  }
  return false;
}
