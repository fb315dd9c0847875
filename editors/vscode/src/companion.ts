// This window's companion: starts the bridge, restarts it on request, and passes on what it reports.

import * as vscode from "vscode";
import { Bridge, type BridgeEnd, RequestError } from "./bridge";
import { programs } from "./program";
import type { Notifications, Requester, Requests, Welcome } from "./protocol";

type Handler = (params: never) => void;

export class Companion implements Requester {
  private bridge: Bridge | null = null;
  private readonly handlers = new Map<keyof Notifications, Handler[]>();
  private readonly greeters: (() => void)[] = [];
  private readonly readyEmitter = new vscode.EventEmitter<{ readonly isRestart: boolean }>();
  private readonly endedEmitter = new vscode.EventEmitter<BridgeEnd>();
  /** What the companion responded to `hello`; undefined if it is not running. */
  welcome: Welcome | undefined;

  /** The companion is ready, also after a restart. */
  readonly onReady = this.readyEmitter.event;
  /** The companion has stopped and is not restarted. */
  readonly onEnded = this.endedEmitter.event;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** Calls `handler` for every notification of this name. */
  on<Name extends keyof Notifications>(name: Name, handler: (params: Notifications[Name]) => void): void {
    this.handlers.set(name, [...(this.handlers.get(name) ?? []), handler]);
  }

  /** Calls `report` right after each `hello`, before anything else is sent. */
  onGreeting(report: () => void): void {
    this.greeters.push(report);
  }

  start(): void {
    const folders = workspaceFolders();
    // Without a folder there is nothing that an agent could look for.
    if (this.bridge || folders.length === 0) return;
    const launch = {
      programs: programs(this.extension),
      // The same after a restart, even if the folders have changed: the companion finds its previous port by them.
      parameters: [
        ...["bridge", "--name", "vscode", "--display-name", vscode.env.appName, "--pid", String(process.ppid)],
        ...folders.flatMap((folder) => ["--workspace", folder]),
      ],
      environment: process.env,
    };
    this.log.info(`starting ${launch.programs[0]} ${launch.parameters.join(" ")}`);
    const bridge = new Bridge(launch, {
      hello: () => ({
        protocol: 1,
        name: "vscode",
        watch: true,
        interactive: true,
        opensFiles: true,
        trusted: vscode.workspace.isTrusted,
      }),
      greeting: () => {
        for (const report of this.greeters) report();
      },
      ready: (welcome, isRestart) => {
        this.welcome = welcome;
        this.log.info(`connected to alongside ${welcome.version} (pid ${welcome.pid})`);
        this.readyEmitter.fire({ isRestart });
      },
      ended: (end) => {
        this.bridge = null;
        this.welcome = undefined;
        this.endedEmitter.fire(end);
      },
      log: (line) => this.log.info(line),
    });
    for (const [name, handlers] of this.handlers) {
      bridge.on(name, (params) => {
        for (const handler of handlers) handler(params as never);
      });
    }
    this.bridge = bridge;
    bridge.start();
  }

  /** Stops the companion; pending changes are rejected. */
  async stop(): Promise<void> {
    const bridge = this.bridge;
    if (!bridge) return;
    this.bridge = null;
    this.welcome = undefined;
    await bridge.stop();
    this.endedEmitter.fire({ reason: "stopped" });
  }

  /** Disconnects because the window closes or reloads: which one is not known. */
  async leave(): Promise<void> {
    const bridge = this.bridge;
    this.bridge = null;
    await bridge?.leave();
  }

  request<Method extends keyof Requests>(
    method: Method,
    ...[params]: object extends Requests[Method]["params"] ? [] : [params: Requests[Method]["params"]]
  ): Promise<Requests[Method]["response"]> {
    if (!this.bridge) {
      return Promise.reject(new RequestError("offline", "the companion is not running; run `Alongside: Start Companion`"));
    }
    return this.bridge.request(method, ...([params] as never));
  }

  notify<Method extends keyof Requests>(method: Method, params: Requests[Method]["params"]): void {
    this.bridge?.notify(method, params);
  }

  /** Reports what `hello` has said differently before, such as trust. */
  greetAgain(): void {
    this.bridge?.greet().catch(() => undefined);
  }
}

/** The workspace folders on this machine. */
export function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
}
