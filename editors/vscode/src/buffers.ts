// Reports unsaved text: proposals are compared with it instead of the file on disk.

import { closeSync, openSync, readSync } from "node:fs";
import * as vscode from "vscode";
import type { Companion } from "./companion";
import { Debounce } from "./debounce";

/** Larger documents are not sent. */
const MAX_CHARS = 16 * 1024 * 1024;
const LARGE_CHARS = 512 * 1024;
const DELAY_MS = 50;
const LARGE_DELAY_MS = 1000;

export class Buffers implements vscode.Disposable {
  /** The paths whose unsaved text was sent. */
  private readonly unsaved = new Set<string>();
  private readonly debounce = new Debounce();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly companion: Companion) {
    // Before anything else: a restarted companion would otherwise rebase its reviews onto the file on disk.
    companion.onGreeting(() => {
      this.unsaved.clear();
      for (const document of vscode.workspace.textDocuments) this.report(document);
    });
    this.subscriptions = [
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.scheme !== "file") return;
        const delay = this.size(document) > LARGE_CHARS ? LARGE_DELAY_MS : DELAY_MS;
        this.debounce.soon(document.uri.toString(), delay, () => this.report(document));
      }),
      vscode.workspace.onDidOpenTextDocument((document) => this.report(document)),
      vscode.workspace.onDidSaveTextDocument((document) => this.report(document)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.clear(uri.fsPath)),
      this.debounce,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private report(document: vscode.TextDocument): void {
    const { uri } = document;
    if (uri.scheme !== "file" || document.isClosed) return;
    if (!document.isDirty || this.size(document) > MAX_CHARS) {
      this.clear(uri.fsPath);
      return;
    }
    this.unsaved.add(uri.fsPath);
    const mark = hasByteOrderMark(uri.fsPath) ? "\ufeff" : "";
    this.companion.notify("context/buffer", { path: uri.fsPath, text: mark + document.getText() });
  }

  private clear(path: string): void {
    if (this.unsaved.delete(path)) this.companion.notify("context/buffer", { path });
  }

  private size(document: vscode.TextDocument): number {
    return document.offsetAt(new vscode.Position(document.lineCount, 0));
  }
}

/** VS Code's text does not have the byte order mark, but saving writes it again. */
function hasByteOrderMark(path: string): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const start = Buffer.alloc(3);
    return readSync(file, start, 0, 3, 0) === 3 && start.equals(Buffer.from([0xef, 0xbb, 0xbf]));
  } catch {
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
