// The conversation: its items in order, and a place that stays at the end only while the person is at the end.

import { element } from "../dom";
import type { AnswerForm } from "./answer-form";
import { cardOf, type ItemView, viewOf } from "./item-views";
import type { ToolCardSurroundings } from "./tool-card";
import type { Item } from "./transcript";

/** So near to the end counts as the end. */
const NEAR = 32;

export class LogView {
  readonly element: HTMLElement;
  readonly scroller: HTMLElement;
  private readonly list = element("div", { class: "items" });
  private readonly jump: HTMLButtonElement;
  private views: ItemView[] = [];
  private items: readonly Item[] = [];
  private atEnd = true;
  /** Where it was scrolled to last. */
  private top = 0;

  constructor(private readonly around: ToolCardSurroundings) {
    this.scroller = element(
      "div",
      // It is read when the person goes there; what is new is told by short sentences, not word by word.
      {
        class: "log",
        role: "log",
        "aria-live": "off",
        "aria-label": "Conversation",
        tabindex: "0",
        "data-testid": "log",
        "data-at-end": "true",
      },
      this.list,
    );
    this.jump = element(
      "button",
      { type: "button", class: "jump", "data-testid": "to-end", hidden: true, onclick: () => this.toEnd() },
      "\u2193 Jump to latest",
    );
    this.element = element("div", { class: "log-place" }, this.scroller, this.jump);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    const follow = new ResizeObserver(() => this.follow());
    follow.observe(this.list);
    follow.observe(this.scroller);
  }

  /** Shows these items; those that are the same objects as before are not touched. */
  show(items: readonly Item[]): void {
    if (items === this.items) return;
    let same = 0;
    while (same < items.length && same < this.views.length) {
      const [view, item] = [this.views[same] as ItemView, items[same] as Item];
      if (view.kind !== item.kind) break;
      if (this.items[same] !== item) view.update(item);
      same++;
    }
    for (const view of this.views.splice(same)) {
      view.destroy();
      view.element.remove();
    }
    for (const item of items.slice(same)) {
      const view = viewOf(item, this.around);
      this.views.push(view);
      this.list.append(view.element);
    }
    // The end is followed when the browser has laid it out anyway, before it is painted.
    this.items = items;
  }

  /** What waits for an answer, oldest first. */
  get forms(): AnswerForm[] {
    return this.views.map((view) => cardOf(view)?.form).filter((form): form is AnswerForm => form !== null && form !== undefined);
  }

  toEnd(): void {
    this.atEnd = true;
    this.follow();
  }

  private follow(): void {
    if (this.atEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
    this.showJump();
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    // A place that is not shown has no height, and nobody has left its end.
    if (clientHeight === 0) return;
    // Only a person scrolls back; a place that became lower has not moved.
    if (scrollHeight - scrollTop - clientHeight <= NEAR) this.atEnd = true;
    else if (scrollTop < this.top) this.atEnd = false;
    this.top = scrollTop;
    this.showJump();
  }

  private showJump(): void {
    this.jump.hidden = this.atEnd;
    this.scroller.dataset["atEnd"] = String(this.atEnd);
  }
}
