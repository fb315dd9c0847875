// Code lenses above each hunk, and on the first line for the whole change.

import * as vscode from "vscode";
import type { Hunk } from "../protocol";
import { choices, stateLabel } from "./hunks";
import { DRAFT_SCHEME, type OpenReview } from "./open-review";
import type { OpenReviews } from "./open-reviews";

export class Lenses implements vscode.CodeLensProvider {
  readonly onDidChangeCodeLenses: vscode.Event<void>;

  constructor(private readonly reviews: OpenReviews) {
    this.onDidChangeCodeLenses = reviews.onChanged;
  }

  register(): vscode.Disposable {
    return vscode.languages.registerCodeLensProvider({ scheme: DRAFT_SCHEME }, this);
  }

  provideCodeLenses({ uri, lineCount }: vscode.TextDocument): vscode.CodeLens[] {
    const review = this.reviews.find(uri);
    if (!review) return [];
    const last = Math.max(0, lineCount - 1);
    return [...ofReview(review), ...review.draft.hunks.flatMap((hunk) => ofHunk(review, hunk, last))];
  }
}

function ofReview(review: OpenReview): vscode.CodeLens[] {
  const arguments_ = [review.draftUri];
  return [
    ...review.texts.notes.map((note) => lens(0, { title: `$(info) ${note}`, command: "" })),
    lens(0, { title: "$(check) Accept change", command: "alongside.accept", arguments: arguments_ }),
    lens(0, { title: "$(close) Reject change", command: "alongside.reject", arguments: arguments_ }),
  ];
}

function ofHunk(review: OpenReview, hunk: Hunk, last: number): vscode.CodeLens[] {
  const line = Math.min(review.draft.linesOf(hunk).first, last);
  return [
    lens(line, { title: stateLabel(hunk), command: "" }),
    ...choices(hunk).map(({ title, decision }) =>
      lens(line, { title, command: "alongside.decideHunk", arguments: [review.id, hunk.id, decision] }),
    ),
  ];
}

function lens(line: number, command: vscode.Command): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command);
}
