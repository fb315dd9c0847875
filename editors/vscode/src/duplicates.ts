// Reports an agent's own extension: both would offer themselves to that agent.

import * as vscode from "vscode";

const OFFICIAL = [
  { agent: "Gemini CLI", id: "google.gemini-cli-vscode-ide-companion" },
  { agent: "Qwen Code", id: "qwenlm.qwen-code-vscode-ide-companion" },
  // Of two companions for a folder, Claude Code connects to none.
  { agent: "Claude Code", id: "anthropic.claude-code" },
];

/** Offers once to uninstall each official extension, or to show it where it can be disabled. VS Code has no command for the latter. */
export async function reportDuplicates(state: vscode.Memento): Promise<void> {
  for (const { agent, id } of OFFICIAL) {
    const key = `reported ${id}`;
    if (!vscode.extensions.getExtension(id) || state.get(key)) continue;
    await state.update(key, true);
    const [uninstall, show] = ["Uninstall it", "Show extension"];
    const message = `${agent}\u2019s own extension is also installed, and ${agent} may not connect to Alongside. Disable or uninstall one of the two.`;
    const chosen = await vscode.window.showWarningMessage(message, uninstall, show);
    if (chosen === uninstall) await vscode.commands.executeCommand("workbench.extensions.uninstallExtension", id);
    // Not `extension.open`, which asks the gallery and does nothing without it.
    if (chosen === show) await vscode.commands.executeCommand("workbench.extensions.search", `@installed ${id.split(".")[1]}`);
  }
}
