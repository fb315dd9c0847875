// Conflicts as errors in the draft: they must be resolved before the change can be accepted.

import * as vscode from "vscode";
import type { Hunk } from "../protocol";
import type { OpenReview } from "./open-review";
import type { OpenReviews } from "./open-reviews";

export class Conflicts implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("alongside");
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly reviews: OpenReviews) {
    this.subscriptions = [
      reviews.onChanged(() => this.update()),
      reviews.onClosed(({ draftUri }) => this.collection.delete(draftUri)),
      this.collection,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private update(): void {
    for (const review of this.reviews.all) {
      const found = review.draft.hunks.filter(({ state }) => state === "conflict").map((hunk) => diagnostic(review, hunk));
      if (found.length > 0 || this.collection.has(review.draftUri)) this.collection.set(review.draftUri, found);
    }
  }
}

function diagnostic({ draft }: OpenReview, hunk: Hunk): vscode.Diagnostic {
  const { first, end } = draft.linesOf(hunk);
  const range = new vscode.Range(first, 0, Math.max(first, end - 1), Number.MAX_SAFE_INTEGER);
  const message = "The file also changed here. Keep your text, or use the agent\u2019s or the file\u2019s version.";
  const result = new vscode.Diagnostic(range, message, vscode.DiagnosticSeverity.Error);
  result.source = "alongside";
  return result;
}
