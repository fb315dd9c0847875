// The daemon's settings and its token, which is kept in the editor's secret storage.

import * as vscode from "vscode";
import { bridgeEnvironment, chooseDaemon, type DaemonChoice, type DaemonValues, OWN_SECTION, QWEN_SECTION } from "./daemon-settings";

const TOKEN_KEY = "alongside.daemon.token";

export class Daemon implements vscode.Disposable {
  private choice: DaemonChoice = { use: false };
  private storedToken: string | undefined;
  private readonly changedEmitter = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[];

  /** The companion needs another environment. */
  readonly onChanged = this.changedEmitter.event;

  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      this.changedEmitter,
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(OWN_SECTION) || event.affectsConfiguration(QWEN_SECTION)) this.update();
      }),
      // Also in other windows.
      secrets.onDidChange(({ key }) => (key === TOKEN_KEY ? this.tokenChanged() : undefined)),
    ];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** Reads the settings and the token for the first time. */
  async load(): Promise<void> {
    await this.readToken();
    this.choice = this.choose();
  }

  get token(): string | undefined {
    return this.choice.use ? this.choice.token : undefined;
  }

  environment(): NodeJS.ProcessEnv {
    return bridgeEnvironment(process.env, this.choice);
  }

  async storeToken(): Promise<void> {
    const token = await vscode.window.showInputBox({
      title: "Daemon's token",
      prompt: "The token that `qwen serve` was started with. It is kept in the editor's secret storage.",
      password: true,
      ignoreFocusOut: true,
    });
    if (token === undefined || token.trim() === "") return;
    await this.secrets.store(TOKEN_KEY, token.trim());
    await this.tokenChanged();
    vscode.window.setStatusBarMessage("$(check) Token stored", 3000);
  }

  async deleteToken(): Promise<void> {
    await this.secrets.delete(TOKEN_KEY);
    await this.tokenChanged();
    vscode.window.setStatusBarMessage("$(check) Token deleted", 3000);
  }

  private async tokenChanged(): Promise<void> {
    await this.readToken();
    this.update();
  }

  private update(): void {
    const before = JSON.stringify(this.choice);
    this.choice = this.choose();
    if (JSON.stringify(this.choice) !== before) this.changedEmitter.fire();
  }

  private choose(): DaemonChoice {
    const choice = chooseDaemon({
      own: userValues(OWN_SECTION),
      qwen: userValues(QWEN_SECTION),
      storedToken: this.storedToken,
      environment: process.env,
    });
    if ("problem" in choice) {
      this.log.error(choice.problem);
      const settings = "Open settings";
      vscode.window.showErrorMessage(`alongside: ${choice.problem}`, settings).then((chosen) => {
        if (chosen === settings) void vscode.commands.executeCommand("workbench.action.openSettings", choice.setting);
      });
    }
    return choice;
  }

  private async readToken(): Promise<void> {
    try {
      this.storedToken = await this.secrets.get(TOKEN_KEY);
    } catch (error) {
      this.log.warn(`cannot read the daemon's token: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/** The user's own values. A workspace could otherwise have the token sent to an address of its choice. */
function userValues(section: string): DaemonValues {
  const configuration = vscode.workspace.getConfiguration(section);
  const value = (name: string): unknown => configuration.inspect(name)?.globalValue;
  const text = (name: string): string | undefined => {
    const found = value(name);
    return typeof found === "string" ? found : undefined;
  };
  const enabled = value("enabled");
  return { enabled: typeof enabled === "boolean" ? enabled : undefined, url: text("url"), token: text("token") };
}
