// Picks one of the pending reviews.

import * as vscode from "vscode";
import { agentLabel, fileLabel, sizeLabel } from "../format";
import type { ReviewSummary } from "../protocol";

export async function pickReview(pending: readonly ReviewSummary[]): Promise<ReviewSummary | undefined> {
  if (pending.length === 0) {
    void vscode.window.showInformationMessage("No pending changes.");
    return undefined;
  }
  if (pending.length === 1) return pending[0];
  const items = pending.map((review) => ({
    label: fileLabel(review.path),
    description: `${agentLabel(review.agent, review.agentVersion)} ${sizeLabel(review)}`,
    review,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Pending changes", matchOnDescription: true });
  return chosen?.review;
}
