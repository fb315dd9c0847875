// The open review: its header with the decisions, and its texts.

import { RequestError } from "./channel";
import type { Connection } from "./connection";
import { confirmation } from "./dialogs";
import { announce, element, replaceChildren } from "./dom";
import { Draft, toText } from "./draft";
import { DraftLink } from "./draft-link";
import { acceptLabel, type Layout } from "./editor/hunks";
import { agentLabel, count, outcome, plain, splitPath } from "./format";
import { Panes } from "./panes";
import type { Edited, Outcome, ReviewSummary, ReviewTexts } from "./protocol";

/** Decisions right after a review appears are ignored: the key was meant for something else. In milliseconds. */
export const ARM_DELAY = 400;

export interface ReviewViewListener {
  /** Decided on this page. */
  decided(view: ReviewView): void;
  close(): void;
  toggleLayout(): void;
  nextReview(): void;
}

export class ReviewView {
  readonly id: number;
  readonly element: HTMLElement;
  readonly panes: Panes;
  private readonly link: DraftLink;
  private readonly notice = element("div", { class: "notice", role: "status", "data-testid": "notice", hidden: true });
  private readonly progress = element("span", { class: "progress", "data-testid": "progress" });
  private readonly unsent = element("span", { class: "unsent", "data-testid": "unsent", hidden: true }, "unsent");
  private readonly size = element("span", { class: "size", "data-testid": "review-size" });
  private readonly accept: HTMLButtonElement;
  private readonly reject: HTMLButtonElement;
  /** Only for an agent that can receive a reason. */
  private readonly reason: HTMLInputElement | null;
  private readonly layoutButton: HTMLButtonElement;
  private isOver = false;
  private isDeciding = false;
  private armed = false;

  constructor(
    private readonly connection: Connection,
    private summary: ReviewSummary,
    review: ReviewTexts,
    layout: Layout,
    folders: readonly string[],
    private readonly listener: ReviewViewListener,
  ) {
    this.id = review.id;
    const draft = new Draft(review.version, toText(review.draft));
    this.panes = new Panes(review, draft, layout, {
      edited: (changes) => this.link.edit(changes),
      decide: (hunk, decision) => void this.decideHunk(hunk.id, decision),
      moved: () => this.showProgress(),
    });
    this.link = new DraftLink(connection, review.id, draft, review.hunks, {
      changed: (changes, hunks, change) => this.panes.apply(changes, hunks, change),
      ahead: (isAhead) => (this.unsent.hidden = !isAhead),
      failed: (error) => this.notify(error.message, true),
    });
    const { folder, name } = splitPath(review.path, folders);
    const button = (testId: string, label: string, key: string, kind: string, action: () => void) =>
      element(
        "button",
        { type: "button", class: kind, "data-testid": testId, onclick: action, title: `${label} (${key})` },
        label,
        element("kbd", {}, key),
      );
    this.accept = button("accept", "Accept", "A", "primary", () => void this.decide("accept"));
    this.reject = button("reject", "Reject", "R", "danger", () => void this.decide("reject"));
    this.reason = review.takesReason
      ? element("input", {
          type: "text",
          class: "reason",
          "data-testid": "reason",
          placeholder: "Reason (optional)",
          "aria-label": "Reason for a rejection, for the agent",
          onkeydown: (event: KeyboardEvent) => {
            if (event.key === "Enter" && !event.isComposing) void this.decide("reject");
          },
        })
      : null;
    this.layoutButton = element("button", {
      type: "button",
      class: "quiet",
      "data-testid": "layout",
      onclick: () => listener.toggleLayout(),
    });
    this.showLayout(layout);
    const step = (by: 1 | -1, testId: string, label: string, sign: string) =>
      element(
        "button",
        { type: "button", class: "quiet icon", "data-testid": testId, "aria-label": label, title: label, onclick: () => this.step(by) },
        sign,
      );
    this.element = element(
      "article",
      {
        class: "review",
        "data-testid": "review",
        "data-review": review.id,
        "aria-label": `Change to ${name} by ${agentLabel(review.agent, review.agentVersion)}`,
      },
      element(
        "header",
        { class: "review-head" },
        element(
          "button",
          {
            type: "button",
            class: "quiet icon back",
            "data-testid": "back",
            "aria-label": "Back to the list",
            onclick: () => listener.close(),
          },
          "\u2190",
        ),
        element(
          "div",
          { class: "review-name" },
          element(
            "h2",
            { title: plain(review.path) },
            element("span", { class: "folder" }, folder),
            element("span", { class: "file" }, name),
          ),
          element(
            "p",
            { class: "about" },
            element("span", {}, plain(agentLabel(review.agent, review.agentVersion))),
            review.newFile && element("span", { class: "chip" }, "new file"),
            review.revision > 1 && element("span", { class: "chip" }, `revision ${review.revision}`),
            this.size,
            this.unsent,
          ),
        ),
        element(
          "div",
          { class: "steps", role: "group", "aria-label": "Hunks in this change" },
          step(-1, "previous-hunk", "Previous hunk (p)", "\u2191"),
          this.progress,
          step(1, "next-hunk", "Next hunk (n)", "\u2193"),
        ),
        this.layoutButton,
        element("div", { class: "decisions" }, this.reason, this.reject, this.accept),
      ),
      review.notes && review.notes.length > 0
        ? element(
            "ul",
            { class: "notes", "data-testid": "notes", "aria-label": "Invisible changes" },
            ...review.notes.map((note) => element("li", {}, plain(note))),
          )
        : null,
      this.notice,
      this.panes.element,
    );
    this.update(summary);
    this.showProgress();
    this.showArming();
  }

