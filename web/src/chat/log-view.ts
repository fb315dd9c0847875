// The conversation: its items in order. It follows the end unless the user has scrolled up.

import { element } from "../dom";
import type { AnswerForm } from "./answer-form";
import { cardOf, type ItemSurroundings, type ItemView, viewOf } from "./item-views";
import type { PendingReview } from "./protocol";
import type { Item } from "./transcript";

/** Distance from the end that still counts as the end, in pixels. */
const NEAR = 32;

export class LogView {
  readonly element: HTMLElement;
  readonly scroller: HTMLElement;
  private readonly list = element("div", { class: "items" });
  private readonly jump: HTMLButtonElement;
  private views: ItemView[] = [];
  private items: readonly Item[] = [];
  private isReachable = true;
  private pending: readonly PendingReview[] = [];
  private atEnd = true;
  private top = 0;

  constructor(private readonly around: ItemSurroundings) {
    this.scroller = element(
      "div",
      // Not a live region: short announcements report news, instead of every streamed word.
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
    // Follows the end after layout and before paint.
    const follow = new ResizeObserver(() => this.follow());
    follow.observe(this.list);
    follow.observe(this.scroller);
  }

  /** The chat's pending reviews. */
  setReviews(pending: readonly PendingReview[]): void {
    this.pending = pending;
    for (const view of this.views) cardOf(view)?.setReviews(pending);
  }

  /** Shows these items; identical objects are not drawn again. Requests can be answered if the agent is reachable. */
  show(items: readonly Item[], isReachable: boolean): void {
    if (isReachable !== this.isReachable) {
      this.isReachable = isReachable;
      for (const view of this.views) cardOf(view)?.setReachable(isReachable);
    }
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
      cardOf(view)?.setReachable(this.isReachable);
      cardOf(view)?.setReviews(this.pending);
      this.views.push(view);
      this.list.append(view.element);
    }
    this.items = items;
  }

  /** Offers to rewind the conversation, or not. */
  offerRewind(isPossible: boolean): void {
    this.list.classList.toggle("can-rewind", isPossible);
  }

  /** Open permission requests, oldest first. */
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
    // A hidden view has no height; that is not scrolling.
    if (clientHeight === 0) return;
    // Only the user scrolls up; a smaller view keeps its position.
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
