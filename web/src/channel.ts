// Requests to the companion and its notifications, over any transport: the page's WebSocket, or messages to an editor.

import type { Message, Notifications, Requester, Requests } from "./protocol";

export type ConnectionState = "connecting" | "open" | "lost" | "loggedOut";

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

export interface Channel extends Requester {
  readonly state: ConnectionState;
  /** Calls `handler` for each notification of this name. */
  on<Name extends keyof Notifications>(name: Name, handler: (params: Notifications[Name]) => void): void;
}

interface PendingRequest {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

type Handler = (params: unknown) => void;

/** The pending requests and the handlers of a connection. */
export class Calls {
  private nextId = 1;
  private readonly pending = new Map<number, PendingRequest>();
  private readonly handlers = new Map<string, Handler>();

  on<Name extends string, Params>(name: Name, handler: (params: Params) => void): void {
    this.handlers.set(name, handler as Handler);
  }

  request<Method extends keyof Requests>(
    send: (message: Message) => void,
    method: Method,
    params: object,
  ): Promise<Requests[Method]["response"]> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Handles a response or a notification. */
  receive(message: Message): void {
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

  /** Fails the pending requests: the connection was lost. */
  abandon(): void {
    const requests = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of requests) reject(new RequestError("offline", "Lost the connection to the companion."));
  }
}
