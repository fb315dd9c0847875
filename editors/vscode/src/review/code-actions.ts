// Quick fixes for the hunk at the cursor.

import * as vscode from "vscode";
import { choices } from "./hunks";
import { DRAFT_SCHEME } from "./open-review";
import type { OpenReviews } from "./open-reviews";

export class HunkActions implements vscode.CodeActionProvider {
  constructor(private readonly reviews: OpenReviews) {}

  register(): vscode.Disposable {
    const kinds = { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] };
    return vscode.languages.registerCodeActionsProvider({ scheme: DRAFT_SCHEME }, this, kinds);
  }

  provideCodeActions({ uri }: vscode.TextDocument, range: vscode.Range, context: vscode.CodeActionContext): vscode.CodeAction[] {
    const review = this.reviews.find(uri);
    const hunk = review?.draft.hunkAt(range.start.line);
    if (!review || !hunk) return [];
    return choices(hunk).map(({ title, decision }) => {
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      action.command = { title, command: "alongside.decideHunk", arguments: [review.id, hunk.id, decision] };
      if (hunk.state === "conflict") action.diagnostics = context.diagnostics.filter(({ source }) => source === "alongside");
      return action;
    });
  }
}
