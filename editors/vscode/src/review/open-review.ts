// A review that is shown in a diff: its texts, and the document with the draft.

import * as vscode from "vscode";
import { type DraftEditor, EditedDraft } from "../drafts";
import type { Requester, ReviewTexts } from "../protocol";
import { type Replacement, ShownText } from "../text";

export const BASE_SCHEME = "alongside-base";
export const DRAFT_SCHEME = "alongside-review";

let opened = 0;

export class OpenReview implements DraftEditor {
  readonly baseUri: vscode.Uri;
  readonly draftUri: vscode.Uri;
  readonly draft: EditedDraft;
  /** Whether the draft can be edited: VS Code treats provided documents as read-only at first. */
  isWritable = false;
  /** Whether the review has a tab of its own: closing it rejects the review. */
  hasTab = false;
  /** Whether the review is decided, so that closing its tab means nothing. */
  isOver = false;
  private base: ShownText;

  constructor(
    connection: Requester,
    public texts: ReviewTexts,
    changed: (review: OpenReview) => void,
    failed: (error: Error) => void,
  ) {
    // The path is the file's own, so that the language and the icon are too. The number keeps VS Code from showing a cached text.
    opened += 1;
    const file = vscode.Uri.file(texts.path);
    const query = `review=${texts.id}.${opened}`;
    this.baseUri = file.with({ scheme: BASE_SCHEME, query });
    this.draftUri = file.with({ scheme: DRAFT_SCHEME, query });
    this.base = new ShownText(texts.base ?? "");
    this.draft = new EditedDraft(connection, texts, { changed: () => changed(this), failed });
  }

  get id(): number {
    return this.texts.id;
  }

  content(uri: vscode.Uri): string {
    return uri.scheme === BASE_SCHEME ? this.base.content : this.draft.content;
  }

  /** The companion's state, fetched again. Returns whether the base has changed. */
  catchUp(now: ReviewTexts): boolean {
    const before = this.base;
    this.texts = now;
    this.base = new ShownText(now.base ?? "");
    this.draft.catchUp(now);
    return before.lines !== this.base.lines;
  }

  async replace({ start, end, text }: Replacement): Promise<boolean> {
    const edit = new vscode.WorkspaceEdit();
    edit.replace(this.draftUri, new vscode.Range(start.line, start.character, end.line, end.character), text);
    return vscode.workspace.applyEdit(edit);
  }
}
