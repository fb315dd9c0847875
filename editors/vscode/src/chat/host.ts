// The chat as a view in the side bar. Its webview has the page's own chat, and talks to nothing but this.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { EditorState } from "../../../../web/src/webview-messages";
import { type Companion, workspaceFolders } from "../companion";
import type { Reviews } from "../reviews";
import { chatHtml } from "./html";
import { ChatLink, FORWARDED } from "./link";

export const CHAT_VIEW = "alongside.chat";

export interface ChatHostOptions {
  readonly extension: vscode.Uri;
  readonly companion: Companion;
  readonly reviews: Reviews;
  readonly log: vscode.LogOutputChannel;
  /** The daemon's token, if there is one. */
  token(): string | undefined;
}

export class ChatHost implements vscode.WebviewViewProvider, vscode.Disposable {
  private link: ChatLink | null = null;
  private run = 0;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly options: ChatHostOptions) {
    const { companion, reviews } = options;
    for (const name of FORWARDED) companion.on(name, (params) => this.link?.forward(name, params));
    this.subscriptions = [
      vscode.window.registerWebviewViewProvider(CHAT_VIEW, this),
      companion.onReady(() => {
        this.run++;
        this.link?.stateChanged();
      }),
      companion.onEnded(() => this.link?.stateChanged()),
      reviews.onChanged(() => this.link?.stateChanged()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.link?.stateChanged()),
    ];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const { extension, companion, log, token } = this.options;
    const { webview } = view;
    const files = vscode.Uri.joinPath(extension, "dist");
    const link = new ChatLink(companion, (message) => void webview.postMessage(message), {
      state: () => this.state(),
      openReview: ({ review }) =>
        void vscode.commands.executeCommand("alongside.review", review === undefined ? undefined : { id: review }),
      waiting: (count) => {
        view.badge = count > 0 ? { value: count, tooltip: "The agent is waiting for your answer" } : undefined;
      },
      startCompanion: () => void vscode.commands.executeCommand("alongside.start"),
      token: () => token(),
      log: (line) => log.warn(line),
    });
    this.link = link;
    webview.options = { enableScripts: true, localResourceRoots: [files] };
    webview.onDidReceiveMessage((message: unknown) => link.receive(message));
    // A hidden view is unloaded. It fetches everything again when it is shown, and keeps an unsent message itself.
    view.onDidChangeVisibility(() => {
      if (!view.visible) link.hidden();
    });
    view.onDidDispose(() => {
      if (this.link === link) this.link = null;
    });
    companion.enableChat();
    webview.html = chatHtml({
      source: webview.cspSource,
      script: webview.asWebviewUri(vscode.Uri.joinPath(files, "chat.js")).toString(),
      styles: webview.asWebviewUri(vscode.Uri.joinPath(files, "chat.css")).toString(),
      nonce: randomBytes(16).toString("hex"),
    });
  }

  private state(): EditorState {
    const { companion, reviews } = this.options;
    return {
      companion: companion.welcome ? "running" : companion.isStarting ? "starting" : "stopped",
      run: this.run,
      folders: workspaceFolders(),
      reviews: reviews.pending.map(({ id, path, session }) => ({ id, path, session })),
    };
  }
}
