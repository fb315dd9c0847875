// Accepts and rejects reviews and hunks, and shows why the companion refused.

import * as vscode from "vscode";
import { RequestError } from "../bridge";
import type { Companion } from "../companion";
import { messageOf } from "../format";
import type { Hunk, HunkAction } from "../protocol";
import type { Comments } from "./comments";
import type { OpenReviews } from "./open-reviews";

const MESSAGE_MS = 4000;

export class Decisions {
  constructor(
    private readonly companion: Companion,
    private readonly reviews: OpenReviews,
    private readonly comments: Comments,
  ) {}

  async accept(id: number, evenIfEmpty = false): Promise<void> {
    try {
      // The companion's draft is what gets accepted.
      await this.reviews.byReview(id)?.draft.flush();
      await this.companion.request("review/accept", { review: id, ...(evenIfEmpty ? { evenIfEmpty } : {}) });
    } catch (error) {
      if (kindOf(error) !== "emptyMeansUnedited") return report(error);
      const chosen = await vscode.window.showWarningMessage(messageOf(error), "Accept anyway");
      if (chosen) await this.accept(id, true);
    }
  }

  /** Rejects a review; returns whether it is over. Comments on its lines are sent with the reason. */
  async reject(id: number, reason?: string): Promise<boolean> {
    try {
      const full = this.comments.reason(id, reason);
      await this.companion.request("review/reject", { review: id, ...(full ? { reason: full } : {}) });
      return true;
    } catch (error) {
      report(error);
      return kindOf(error) === "closed" || kindOf(error) === "unknownReview";
    }
  }

  async decideHunk(id: number, hunk: Hunk["id"], decision: HunkAction): Promise<void> {
    try {
      await this.reviews.byReview(id)?.draft.decideHunk(hunk, decision);
    } catch (error) {
      report(error);
    }
  }
}

function kindOf(error: unknown): string {
  return error instanceof RequestError ? error.kind : "failed";
}

function report(error: unknown): void {
  switch (kindOf(error)) {
    // Already decided elsewhere: its tab closes.
    case "closed":
    case "unknownReview":
      return;
    // The key was probably meant for something else. The next one decides.
    case "tooSoon":
      vscode.window.setStatusBarMessage("$(info) This change has only just appeared; decide again", MESSAGE_MS);
      return;
    default:
      void vscode.window.showWarningMessage(`alongside: ${messageOf(error)}`);
  }
}
