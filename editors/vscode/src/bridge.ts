// The companion as a child process: JSON-RPC, one message per line. See docs/PROTOCOL.md.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { Hello, Message, Notifications, Requester, Requests, Welcome } from "./protocol";

/** A companion that crashes this often within a minute is not restarted again. */
const MAX_RESTARTS = 5;
const RESTART_WINDOW_MS = 60_000;
/** How long the companion may take to exit after its stdin was closed. */
const EXIT_TIMEOUT_MS = 4000;

/** An error response: a message for users and a kind for programs. */
export class RequestError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    /** What the user can do about it. */
    readonly hint: string = "",
  ) {
    super(message);
  }
}

export interface Launch {
  /** Programs to try, in this order: the next one if a program cannot be started. */
  readonly programs: readonly string[];
  readonly parameters: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

export interface BridgeListener {
  hello(): Hello;
  /** Called right after `hello` was sent, before any other request. */
  greeting(): void;
  /** The companion responded to `hello`. */
  ready(welcome: Welcome, isRestart: boolean): void;
  /** The companion exited and will not be restarted. */
  ended(end: BridgeEnd): void;
  log(line: string): void;
}

export type BridgeEnd =
  | { readonly reason: "stopped" }
  | { readonly reason: "notFound"; readonly message: string }
  | { readonly reason: "refused"; readonly message: string }
  | { readonly reason: "crashed"; readonly message: string };

interface PendingRequest {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

type Handler = (params: unknown) => void;

export class Bridge implements Requester {
  private child: ChildProcessWithoutNullStreams | null = null;
  private readonly pending = new Map<number, PendingRequest>();
  private readonly handlers = new Map<string, Handler>();
  private restarts: number[] = [];
  private nextId = 1;
  private isStopping = false;

  constructor(
    private readonly launch: Launch,
    private readonly listener: BridgeListener,
  ) {}

  get isRunning(): boolean {
    return this.child !== null;
  }

  on<Name extends keyof Notifications>(name: Name, handler: (params: Notifications[Name]) => void): void {
    this.handlers.set(name, handler as Handler);
  }

  start(): void {
    if (!this.child) this.spawn(0, false);
  }

  /** Closes the companion's stdin, upon which it shuts down, and waits until it has exited. */
  async stop(): Promise<void> {
    const child = this.child;
    this.isStopping = true;
    if (!child) return;
    const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
    child.stdin.end();
    const timer = setTimeout(() => child.kill(), EXIT_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }

  /** Has the companion keep everything pending for a moment, because the window may be about to reload; then disconnects. */
  async leave(): Promise<void> {
    const child = this.child;
    this.isStopping = true;
    if (!child) return;
    this.notify("leaving", {});
    await new Promise<void>((resolve) => {
      child.once("close", () => resolve());
      child.stdin.end(() => resolve());
    });
  }

  request<Method extends keyof Requests>(
    method: Method,
    ...[params]: object extends Requests[Method]["params"] ? [] : [params: Requests[Method]["params"]]
  ): Promise<Requests[Method]["response"]> {
    if (!this.child) return Promise.reject(offline());
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      this.send({ id, method, params: params ?? {} });
    });
  }

  notify<Method extends keyof Requests>(method: Method, params: Requests[Method]["params"]): void {
    if (this.child) this.send({ method, params });
  }

  /** Sends `hello` again: what the front end wants has changed. */
  greet(): Promise<Welcome> {
    return this.request("hello", this.listener.hello());
  }

  private send(message: object): void {
    this.child?.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  private spawn(candidate: number, isRestart: boolean): void {
    const program = this.launch.programs[candidate];
    if (program === undefined) {
      const message = `cannot start \`${this.launch.programs.at(-1) ?? "alongside"}\`; is it installed?`;
      this.listener.ended({ reason: "notFound", message });
      return;
    }
    let child: ChildProcessWithoutNullStreams;
    try {
      child = spawn(program, [...this.launch.parameters], {
        env: this.launch.environment,
        // It shuts down when its stdin closes. A signal to the extension host's group must not stop it before a reload.
        detached: process.platform !== "win32",
        stdio: "pipe",
        windowsHide: true,
      });
    } catch (error) {
      // Thrown, not reported as an event, for a .cmd file on Windows or an invalid path.
      this.listener.log(`${program}: ${error instanceof Error ? error.message : error}`);
      this.spawn(candidate + 1, isRestart);
      return;
    }
    this.child = child;
    child.on("error", (error) => {
      this.listener.log(`${program}: ${error.message}`);
      // It was started; what failed is a signal.
      if (child.pid !== undefined || this.child !== child) return;
      this.forget();
      this.spawn(candidate + 1, isRestart);
    });
    // A write to a companion that has exited fails; its exit is handled below.
    child.stdin.on("error", () => undefined);
    readLines(child.stdout, (line) => this.receive(child, line));
    readLines(child.stderr, (line) => this.listener.log(line));
    child.on("close", (code, signal) => this.onClose(child, code, signal));
    void this.open(child, isRestart);
  }

  private async open(child: ChildProcessWithoutNullStreams, isRestart: boolean): Promise<void> {
    const hello = this.greet();
    this.listener.greeting();
    try {
      const welcome = await hello;
      if (this.child === child) this.listener.ready(welcome, isRestart);
    } catch (error) {
      if (!(error instanceof RequestError) || error.kind === "offline") return;
      await this.stop();
      this.listener.ended({ reason: "refused", message: error.message });
    }
  }

  private receive(child: ChildProcessWithoutNullStreams, line: string): void {
    if (this.child !== child) return;
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      this.listener.log(`malformed message: ${line.slice(0, 200)}`);
      return;
    }
    if (message.method !== undefined) {
      this.handle(message.method, message.params);
      return;
    }
    const request = this.pending.get(message.id ?? -1);
    if (!request) return;
    this.pending.delete(message.id ?? -1);
    if (message.error)
      request.reject(new RequestError(message.error.data?.kind ?? "failed", message.error.message, message.error.data?.hint));
    else request.resolve(message.result as never);
  }

  private handle(method: string, params: unknown): void {
    try {
      this.handlers.get(method)?.(params);
    } catch (error) {
      this.listener.log(`${method}: ${error instanceof Error ? error.stack : error}`);
    }
  }

  /** Forgets the companion and fails the requests that it has not responded to. */
  private forget(): void {
    this.child = null;
    const requests = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of requests) reject(offline());
  }

  private onClose(child: ChildProcessWithoutNullStreams, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.child !== child) return;
    this.forget();
    if (this.isStopping || code === 0) {
      if (!this.isStopping) this.listener.ended({ reason: "stopped" });
      return;
    }
    const how = signal ?? `exit code ${code}`;
    this.listener.log(`the companion crashed (${how})`);
    const now = Date.now();
    this.restarts = this.restarts.filter((time) => now - time < RESTART_WINDOW_MS);
    if (this.restarts.length >= MAX_RESTARTS) {
      this.listener.ended({ reason: "crashed", message: `the companion keeps crashing (${how})` });
      return;
    }
    this.restarts.push(now);
    this.spawn(0, true);
  }
}

function offline(): RequestError {
  return new RequestError("offline", "the companion is not running");
}

/** Calls `handle` for every line, without the line ending. A message may be many chunks long. */
export function readLines(stream: NodeJS.ReadableStream, handle: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let partial: string[] = [];
  stream.on("data", (chunk: Buffer) => {
    const [first = "", ...others] = decoder.write(chunk).split("\n");
    partial.push(first);
    for (const next of others) {
      const line = partial.join("");
      partial = [next];
      if (line !== "") handle(line);
    }
  });
}
