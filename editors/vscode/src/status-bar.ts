// Pending changes and connected agents in the status bar.

import * as vscode from "vscode";
import type { Companion } from "./companion";
import { agentLabel, count } from "./format";
import type { AgentSummary } from "./protocol";
import type { Reviews } from "./reviews";

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("alongside", vscode.StatusBarAlignment.Left, 10);
  private readonly subscriptions: vscode.Disposable[];
  private agents: readonly AgentSummary[] = [];
  private problems: readonly string[] = [];

  constructor(
    private readonly companion: Companion,
    private readonly reviews: Reviews,
  ) {
    this.item.name = "Alongside";
    companion.on("agents/changed", ({ agents }) => {
      this.agents = agents;
      this.update();
    });
    companion.on("problems/changed", ({ problems }) => {
      this.problems = problems;
      this.update();
    });
    this.subscriptions = [
      reviews.onChanged(() => this.update()),
      companion.onReady(() => this.update()),
      companion.onEnded(() => {
        this.agents = [];
        this.problems = [];
        this.update();
      }),
      this.item,
    ];
    this.update();
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private update(): void {
    const pending = this.reviews.pending.length;
    const isRunning = this.companion.welcome !== undefined;
    this.item.text = this.text(pending, isRunning);
    this.item.backgroundColor = pending > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.command = isRunning ? "alongside.menu" : "alongside.start";
    this.item.tooltip = this.tooltip(isRunning);
    this.item.show();
  }

  private text(pending: number, isRunning: boolean): string {
    if (!isRunning) return "$(circle-slash) Alongside";
    if (this.problems.length > 0) return "$(warning) Alongside";
    if (pending > 0) return `$(git-pull-request) ${count(pending, "change")}`;
    return this.agents.length > 0 ? `$(plug) ${count(this.agents.length, "agent")}` : "$(plug) Alongside";
  }

  private tooltip(isRunning: boolean): string {
    if (!isRunning) return "The companion is not running";
    const agents = this.agents.map(({ name, version }) => agentLabel(name, version)).join(", ");
    return [...this.problems, agents === "" ? "No agent is connected" : `Connected: ${agents}`].join("\n");
  }
}
