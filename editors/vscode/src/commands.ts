// Commands that are not about one review.

import * as vscode from "vscode";
import type { Companion } from "./companion";
import type { Context } from "./context";
import { agentLabel, count, fileLabel, sizeLabel } from "./format";
import type { Doctor } from "./protocol";
import type { Reviews } from "./reviews";

type Register = (name: string, action: (...parameters: never[]) => unknown) => void;

interface MenuItem extends vscode.QuickPickItem {
  readonly command?: string;
  readonly argument?: unknown;
}

export function registerCommands(
  register: Register,
  companion: Companion,
  context: Context,
  reviews: Reviews,
  log: vscode.LogOutputChannel,
): void {
  register("alongside.start", () => {
    if ((vscode.workspace.workspaceFolders ?? []).length === 0) {
      void vscode.window.showInformationMessage("Open a folder first: agents look for the editor of their directory.");
      return;
    }
    companion.start();
  });
  register("alongside.stop", () => companion.stop());
  register("alongside.menu", () => showMenu(reviews));
  register("alongside.showLog", () => log.show());
  register("alongside.sendSelection", async () => {
    // The companion sends what it knows to be selected.
    context.reportFocus();
    const { agent } = await companion.request("agent/mention");
    vscode.window.setStatusBarMessage(`$(check) Sent to ${agentLabel(agent.name, agent.version)}`, 3000);
  });
  register("alongside.demo", async () => {
    const { review } = await companion.request("demo/start");
    await vscode.commands.executeCommand("alongside.review", { id: review });
  });
  register("alongside.openPage", async () => {
    if (vscode.env.remoteName !== undefined) {
      void vscode.window.showInformationMessage("The page cannot be opened from a remote window; run `alongside page` in a terminal.");
      return;
    }
    const { path } = await companion.request("page/file");
    await vscode.env.openExternal(vscode.Uri.file(path));
  });
  register("alongside.doctor", async () => {
    const result = (await companion.request("doctor")) as Doctor;
    log.info(formatDoctor(result));
    log.show();
  });
}

async function showMenu(reviews: Reviews): Promise<void> {
  const pending: MenuItem[] = reviews.pending.map((review) => ({
    label: `$(git-pull-request) ${fileLabel(review.path)}`,
    description: `${agentLabel(review.agent, review.agentVersion)} ${sizeLabel(review)}`,
    command: "alongside.review",
    argument: review,
  }));
  const items: MenuItem[] = [
    ...pending,
    ...(pending.length > 1 ? [{ label: "$(diff-multiple) Show all changes", command: "alongside.showAll" }] : []),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(mention) Send selection to the agent", command: "alongside.sendSelection" },
    { label: "$(pulse) Check agents", command: "alongside.doctor" },
    { label: "$(output) Show log", command: "alongside.showLog" },
    { label: "$(debug-stop) Stop the companion", command: "alongside.stop" },
  ];
  const title = pending.length === 0 ? "No pending changes" : count(pending.length, "pending change");
  const chosen = await vscode.window.showQuickPick(items, { title });
  if (chosen?.command) await vscode.commands.executeCommand(chosen.command, chosen.argument);
}

function formatDoctor({ directory, agents }: Doctor): string {
  const lines = agents.map(({ displayName, connects, reason, hint }) => {
    const why = [reason, hint].filter((part) => part !== undefined).join("; ");
    return `${connects ? "ok     " : "PROBLEM"}  ${displayName}${why === "" ? "" : `: ${why}`}`;
  });
  return [`Agents in ${directory}`, ...lines].join("\n");
}
