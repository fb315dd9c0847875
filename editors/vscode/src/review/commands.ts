// Commands on reviews and hunks. Each finds its review by what it was started from.

import * as vscode from "vscode";
import type { Hunk, HunkAction } from "../protocol";
import type { Reviews } from "../reviews";
import type { Comments } from "./comments";
import type { Decisions } from "./decisions";
import type { OpenReview } from "./open-review";
import type { OpenReviews } from "./open-reviews";
import { pickReview } from "./pick";
import type { ReviewTabs } from "./tabs";

/** What VS Code passes to a command: a title button's URI, a line number, or an item of the list. */
type Origin = vscode.Uri | { readonly lineNumber: number; readonly uri: vscode.Uri } | { readonly id: number } | undefined;

export interface ReviewParts {
  readonly reviews: Reviews;
  readonly open: OpenReviews;
  readonly tabs: ReviewTabs;
  readonly decisions: Decisions;
  readonly comments: Comments;
}

type Register = (name: string, action: (...parameters: never[]) => unknown) => void;

export function registerReviewCommands(register: Register, parts: ReviewParts): void {
  const { reviews, open, tabs, decisions, comments } = parts;

  const idOf = (origin: Origin): number | undefined => {
    if (origin && "id" in origin) return origin.id;
    if (origin instanceof vscode.Uri) return open.find(origin)?.id;
    return (origin ? open.find(origin.uri) : tabs.active)?.id;
  };
  const pick = async (): Promise<void> => {
    const id = (await pickReview(reviews.pending))?.id;
    if (id !== undefined) await tabs.show(id, true);
  };
  /** The review that a command is about. If none is open here, the user sees one before deciding anything. */
  const choose = async (origin: Origin): Promise<number | undefined> => {
    const id = idOf(origin);
    if (id === undefined) await pick();
    return id;
  };

  register("alongside.review", async (origin: Origin) => {
    const id = origin && idOf(origin);
    if (id === undefined) await pick();
    else await tabs.show(id, true);
  });
  register("alongside.showAll", async () => {
    const ids = reviews.pending.map(({ id }) => id);
    if (ids.length > 0) await tabs.showAll(ids);
    else void vscode.window.showInformationMessage("No pending changes.");
  });
  register("alongside.accept", async (origin: Origin) => {
    const id = await choose(origin);
    if (id !== undefined) await decisions.accept(id);
  });
  register("alongside.reject", async (origin: Origin) => {
    const id = await choose(origin);
    if (id !== undefined) await decisions.reject(id);
  });
  register("alongside.rejectWithReason", async (origin: Origin) => {
    const id = await choose(origin);
    const review = id === undefined ? undefined : reviews.get(id);
    if (!review) return;
    if (!review.takesReason) {
      void vscode.window.showInformationMessage(`${review.agent} does not accept a reason; reject without one.`);
      return;
    }
    const reason = await vscode.window.showInputBox({ title: "Reject change", prompt: `Reason for ${review.agent}` });
    if (reason !== undefined) await decisions.reject(review.id, reason.trim());
  });

  /** The hunk at the line of a menu, or at the cursor. */
  const hunkAt = (origin: Origin): [OpenReview, Hunk] | undefined => {
    const editor = vscode.window.activeTextEditor;
    const isLine = origin !== undefined && "lineNumber" in origin;
    const uri = isLine ? origin.uri : editor?.document.uri;
    const line = isLine ? origin.lineNumber - 1 : editor?.selection.active.line;
    const review = uri && open.find(uri);
    const hunk = review && line !== undefined ? review.draft.hunkAt(line) : undefined;
    if (!review || !hunk) {
      vscode.window.setStatusBarMessage("$(info) No hunk here", 3000);
      return undefined;
    }
    return [review, hunk];
  };
  const hunkCommand = (name: string, decision: HunkAction) =>
    register(name, async (origin: Origin) => {
      const [review, hunk] = hunkAt(origin) ?? [];
      if (review && hunk) await decisions.decideHunk(review.id, hunk.id, decision);
    });
  hunkCommand("alongside.acceptHunk", "accept");
  hunkCommand("alongside.rejectHunk", "reject");
  hunkCommand("alongside.keepHunk", "keep");
  register("alongside.decideHunk", (id: number, hunk: Hunk["id"], decision: HunkAction) => decisions.decideHunk(id, hunk, decision));

  register("alongside.addComment", (reply: vscode.CommentReply) => comments.add(reply));
  register("alongside.removeComment", (thread: vscode.CommentThread) => comments.remove(thread));
  register("alongside.rejectWithComments", async (reply: vscode.CommentReply) => {
    comments.add(reply);
    const review = open.find(reply.thread.uri);
    if (review) await decisions.reject(review.id);
  });
}
