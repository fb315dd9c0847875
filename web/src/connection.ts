// The WebSocket to the companion: asks and gets answers, hears notifications, and comes back by itself when it is lost.

import { type Notifications, Refusal } from "./protocol";

export type ConnectionState = "connecting" | "open" | "lost" | "loggedOut";

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Handler = (params: unknown) => void;

const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 10_000;

export class Connection {
  state: ConnectionState = "connecting";
  /** When the next attempt is made, for the banner. */
  nextAttempt = 0;
  private socket: WebSocket | null = null;
  private nextId = 1;
  private readonly waiting = new Map<number, Waiting>();
  private readonly handlers = new Map<string, Handler>();
  private pause = FIRST_PAUSE;
  private timer = 0;

  /**
   * @param greet is called each time the connection is there, to say hello and catch up.
   * @param changed is called when `state` has changed.
   */
  constructor(
    private readonly greet: () => Promise<void>,
    private readonly changed: (state: ConnectionState) => void,
  ) {}

  on<Name extends keyof Notifications>(name: Name, handler: (params: Notifications[Name]) => void): void {
    this.handlers.set(name, handler as Handler);
  }

  /** Connects now, without waiting for the end of the pause. */
  connect(): void {
    window.clearTimeout(this.timer);
    if (this.socket) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/front`);
    this.socket = socket;
    socket.onopen = () => void this.opened(socket);
    socket.onmessage = (event: MessageEvent<string>) => this.heard(event.data);
    socket.onclose = () => void this.lost(socket);
  }

  /** Asks and waits for the answer; fails with a `Refusal`, or with kind `offline` if the connection is or gets lost. */
  request<Result>(method: string, params: object = {}): Promise<Result> {
    const socket = this.socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Refusal("offline", "Cannot reach the companion."));
    }
    const id = this.nextId++;
    return new Promise<unknown>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    }) as Promise<Result>;
  }

  private async opened(socket: WebSocket): Promise<void> {
    try {
      await this.request("hello", { protocol: 1, name: "page", watch: true, interactive: true, chat: true });
      await this.greet();
    } catch (error) {
      console.warn("Unexpected response from the companion.", error);
      socket.close();
      return;
    }
    if (this.socket !== socket) return;
    this.pause = FIRST_PAUSE;
    this.enter("open");
  }

  private heard(text: string): void {
    const message = JSON.parse(text) as {
      id?: number;
      method?: string;
      params?: unknown;
      result?: unknown;
      error?: { message: string; data?: { kind?: string; hint?: string } };
    };
    if (message.method !== undefined) {
      this.handlers.get(message.method)?.(message.params);
      return;
    }
    const waiting = this.waiting.get(message.id ?? -1);
    if (!waiting) return;
    this.waiting.delete(message.id ?? -1);
    if (message.error) waiting.reject(new Refusal(message.error.data?.kind ?? "unknown", message.error.message, message.error.data?.hint));
    else waiting.resolve(message.result);
  }

  private async lost(socket: WebSocket): Promise<void> {
    if (this.socket !== socket) return;
    this.socket = null;
    for (const waiting of this.waiting.values()) {
      waiting.reject(new Refusal("offline", "Lost the connection to the companion."));
    }
    this.waiting.clear();
    // Some chance, so that many pages do not come back in the same moment.
    const pause = this.pause * (0.8 + Math.random() * 0.4);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    this.nextAttempt = Date.now() + pause;
    this.timer = window.setTimeout(() => this.connect(), pause);
    this.enter((await isLoggedOut()) ? "loggedOut" : "lost");
  }

  private enter(state: ConnectionState): void {
    this.state = state;
    this.changed(state);
  }
}

/** A WebSocket does not say why it was refused; an ordinary request does. */
async function isLoggedOut(): Promise<boolean> {
  try {
    const response = await fetch("/", { method: "HEAD", cache: "no-store" });
    return response.status === 401;
  } catch {
    return false;
  }
}
