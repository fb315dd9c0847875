// Reports open files, the focused file, its cursor and selection, and the use of this window.

import * as vscode from "vscode";
import { type Companion, workspaceFolders } from "./companion";
import { Debounce } from "./debounce";
import type { Cursor, Focus } from "./protocol";

/** What agents see of a selection at most; the companion has the same limit. */
const MAX_SELECTION = 16 * 1024;
/** The companion waits too; this spares it the intermediate positions of a held key. */
const FOCUS_DELAY_MS = 20;

export class Context implements vscode.Disposable {
  private readonly open = new Set<string>();
  private readonly debounce = new Debounce();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly companion: Companion) {
    companion.onGreeting(() => this.reportAll());
    const focus = () => this.debounce.soon("focus", FOCUS_DELAY_MS, () => this.reportFocus());
    const files = () => this.reportOpenFiles();
    const use = () => this.companion.notify("window/focus", {});
    this.subscriptions = [
      vscode.window.onDidChangeActiveTextEditor(focus),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) focus();
      }),
      vscode.window.tabGroups.onDidChangeTabs(files),
      vscode.workspace.onDidRenameFiles(files),
      vscode.workspace.onDidDeleteFiles(files),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.reportFolders()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => companion.greetAgain()),
      vscode.window.onDidChangeWindowState(({ focused }) => {
        if (focused) use();
      }),
      vscode.window.onDidChangeActiveTerminal(use),
      vscode.window.onDidChangeTerminalState(use),
      this.debounce,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** The focused file, or undefined in a review, an untitled document and other editors without a file. */
  static focus(): Focus | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.scheme !== "file") return undefined;
    const { document, selection } = editor;
    const focus: Focus = { path: document.uri.fsPath, cursor: cursor(selection.active) };
    if (selection.isEmpty) return focus;
    // Not half a surrogate pair, which is not valid JSON for every parser.
    const selectedText = document
      .getText(selection)
      .slice(0, MAX_SELECTION)
      .replace(/[\ud800-\udbff]$/, "");
    return { ...focus, selectedText, selectionStart: cursor(selection.start) };
  }

  /** Reports the focused file now, for a request that is about it. */
  reportFocus(): void {
    const focus = Context.focus();
    if (focus) this.companion.notify("context/focus", focus);
    else this.companion.notify("window/focus", {});
  }

  private reportAll(): void {
    this.open.clear();
    this.reportOpenFiles();
    this.reportFocus();
  }

  private reportOpenFiles(): void {
    const now = new Set(vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.flatMap(filesOf)));
    for (const path of this.open) {
      if (!now.has(path)) this.companion.notify("context/close", { path });
    }
    for (const path of now) {
      if (!this.open.has(path)) this.companion.notify("context/open", { path });
    }
    this.open.clear();
    for (const path of now) this.open.add(path);
  }

  private reportFolders(): void {
    const folders = workspaceFolders();
    if (!this.companion.welcome) this.companion.start();
    else if (folders.length > 0) this.companion.notify("workspace/set", { folders });
  }
}

function filesOf({ input }: vscode.Tab): string[] {
  const isOnDisk =
    input instanceof vscode.TabInputText || input instanceof vscode.TabInputCustom || input instanceof vscode.TabInputNotebook;
  if (isOnDisk) return input.uri.scheme === "file" ? [input.uri.fsPath] : [];
  if (input instanceof vscode.TabInputTextDiff) return input.modified.scheme === "file" ? [input.modified.fsPath] : [];
  return [];
}

function cursor({ line, character }: vscode.Position): Cursor {
  return { line: line + 1, character: character + 1 };
}
