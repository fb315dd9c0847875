// Reports an agent's own extension: both would offer themselves to that agent.

import * as vscode from "vscode";

const OFFICIAL = [
  { agent: "Gemini CLI", id: "google.gemini-cli-vscode-ide-companion" },
  { agent: "Qwen Code", id: "qwenlm.qwen-code-vscode-ide-companion" },
];

/** Offers once to show each official extension, where it can be disabled or uninstalled. VS Code has no command for that. */
export async function reportDuplicates(state: vscode.Memento): Promise<void> {
  for (const { agent, id } of OFFICIAL) {
    const key = `reported ${id}`;
    if (!vscode.extensions.getExtension(id) || state.get(key)) continue;
    await state.update(key, true);
    const show = "Show extension";
    const message = `${agent}\u2019s own extension is also installed, and ${agent} may connect to either. Disable one of the two.`;
    const chosen = await vscode.window.showWarningMessage(message, show);
    if (chosen === show) await vscode.commands.executeCommand("extension.open", id);
  }
}
