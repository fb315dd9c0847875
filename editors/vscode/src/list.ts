// The list of pending changes in the side bar, with a badge.

import * as vscode from "vscode";
import { agentLabel, count, fileName, sizeLabel } from "./format";
import type { ReviewSummary } from "./protocol";
import type { Reviews } from "./reviews";

export class List implements vscode.TreeDataProvider<ReviewSummary>, vscode.Disposable {
  readonly onDidChangeTreeData: vscode.Event<void>;
  private readonly view: vscode.TreeView<ReviewSummary>;
  private readonly subscription: vscode.Disposable;

  constructor(private readonly reviews: Reviews) {
    this.onDidChangeTreeData = reviews.onChanged;
    this.view = vscode.window.createTreeView("alongside.reviews", { treeDataProvider: this });
    this.subscription = reviews.onChanged(() => {
      const number = reviews.pending.length;
      this.view.badge = number > 0 ? { value: number, tooltip: count(number, "pending change") } : undefined;
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
  }

  getChildren(parent?: ReviewSummary): ReviewSummary[] {
    return parent ? [] : this.reviews.pending;
  }

  getTreeItem(review: ReviewSummary): vscode.TreeItem {
    const agent = agentLabel(review.agent, review.agentVersion);
    const item = new vscode.TreeItem(vscode.Uri.file(review.path));
    item.id = `${review.id}`;
    item.label = fileName(review.path);
    const state = review.conflicts > 0 ? "conflict" : review.edited ? "edited" : review.newFile ? "new" : "";
    item.description = [sizeLabel(review), state, agent].filter((part) => part !== "").join(" \u00b7 ");
    item.tooltip = `${review.path}\n${agent} proposed this change`;
    item.contextValue = review.takesReason ? "review.takesReason" : "review";
    item.command = { title: "Review", command: "alongside.review", arguments: [review] };
    return item;
  }
}
