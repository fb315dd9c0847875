// How a pending change appears: the setting `alongside.review.open`, with the same values as in other editors.

import * as vscode from "vscode";
import type { Reviews } from "../reviews";
import type { OpenReviews } from "./open-reviews";
import type { ReviewTabs } from "./tabs";

/** After this long without an edit, a tab that opens does not disturb. In milliseconds. */
const QUIET = 2000;

export class Opening implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private lastEdit = 0;

  constructor(
    private readonly reviews: Reviews,
    private readonly open: OpenReviews,
    private readonly tabs: ReviewTabs,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      reviews.onOpened(({ id }) => this.present(id, this.how())),
      reviews.onClosed(() => {
        // Never with the focus: a second Ctrl+Enter must not accept it.
        const [next] = reviews.pending;
        if (next && this.how() !== "notify") this.present(next.id, "view");
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === vscode.window.activeTextEditor?.document) this.lastEdit = Date.now();
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private how(): "notify" | "view" | "focus" {
    const wanted = vscode.workspace.getConfiguration("alongside").get<string>("review.open");
    if (wanted === "view" || wanted === "focus") return wanted;
    // Agents run in terminals.
    const isQuiet = vscode.window.terminals.length > 0 || Date.now() - this.lastEdit >= QUIET;
    return wanted === "auto" && isQuiet ? "view" : "notify";
  }

  /** Shows one change at a time; the status bar counts the others. */
  private present(id: number, how: "notify" | "view" | "focus"): void {
    if (how === "notify" || this.open.all.some(({ hasTab }) => hasTab)) return;
    this.tabs.show(id, how === "focus").catch((error: unknown) => {
      // Closed in between.
      if (this.reviews.get(id)) this.log.warn(`cannot show review ${id}: ${error}`);
    });
  }
}
