// The reviews that are shown: provides their texts and keeps them up to date.

import * as vscode from "vscode";
import type { Companion } from "../companion";
import { messageOf } from "../format";
import type { Reviews } from "../reviews";
import { BASE_SCHEME, DRAFT_SCHEME, OpenReview } from "./open-review";

/** Positions of hunks are shown again at most this often, in milliseconds. */
const REDRAW_DELAY = 30;
/** How long VS Code moves the focus between the editors of a multi-file diff, in milliseconds. */
const FOCUS_DELAY = 1000;

export class OpenReviews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly byId = new Map<number, OpenReview>();
  private readonly opening = new Map<number, Promise<OpenReview>>();
  private readonly contentEmitter = new vscode.EventEmitter<vscode.Uri>();
  private readonly changedEmitter = new vscode.EventEmitter<void>();
  private readonly closedEmitter = new vscode.EventEmitter<OpenReview>();
  private readonly subscriptions: vscode.Disposable[];
  private redraw: NodeJS.Timeout | undefined;

  readonly onDidChange = this.contentEmitter.event;
  /** Hunks or notes of a review have changed, or a review was opened or closed. */
  readonly onChanged = this.changedEmitter.event;
  /** A review is over, or no longer shown. */
  readonly onClosed = this.closedEmitter.event;

  constructor(
    private readonly companion: Companion,
    reviews: Reviews,
    private readonly log: vscode.LogOutputChannel,
  ) {
    companion.on("review/edited", (note) => this.byId.get(note.review)?.draft.edited(note));
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(BASE_SCHEME, this),
      vscode.workspace.registerTextDocumentContentProvider(DRAFT_SCHEME, this),
      vscode.workspace.onDidOpenTextDocument((document) => this.onOpen(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.find(document.uri)?.draft.detach()),
      vscode.workspace.onDidChangeTextDocument((event) => this.onEdit(event)),
      reviews.onUpdated(({ id }) => this.update(id)),
      reviews.onClosed(({ review }) => this.drop(review)),
      reviews.onRefreshed(() => {
        for (const id of this.byId.keys()) {
          if (reviews.get(id)) void this.update(id);
          else this.drop(id);
        }
      }),
      this.contentEmitter,
      this.changedEmitter,
      this.closedEmitter,
    ];
  }

  dispose(): void {
    clearTimeout(this.redraw);
    for (const review of this.byId.values()) review.draft.close();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  get all(): readonly OpenReview[] {
    return [...this.byId.values()];
  }

  byReview(id: number): OpenReview | undefined {
    return this.byId.get(id);
  }

  /** The review whose draft this is. */
  find(uri: vscode.Uri): OpenReview | undefined {
    if (uri.scheme !== DRAFT_SCHEME) return undefined;
    const text = uri.toString();
    return this.all.find(({ draftUri }) => draftUri.toString() === text);
  }

  provideTextDocumentContent(uri: vscode.Uri): string | undefined {
    const text = uri.toString();
    const review = this.all.find(({ baseUri, draftUri }) => [baseUri, draftUri].some((own) => own.toString() === text));
    return review?.content(uri);
  }

  /** Fetches the texts of a review, unless it is open. */
  open(id: number): Promise<OpenReview> {
    const review = this.byId.get(id);
    if (review) return Promise.resolve(review);
    // Perhaps asked for a second time before the first response.
    const opening = this.opening.get(id) ?? this.fetch(id).finally(() => this.opening.delete(id));
    this.opening.set(id, opening);
    return opening;
  }

  /** Forgets a review that is over or no longer shown. */
  drop(id: number): void {
    const review = this.byId.get(id);
    if (!review) return;
    this.byId.delete(id);
    review.isOver = true;
    review.draft.close();
    this.closedEmitter.fire(review);
    this.changedEmitter.fire();
  }

  private async fetch(id: number): Promise<OpenReview> {
    const texts = await this.companion.request("review/get", { review: id });
    const review = new OpenReview(
      this.companion,
      texts,
      () => this.soon(),
      (error) => this.log.error(messageOf(error)),
    );
    this.byId.set(id, review);
    this.changedEmitter.fire();
    return review;
  }

  private async update(id: number): Promise<void> {
    const review = this.byId.get(id);
    if (!review) return;
    try {
      const now = await this.companion.request("review/get", { review: id });
      if (review.isOver) return;
      if (review.catchUp(now)) this.contentEmitter.fire(review.baseUri);
      this.changedEmitter.fire();
    } catch (error) {
      this.log.warn(`cannot fetch review ${id}: ${messageOf(error)}`);
    }
  }

  private onOpen(document: vscode.TextDocument): void {
    const review = this.find(document.uri);
    review?.draft.attach(review, document.getText());
  }

  private onEdit({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    this.find(document.uri)?.draft.editorChanged(contentChanges.map(({ range, text }) => ({ start: range.start, end: range.end, text })));
  }

  /**
   * Has VS Code ask for the lenses again. An editor that had lenses before shows their texts at first, which cannot be clicked, and if it
   * loses the focus in that moment, it asks for no others.
   */
  showLensesAgain(): void {
    setTimeout(() => this.soon(), FOCUS_DELAY);
  }

  private soon(): void {
    if (this.redraw) return;
    this.redraw = setTimeout(() => {
      this.redraw = undefined;
      this.changedEmitter.fire();
    }, REDRAW_DELAY);
  }
}
