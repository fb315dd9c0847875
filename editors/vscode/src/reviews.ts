// The pending reviews, as the companion reports them.

import * as vscode from "vscode";
import type { Companion } from "./companion";
import { Debounce } from "./debounce";
import type { Notifications, ReviewSummary } from "./protocol";

/** After an edit, sizes and states in the list are fetched again this much later. In milliseconds. */
const SUMMARY_DELAY = 200;

export class Reviews implements vscode.Disposable {
  private readonly debounce = new Debounce();
  private readonly byId = new Map<number, ReviewSummary>();
  private readonly changedEmitter = new vscode.EventEmitter<void>();
  private readonly openedEmitter = new vscode.EventEmitter<ReviewSummary>();
  private readonly updatedEmitter = new vscode.EventEmitter<ReviewSummary>();
  private readonly closedEmitter = new vscode.EventEmitter<Notifications["review/closed"]>();
  private readonly refreshedEmitter = new vscode.EventEmitter<void>();

  /** The list has changed. */
  readonly onChanged = this.changedEmitter.event;
  readonly onOpened = this.openedEmitter.event;
  /** A review has a new revision or a new base. */
  readonly onUpdated = this.updatedEmitter.event;
  readonly onClosed = this.closedEmitter.event;
  /** All reviews were fetched again; any may have changed. */
  readonly onRefreshed = this.refreshedEmitter.event;

  constructor(private readonly companion: Companion) {
    companion.on("review/opened", (review) => {
      this.byId.set(review.id, review);
      this.changedEmitter.fire();
      this.openedEmitter.fire(review);
    });
    companion.on("review/changed", (review) => {
      this.byId.set(review.id, review);
      this.changedEmitter.fire();
      this.updatedEmitter.fire(review);
    });
    companion.on("review/closed", (closed) => {
      this.byId.delete(closed.review);
      this.changedEmitter.fire();
      this.closedEmitter.fire(closed);
    });
    companion.on("review/edited", () => this.debounce.soon("summaries", SUMMARY_DELAY, () => void this.refreshSummaries()));
    companion.on("resync", () => this.refresh());
    companion.onReady(() => this.refresh());
    companion.onEnded(() => this.replace([]));
  }

  dispose(): void {
    this.debounce.dispose();
  }

  /** The pending reviews, oldest first. */
  get pending(): ReviewSummary[] {
    return [...this.byId.values()].sort((one, other) => one.id - other.id);
  }

  get(id: number): ReviewSummary | undefined {
    return this.byId.get(id);
  }

  /** An edit changes how large a change is, but not which ones are pending. */
  private async refreshSummaries(): Promise<void> {
    try {
      for (const review of await this.companion.request("review/list")) {
        if (this.byId.has(review.id)) this.byId.set(review.id, review);
      }
      this.changedEmitter.fire();
    } catch {
      // As below.
    }
  }

  private async refresh(): Promise<void> {
    try {
      this.replace(await this.companion.request("review/list"));
    } catch {
      // The companion has stopped; the next one is asked when it is ready.
    }
  }

  private replace(reviews: readonly ReviewSummary[]): void {
    this.byId.clear();
    for (const review of reviews) this.byId.set(review.id, review);
    this.changedEmitter.fire();
    this.refreshedEmitter.fire();
  }
}