  /** Enables decisions after a delay. Call it when the review is on the page. */
  arm(): void {
    window.setTimeout(() => this.panes.warmUp(), ARM_DELAY / 2);
    window.setTimeout(() => {
      this.armed = true;
      this.showArming();
    }, ARM_DELAY);
  }

  destroy(): void {
    this.link.close();
    this.panes.destroy();
    this.element.remove();
  }

  get isAhead(): boolean {
    return !this.isOver && this.link.draft.isAhead;
  }

  /** Sends pending edits; keeps them while offline. */
  async sendEdits(): Promise<void> {
    if (this.isAhead) await this.link.flush().catch(() => undefined);
  }

  update(summary: ReviewSummary): void {
    this.summary = summary;
    const { added, removed } = summary.size;
    replaceChildren(
      this.size,
      element("span", { class: "plus" }, `+${added.toLocaleString("en")}`),
      " ",
      element("span", { class: "minus" }, `\u2212${removed.toLocaleString("en")}`),
    );
    this.accept.classList.toggle("blocked", (summary.conflicts ?? 0) > 0);
  }

  get revision(): number {
    return this.summary.revision;
  }

  showLayout(layout: Layout): void {
    this.layoutButton.replaceChildren(layout === "split" ? "Unified" : "Side by side", element("kbd", {}, "s"));
    this.layoutButton.title = layout === "split" ? "Switch to the unified view (s)" : "Switch to the side-by-side view (s)";
    this.panes.setLayout(layout);
  }

  edited(note: Edited): void {
    this.link.edited(note);
  }

  /** Updates to the companion's state after a reconnect. */
  catchUp(now: ReviewTexts): void {
    this.link.catchUp(now);
    this.update(now);
  }

  rebased(conflicts: number): void {
    this.notify(
      conflicts > 0
        ? `The file changed on disk. ${count(conflicts, "hunk")} of this change now ${conflicts === 1 ? "conflicts" : "conflict"} with it.`
        : "The file changed on disk; this change was rebased onto the new version.",
      conflicts > 0,
    );
  }

  /** Decided elsewhere. */
  closed(how: Outcome | null): void {
    if (this.isOver) return;
    const kept = this.link.draft.isAhead;
    this.end();
    const sentence = `This change is closed. ${how ? outcome(how) : "It was decided elsewhere."}`;
    this.notify(kept ? `${sentence} Your last edit did not reach the companion; you can copy it from here.` : sentence, false);
    this.notice.append(
      element(
        "button",
        { type: "button", class: "quiet", "data-testid": "next-review", onclick: () => this.listener.nextReview() },
        "Next change",
      ),
    );
    this.element.dataset["over"] = how ?? "unknown";
  }

