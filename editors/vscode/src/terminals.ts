// Sets the variables that point agents in new integrated terminals at this window.

import * as vscode from "vscode";
import type { Companion } from "./companion";

export class Terminals implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly companion: Companion,
    private readonly collection: vscode.EnvironmentVariableCollection,
  ) {
    // Port and token are this companion's: a terminal of the next window must not start with them.
    collection.persistent = false;
    collection.description = "Connects coding agents to this window";
    this.subscriptions = [
      companion.onReady(() => this.update()),
      companion.onEnded(() => collection.clear()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.update()),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async update(): Promise<void> {
    try {
      const { variables } = await this.companion.request("terminal/environment");
      const names = new Set(Object.keys(variables));
      this.collection.forEach((name) => {
        if (!names.has(name)) this.collection.delete(name);
      });
      // Setting a variable to its value again would mark every open terminal as outdated.
      for (const [name, value] of Object.entries(variables)) {
        if (this.collection.get(name)?.value !== value) this.collection.replace(name, value);
      }
    } catch {
      // The companion has stopped; the next one reports its own.
    }
  }
}
