// The WebSocket to the companion: login, requests, notifications and automatic reconnects.

import { Calls, type Channel, type ConnectionState, RequestError } from "./channel";
import { type Login, NOT_LOGGED_IN } from "./login";
import type { Message, Notifications, Requests } from "./protocol";

const MIN_DELAY = 300;
const MAX_DELAY = 10_000;

export class Connection implements Channel {
  state: ConnectionState = "connecting";
  private socket: WebSocket | null = null;
  private readonly calls = new Calls();
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
    this.calls.on(name, handler);
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
    socket.onmessage = (event: MessageEvent<string>) => this.calls.receive(JSON.parse(event.data) as Message);
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
    return this.calls.request((message) => socket.send(JSON.stringify(message)), method, params ?? {});
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

  private onClose(socket: WebSocket, code: number): void {
    if (this.socket !== socket) return;
    this.socket = null;
    this.calls.abandon();
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
