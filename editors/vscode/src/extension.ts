// Terminal coding agents alongside VS Code: a thin layer over `alongside bridge`. All decisions are the companion's.

import * as vscode from "vscode";
import type { BridgeEnd } from "./bridge";
import { Buffers } from "./buffers";
import { ChatHost } from "./chat/host";
import { registerCommands } from "./commands";
import { Companion } from "./companion";
import { Context } from "./context";
import { Daemon } from "./daemon";
import { Diagnostics } from "./diagnostics";
import { reportDuplicates } from "./duplicates";
import { fileName, messageOf, outcomeLabel } from "./format";
import { List } from "./list";
import { HunkActions } from "./review/code-actions";
import { registerReviewCommands } from "./review/commands";
import { Comments } from "./review/comments";
import { Conflicts } from "./review/conflicts";
import { Decisions } from "./review/decisions";
import { Lenses } from "./review/lenses";
import { OpenReviews } from "./review/open-reviews";
import { Opening } from "./review/opening";
import { ReviewTabs } from "./review/tabs";
import { Reviews } from "./reviews";
import { showFile } from "./show-file";
import { StatusBar } from "./status-bar";
import { Terminals } from "./terminals";

const MESSAGE_MS = 5000;

let companion: Companion | undefined;

export function activate(extension: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Alongside", { log: true });
  const daemon = new Daemon(extension.secrets, log);
  const running = new Companion(extension.extensionUri, log, () => daemon.environment());
  companion = running;
  // Unsaved text first: a restarted companion compares its reviews with it.
  const buffers = new Buffers(running);
  const context = new Context(running);
  const reviews = new Reviews(running);
  const open = new OpenReviews(running, reviews, log);
  const tabs = new ReviewTabs(open, reviews);
  const comments = new Comments(open);
  const decisions = new Decisions(running, open, comments);

  tabs.onClosedByUser(async (review) => {
    // Refused because the review has only just appeared: it stays pending.
    if (!(await decisions.reject(review.id))) open.drop(review.id);
  });
  reviews.onClosed(({ path, outcome }) => {
    vscode.window.setStatusBarMessage(`${fileName(path)}: ${outcomeLabel(outcome)}`, MESSAGE_MS);
  });
  running.on("review/rebased", ({ conflicts }) => {
    if (conflicts === 0) return;
    void vscode.window.showWarningMessage("The file changed in the same place as a pending change; check the draft.");
  });
  running.on("problems/changed", ({ problems }) => {
    for (const problem of problems) void vscode.window.showErrorMessage(`alongside: ${problem}`);
  });
  running.on("file/show", (target) => {
    showFile(target).catch((error: unknown) => log.warn(`cannot show ${target.path}: ${messageOf(error)}`));
  });
  running.onReady(({ isRestart }) => {
    if (isRestart) vscode.window.setStatusBarMessage("$(info) The companion crashed and was restarted", MESSAGE_MS);
  });
  running.onEnded((end) => explain(end, log));

  // VS Code shows an error thrown by a command in a modal dialog.
  const register = (name: string, action: (...parameters: never[]) => unknown) => {
    const guarded = async (...parameters: never[]) => {
      try {
        await action(...parameters);
      } catch (error) {
        log.error(`${name}: ${error instanceof Error ? error.stack : error}`);
        void vscode.window.showWarningMessage(`alongside: ${messageOf(error)}`);
      }
    };
    extension.subscriptions.push(vscode.commands.registerCommand(name, guarded));
  };
  registerCommands(register, running, context, reviews, log);
  registerReviewCommands(register, { reviews, open, tabs, decisions, comments });
  register("alongside.storeDaemonToken", () => daemon.storeToken());
  register("alongside.deleteDaemonToken", () => daemon.deleteToken());
  const chat = new ChatHost({ extension: extension.extensionUri, companion: running, reviews, log, token: () => daemon.token });

  extension.subscriptions.push(
    ...[log, buffers, context, new Diagnostics(running), new Terminals(running, extension.environmentVariableCollection)],
    ...[
      open,
      tabs,
      comments,
      new Opening(reviews, open, tabs, log),
      new Conflicts(open),
      new Lenses(open).register(),
      new HunkActions(open).register(),
    ],
    ...[reviews, new List(reviews), new StatusBar(running, reviews), chat, daemon],
  );
  const autostart = () => {
    if (vscode.workspace.getConfiguration("alongside").get("autostart", true)) running.start();
  };
  extension.subscriptions.push(
    // A companion that could not be started, because the path was wrong or not known yet: a remote window may learn it later.
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("alongside.path")) autostart();
    }),
  );
  daemon.onChanged(() => void running.restart());
  // The token is read first: the companion gets it with its environment.
  void daemon.load().then(autostart);
  reportDuplicates(extension.globalState).catch((error: unknown) => log.warn(messageOf(error)));
}

export async function deactivate(): Promise<void> {
  await companion?.leave();
}

function explain(end: BridgeEnd, log: vscode.LogOutputChannel): void {
  if (end.reason === "stopped") return;
  log.error(end.message);
  const [settings, output] = ["Open settings", "Show log"];
  const buttons = end.reason === "notFound" ? [settings, output] : [output];
  vscode.window.showErrorMessage(`alongside: ${end.message}`, ...buttons).then((chosen) => {
    if (chosen === settings) void vscode.commands.executeCommand("workbench.action.openSettings", "alongside.path");
    else if (chosen === output) log.show();
  });
}
