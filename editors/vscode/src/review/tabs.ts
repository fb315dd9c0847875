// The diff tabs of reviews: opens them, makes the draft editable, and notices when the user closes one.

import * as vscode from "vscode";
import { agentLabel, fileName } from "../format";
import type { Reviews } from "../reviews";
import { DRAFT_SCHEME, type OpenReview } from "./open-review";
import type { OpenReviews } from "./open-reviews";

/** A tab that is moved or replaced is closed and opened, in either order. In milliseconds. */
const MOVE_TIMEOUT = 300;

export class ReviewTabs implements vscode.Disposable {
  private readonly closedEmitter = new vscode.EventEmitter<OpenReview>();
  private readonly subscriptions: vscode.Disposable[];

  /** The user closed the last tab of a review. */
  readonly onClosedByUser = this.closedEmitter.event;

  constructor(
    private readonly reviews: OpenReviews,
    pending: Reviews,
  ) {
    this.subscriptions = [
      pending.onRefreshed(() => this.closeStale()),
      vscode.window.tabGroups.onDidChangeTabs(({ opened, closed }) => {
        for (const tab of opened) this.onOpened(tab);
        for (const tab of closed) this.onClosed(tab);
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.makeActiveWritable()),
      reviews.onClosed((review) => this.close(review)),
      this.closedEmitter,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Shows a review in a diff tab. Without `takeFocus`, the focus stays where it is. */
  async show(id: number, takeFocus: boolean): Promise<OpenReview> {
    const review = await this.reviews.open(id);
    const { agent, agentVersion, path } = review.texts;
    const title = `${fileName(path)} (${agentLabel(agent, agentVersion)})`;
    review.hasTab = true;
    await vscode.commands.executeCommand("vscode.diff", review.baseUri, review.draftUri, title, {
      preview: false,
      preserveFocus: !takeFocus,
    });
    await this.makeActiveWritable();
    return review;
  }

  /** Shows reviews in one multi-file diff. */
  async showAll(ids: readonly number[]): Promise<void> {
    const reviews = await Promise.all(ids.map((id) => this.reviews.open(id)));
    const files = reviews.map(({ texts, baseUri, draftUri }) => [vscode.Uri.file(texts.path), baseUri, draftUri]);
    await vscode.commands.executeCommand("vscode.changes", "Pending changes", files);
    this.reviews.showLensesAgain();
  }

  /** The review in the active tab. */
  get active(): OpenReview | undefined {
    const { activeTab } = vscode.window.tabGroups.activeTabGroup;
    const own = activeTab && this.reviewOf(activeTab);
    if (own) return own;
    // In a multi-file diff, whose tab says nothing about its files.
    const editor = vscode.window.activeTextEditor;
    return editor && this.reviews.find(editor.document.uri);
  }

  private reviewOf(tab: vscode.Tab): OpenReview | undefined {
    const uri = uriOf(tab);
    return uri && this.reviews.find(uri);
  }

  private tabsOf(review: OpenReview): vscode.Tab[] {
    const draft = review.draftUri.toString();
    return vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.filter((tab) => uriOf(tab)?.toString() === draft));
  }

  /** Makes the draft in the active editor editable. The command is about the active tab, which must be a review's. */
  private async makeActiveWritable(): Promise<void> {
    const { activeTab } = vscode.window.tabGroups.activeTabGroup;
    const review = activeTab && this.reviewOf(activeTab);
    if (!review || review.isWritable) return;
    // A tab is active a moment before its editor is; the command would come too early.
    const editor = vscode.window.activeTextEditor;
    review.isWritable = editor?.document.uri.toString() === review.draftUri.toString();
    if (review.isWritable) await vscode.commands.executeCommand("workbench.action.files.setActiveEditorWriteableInSession");
  }

  /** A moved tab is a new one, and read-only again. */
  private onOpened(tab: vscode.Tab): void {
    const review = this.reviewOf(tab);
    if (review) review.isWritable = false;
    void this.makeActiveWritable();
  }

  private onClosed(tab: vscode.Tab): void {
    const review = this.reviewOf(tab);
    if (!review?.hasTab) return;
    setTimeout(() => {
      if (!review.isOver && this.tabsOf(review).length === 0) this.closedEmitter.fire(review);
    }, MOVE_TIMEOUT);
  }

  /** Closes tabs whose review is not known here: an extension host that crashed has left them behind. */
  private async closeStale(): Promise<void> {
    const all = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs);
    const stale = all.filter((tab) => uriOf(tab)?.scheme === DRAFT_SCHEME && !this.reviewOf(tab));
    if (stale.length > 0) await vscode.window.tabGroups.close(stale, true);
  }

  private async close(review: OpenReview): Promise<void> {
    const tabs = this.tabsOf(review);
    if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true);
  }
}

/** What a tab shows; in a diff, on its right side. */
function uriOf({ input }: vscode.Tab): vscode.Uri | undefined {
  if (input instanceof vscode.TabInputTextDiff) return input.modified;
  return input instanceof vscode.TabInputText ? input.uri : undefined;
}
