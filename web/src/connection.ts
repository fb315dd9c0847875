// The WebSocket to the companion: login, requests, notifications and automatic reconnects.

import { type Login, NOT_LOGGED_IN } from "./login";
import type { Message, Notifications, Requester, Requests } from "./protocol";

export type ConnectionState = "connecting" | "open" | "lost" | "loggedOut";

interface PendingRequest {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

type Handler = (params: unknown) => void;

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

const MIN_DELAY = 300;
const MAX_DELAY = 10_000;

export class Connection implements Requester {
  state: ConnectionState = "connecting";
  private socket: WebSocket | null = null;
  private nextId = 1;
  private readonly pending = new Map<number, PendingRequest>();
  private readonly handlers = new Map<string, Handler>();
  private delay = MIN_DELAY;
  private timer = 0;

  /**
   * @param greet catches up after each connect.
   * @param changed is called when `state` has changed.
   */
  constructor(
    private readonly login: Login,
    private readonly greet: () => Promise<void>,
    private readonly changed: (state: ConnectionState) => void,
  ) {}

  on<Name extends keyof Notifications>(name: Name, handler: (params: Notifications[Name]) => void): void {
    this.handlers.set(name, handler as Handler);
  }

  /** Connects now, instead of after the backoff. */
  connect(): void {
    window.clearTimeout(this.timer);
    if (this.socket) return;
    if (!this.login.isPossible) {
      this.enter("loggedOut");
      return;
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/front`);
    this.socket = socket;
    socket.onmessage = (event: MessageEvent<string>) => void this.respond(socket, event.data);
    socket.onclose = (event) => this.onClose(socket, event.code);
  }

  /** Responds to the companion's challenge. Nothing else is sent before the companion has proved that it is the same one. */
  private async respond(socket: WebSocket, challenge: string): Promise<void> {
    socket.onmessage = (event: MessageEvent<string>) => this.accept(socket, event.data);
    try {
      socket.send(await this.login.respond(challenge));
    } catch (error) {
      console.warn("Unexpected response from the companion.", error);
      socket.close();
      this.onClose(socket, 0);
    }
  }

  private accept(socket: WebSocket, welcome: string): void {
    let isAccepted = false;
    try {
      isAccepted = this.login.accept(welcome);
    } catch {
      // Not even JSON.
    }
    if (!isAccepted) {
      console.warn("Another program is listening on the companion's port.");
      socket.close();
      // Such a program may keep the WebSocket from closing.
      this.onClose(socket, NOT_LOGGED_IN);
      return;
    }
    socket.onmessage = (event: MessageEvent<string>) => this.onMessage(event.data);
    void this.onOpen(socket);
  }

  request<Method extends keyof Requests>(
    method: Method,
    ...[params]: object extends Requests[Method]["params"] ? [] : [params: Requests[Method]["params"]]
  ): Promise<Requests[Method]["response"]> {
    const socket = this.socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) {
      return Promise.reject(new RequestError("offline", "Cannot reach the companion."));
    }
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params: params ?? {} }));
    });
  }

  private async onOpen(socket: WebSocket): Promise<void> {
    try {
      await this.request("hello", { protocol: 1, name: "page", watch: true, interactive: true, chat: true });
      await this.greet();
    } catch (error) {
      console.warn("Unexpected response from the companion.", error);
      socket.close();
      return;
    }
    if (this.socket !== socket) return;
    this.delay = MIN_DELAY;
    this.enter("open");
  }

  private onMessage(text: string): void {
    const message = JSON.parse(text) as Message;
    if (message.method !== undefined) {
      this.handlers.get(message.method)?.(message.params);
      return;
    }
    const pending = this.pending.get(message.id ?? -1);
    if (!pending) return;
    this.pending.delete(message.id ?? -1);
    if (message.error)
      pending.reject(new RequestError(message.error.data?.kind ?? "unknown", message.error.message, message.error.data?.hint));
    else pending.resolve(message.result as never);
  }

  private onClose(socket: WebSocket, code: number): void {
    if (this.socket !== socket) return;
    this.socket = null;
    for (const pending of this.pending.values()) {
      pending.reject(new RequestError("offline", "Lost the connection to the companion."));
    }
    this.pending.clear();
    const isRefused = code === NOT_LOGGED_IN;
    if (isRefused && this.login.refused()) {
      this.connect();
      return;
    }
    // Jitter, so that many pages do not reconnect at the same moment.
    const delay = this.delay * (0.8 + Math.random() * 0.4);
    this.delay = Math.min(this.delay * 2, MAX_DELAY);
    this.timer = window.setTimeout(() => this.connect(), delay);
    this.enter(isRefused ? "loggedOut" : "lost");
  }

  private enter(state: ConnectionState): void {
    this.state = state;
    this.changed(state);
  }
}
