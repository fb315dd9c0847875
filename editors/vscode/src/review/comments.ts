// Comments on lines of a draft: the reason for rejecting, for agents that accept one.

import * as vscode from "vscode";
import type { OpenReview } from "./open-review";
import type { OpenReviews } from "./open-reviews";

export class Comments implements vscode.CommentingRangeProvider, vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("alongside", "Reasons for rejecting");
  private readonly threads = new Set<vscode.CommentThread>();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly reviews: OpenReviews) {
    this.controller.commentingRangeProvider = this;
    this.controller.options = { prompt: "Why this is wrong", placeHolder: "Sent to the agent when you reject the change" };
    this.subscription = reviews.onClosed((review) => {
      for (const thread of this.of(review)) this.remove(thread);
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.controller.dispose();
  }

  provideCommentingRanges({ uri, lineCount }: vscode.TextDocument): vscode.Range[] {
    const review = this.reviews.find(uri);
    return review?.texts.takesReason ? [new vscode.Range(0, 0, Math.max(0, lineCount - 1), 0)] : [];
  }

  add({ thread, text }: vscode.CommentReply): void {
    const body = text.trim();
    if (body === "") return;
    const comment: vscode.Comment = { body, mode: vscode.CommentMode.Preview, author: { name: "You" } };
    thread.comments = [...thread.comments, comment];
    thread.canReply = true;
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Expanded;
    this.threads.add(thread);
  }

  remove(thread: vscode.CommentThread): void {
    this.threads.delete(thread);
    thread.dispose();
  }

  /** The reason with the comments on a review's lines, in the order of the lines. */
  reason(id: number, reason?: string): string | undefined {
    const review = this.reviews.byReview(id);
    const notes = review
      ? this.of(review)
          .sort((one, other) => lineOf(one) - lineOf(other))
          .flatMap((thread) =>
            thread.comments.map(({ body }) => `Line ${lineOf(thread) + 1}: ${typeof body === "string" ? body : body.value}`),
          )
      : [];
    const all = [...(reason ? [reason] : []), ...notes];
    return all.length > 0 ? all.join("\n") : undefined;
  }

  private of({ draftUri }: OpenReview): vscode.CommentThread[] {
    return [...this.threads].filter(({ uri }) => uri.toString() === draftUri.toString());
  }
}

function lineOf({ range }: vscode.CommentThread): number {
  return range?.start.line ?? 0;
}