  step(by: 1 | -1): void {
    this.panes.step(by);
    const index = this.panes.currentIndex;
    const hunk = this.panes.hunks[index]?.hunk;
    if (hunk)
      announce(
        `Hunk ${index + 1} of ${this.panes.hunks.length}, ${this.panes.stateOf(hunk)}, line ${hunk.draft.start}, ${count(hunk.draft.count, "line")} replacing ${hunk.base.count}.`,
      );
  }

  async decideCurrent(decision: "accept" | "reject"): Promise<void> {
    const { current } = this.panes;
    if (current) await this.decideHunk(current.hunk.id, decision);
  }

  /** Accepts or rejects the whole change. */
  async decide(decision: "accept" | "reject", evenIfEmpty = false): Promise<void> {
    if (this.isOver || !this.armed || this.isDeciding) return;
    this.isDeciding = true;
    this.showArming();
    try {
      if (decision === "accept") await this.link.flush();
      const reason = decision === "reject" ? this.reason?.value.trim() : "";
      const parameters = { review: this.id, ...(evenIfEmpty ? { evenIfEmpty } : {}), ...(reason ? { reason } : {}) };
      // Set before the response, so that the notification of our own decision is not treated as another client's.
      this.isOver = true;
      await this.connection.request(`review/${decision}`, parameters);
      this.end();
      announce(decision === "accept" ? "Accepted." : "Rejected.");
      this.listener.decided(this);
    } catch (error) {
      this.isOver = false;
      this.isDeciding = false;
      this.showArming();
      await this.explain(error, decision);
    }
  }

  private async explain(error: unknown, decision: "accept" | "reject"): Promise<void> {
    const kind = error instanceof RequestError ? error.kind : "";
    const sentence = error instanceof Error ? error.message : String(error);
    if (kind === "closed" || kind === "unknownReview") {
      this.closed(null);
    } else if (kind === "emptyMeansUnedited") {
      const anyway = await confirmation("The draft is empty", sentence, "Accept anyway");
      if (anyway) await this.decide(decision, true);
    } else if (kind === "conflicts") {
      this.notify(sentence, true);
      const conflict = this.panes.hunks.find(({ hunk }) => hunk.state === "conflict");
      if (conflict) this.panes.choose(conflict.hunk.id, true);
    } else {
      this.notify(sentence, true);
    }
  }

  private async decideHunk(hunk: number, decision: "accept" | "reject"): Promise<void> {
    if (this.isOver || !this.armed) return;
    this.panes.choose(hunk);
    try {
      await this.link.decideHunk(hunk, decision);
      this.panes.decided(hunk);
      announce(`Hunk ${decision}ed.`);
    } catch (error) {
      await this.explain(error, decision);
    }
  }

  private end(): void {
    this.isOver = true;
    this.link.close();
    this.panes.setReadOnly();
    this.showArming();
  }

  private showArming(): void {
    const inert = !this.armed || this.isOver || this.isDeciding;
    this.element.classList.toggle("arming", !this.armed);
    this.element.dataset["armed"] = String(this.armed);
    for (const button of [this.accept, this.reject]) button.setAttribute("aria-disabled", String(inert));
  }

  private showProgress(): void {
    // Also called while the panes are being constructed.
    if (!this.panes as boolean) return;
    const { hunks, currentIndex: index } = this.panes;
    const label = acceptLabel(hunks.map(({ hunk }) => hunk));
    if (this.accept.title !== `${label} (A)`) {
      this.accept.title = `${label} (A)`;
      this.accept.replaceChildren(label, element("kbd", {}, "A"));
    }
    this.progress.textContent =
      hunks.length === 0 ? "no hunks" : `${index < 0 ? "\u2013" : index + 1} / ${hunks.length.toLocaleString("en")}`;
  }

  private notify(sentence: string, isProblem: boolean): void {
    this.notice.hidden = false;
    this.notice.classList.toggle("problem", isProblem);
    replaceChildren(this.notice, element("span", {}, sentence));
  }
}
