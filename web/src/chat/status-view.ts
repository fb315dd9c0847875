// Above the message box: what the agent is doing, its plan, the queue and a suggestion.

import { element, replaceChildren } from "../dom";
import { count, plain } from "../format";
import { Memo } from "./memo";
import type { PlanEntry } from "./protocol";
import { openApprovals, type QueuedPrompt, type Transcript } from "./transcript";

export interface StatusListener {
  unqueue(promptId: string): void;
  toApproval(): void;
  toReviews(): void;
  fill(text: string): void;
  retry(): void;
}

/** What the page knows besides the conversation. */
export interface Surroundings {
  /** Pending reviews, and those of the chat's own agent, which waits for them. */
  readonly reviews: number;
  readonly ownReviews: number;
  /** Whether a message can reach the agent now. */
  readonly isReachable: boolean;
}

const PLAN_SIGNS: Record<string, readonly [string, string]> = {
  completed: ["\u2713", "done"],
  in_progress: ["\u25d4", "in progress"],
  pending: ["\u25cb", "to do"],
};

export class StatusView {
  readonly element: HTMLElement;
  private readonly memo = new Memo();
  private readonly line = element("div", { class: "status-line" });
  private readonly words = element("span", { class: "status-words", "data-testid": "status" });
  private readonly approval: HTMLButtonElement;
  private readonly reviews: HTMLButtonElement;
  private readonly retry: HTMLButtonElement;
  private readonly suggestion: HTMLButtonElement;
  private readonly planSummary = element("summary");
  private readonly planList = element("ol");
  private readonly plan = element("details", { class: "plan", "data-testid": "plan", hidden: true }, this.planSummary, this.planList);
  private readonly queue = element("ul", { class: "queue", "aria-label": "Queued messages", "data-testid": "queue", hidden: true });
  private shownPlan: readonly PlanEntry[] = [];
  private shownQueue: readonly QueuedPrompt[] = [];
  private started = 0;
  private problem = "";
  private around: Surroundings = { reviews: 0, ownReviews: 0, isReachable: true };
  private shown: Transcript | null = null;

  constructor(private readonly listener: StatusListener) {
    this.approval = element("button", {
      type: "button",
      class: "small attention",
      "data-testid": "to-approval",
      hidden: true,
      onclick: () => listener.toApproval(),
    });
    this.reviews = element("button", {
      type: "button",
      class: "small attention",
      "data-testid": "to-reviews",
      hidden: true,
      onclick: () => listener.toReviews(),
    });
    this.suggestion = element("button", {
      type: "button",
      class: "small suggestion",
      "data-testid": "suggestion",
      hidden: true,
      onclick: () => listener.fill(this.shown?.suggestion ?? ""),
    });
    this.retry = element(
      "button",
      { type: "button", class: "small", "data-testid": "retry", hidden: true, onclick: () => listener.retry() },
      "Retry",
    );
    this.line.append(this.words, this.retry, this.approval, this.reviews, this.suggestion);
    this.element = element("div", { class: "chat-status" }, this.plan, this.queue, this.line);
    window.setInterval(() => this.showWords(), 1000);
  }

  show(shown: Transcript, around: Surroundings): void {
    const waiting = openApprovals(shown).length;
    const { reviews, ownReviews, isReachable } = around;
    if (!this.memo.isNew(shown.turn, shown.plan, shown.queue, shown.suggestion, waiting, reviews, ownReviews, isReachable)) return;
    this.around = around;
    if (shown.turn?.promptId !== this.shown?.turn?.promptId) this.started = performance.now();
    this.shown = shown;
    this.showPlan(shown.plan);
    this.showQueue(shown.queue);
    this.approval.hidden = waiting === 0;
    this.approval.textContent = waiting === 1 ? "The agent needs your answer \u2191" : `${count(waiting, "request")} from the agent \u2191`;
    this.reviews.hidden = reviews === 0;
    this.reviews.textContent = `${count(reviews, "change")} to review`;
    this.suggestion.hidden = shown.suggestion === "" || shown.turn !== null || !isReachable;
    this.suggestion.textContent = plain(shown.suggestion);
    this.suggestion.title = "Use this suggestion (\u2192 in an empty message)";
    this.showWords();
  }

  /** Shows a problem until the next action; with a Retry button if the message in the box was not sent. */
  showProblem(problem: string, canRetry = false): void {
    this.problem = problem;
    this.retry.hidden = !canRetry;
    this.showWords();
  }

  private showWords(): void {
    const turn = this.shown?.turn;
    const isWorking = turn !== null && turn !== undefined && this.around.isReachable;
    const words = this.problem || (isWorking ? this.doing(turn.cancelling) : "");
    if (this.words.textContent !== words) this.words.textContent = words;
    this.words.classList.toggle("problem", this.problem !== "");
    this.line.classList.toggle("busy", isWorking && this.problem === "");
  }

  private doing(isCancelling: boolean): string {
    if (isCancelling) return "Cancelling\u2026";
    if (!this.approval.hidden) return "Waiting for your answer";
    if (this.around.ownReviews > 0) return "Waiting for your review";
    const seconds = Math.round((performance.now() - this.started) / 1000);
    return seconds >= 3 ? `Working \u00b7 ${seconds} s` : "Working\u2026";
  }

  private showPlan(entries: readonly PlanEntry[]): void {
    if (entries === this.shownPlan) return;
    this.shownPlan = entries;
    const done = entries.filter(({ status }) => status === "completed").length;
    this.plan.hidden = entries.length === 0;
    const now = entries.find(({ status }) => status === "in_progress") ?? entries.find(({ status }) => status !== "completed");
    replaceChildren(
      this.planSummary,
      element("span", {}, "Plan"),
      element("span", { class: "badge" }, `${done} / ${entries.length}`),
      element("span", { class: "plan-now" }, now ? plain(now.content) : "all done"),
    );
    replaceChildren(
      this.planList,
      ...entries.map(({ content, status }) => {
        const [sign, words] = PLAN_SIGNS[status] ?? ["\u25cb", status];
        return element(
          "li",
          { "data-status": status },
          element("span", { class: "sign", role: "img", "aria-label": plain(words) }, sign),
          plain(content),
        );
      }),
    );
  }

  private showQueue(queue: readonly QueuedPrompt[]): void {
    if (queue === this.shownQueue) return;
    this.shownQueue = queue;
    this.queue.hidden = queue.length === 0;
    replaceChildren(
      this.queue,
      ...queue.map(({ promptId, text }) =>
        element(
          "li",
          { "data-testid": "queued", "data-prompt": promptId },
          element("span", { class: "chip" }, "queued"),
          element("span", { class: "queued-text" }, plain(text.slice(0, 300))),
          element(
            "button",
            {
              type: "button",
              class: "quiet small",
              "data-testid": "unqueue",
              "aria-label": `Remove from queue: ${plain(text.slice(0, 60))}`,
              onclick: () => this.listener.unqueue(promptId),
            },
            "\u2715",
          ),
        ),
      ),
    );
  }
}
