// Passes messages between the chat's webview and the companion.

import type { ChatNotifications, EditorState } from "../../../../web/src/webview-messages";
import type { Message, Notifications, Requester } from "../protocol";
import { type ChatMethod, checkMessage } from "./messages";

/** The companion's notifications that the chat receives. */
export const FORWARDED = ["chat/event", "chat/changed", "resync"] as const satisfies readonly (keyof Notifications)[];

const HIDDEN = "[hidden]";
/** A shorter token would be found in ordinary words. */
const MIN_TOKEN = 8;

export interface ChatEditor {
  state(): EditorState;
  openReview(review: ChatNotifications["view/openReview"]): void;
  waiting(count: number): void;
  startCompanion(): void;
  /** The daemon's token, which must not reach the webview, whatever the companion sends. */
  token(): string | undefined;
  log(line: string): void;
}

export class ChatLink {
  /** Whether the webview's script is running. */
  private isReady = false;

  constructor(
    private readonly companion: Requester,
    private readonly post: (message: Message) => void,
    private readonly editor: ChatEditor,
  ) {}

  /** The webview was hidden, which ends its script. */
  hidden(): void {
    this.isReady = false;
  }

  /** Sends the editor's state again. */
  stateChanged(): void {
    this.send({ method: "editor/state", params: this.editor.state() });
  }

  /** Passes on a notification by the companion. */
  forward<Name extends (typeof FORWARDED)[number]>(method: Name, params: Notifications[Name]): void {
    this.send({ method, params });
  }

  /** Handles a message from the webview. */
  receive(message: unknown): void {
    const checked = checkMessage(message);
    if (!checked) {
      this.editor.log("dropped a message from the chat that is not on the list");
      return;
    }
    switch (checked.method) {
      case "view/ready":
        this.isReady = true;
        this.stateChanged();
        break;
      case "view/openReview":
        this.editor.openReview(checked.params);
        break;
      case "view/waiting":
        this.editor.waiting(checked.params.count);
        break;
      case "view/startCompanion":
        this.editor.startCompanion();
        break;
      default:
        void this.answer(checked.id, checked.method, checked.params);
    }
  }

  private async answer(id: number, method: ChatMethod, params: object): Promise<void> {
    try {
      const result = await this.companion.request(method as "chat/command", params as never);
      this.send({ id, result });
    } catch (error) {
      const { message, kind, hint } = error as Error & { readonly kind?: string; readonly hint?: string };
      this.send({ id, error: { message, data: { kind: kind ?? "failed", ...(hint ? { hint } : {}) } } });
    }
  }

  private send(message: Message): void {
    if (!this.isReady) return;
    const token = this.editor.token();
    const isLeak = token !== undefined && token.length >= MIN_TOKEN && JSON.stringify(message).includes(JSON.stringify(token).slice(1, -1));
    if (isLeak) this.editor.log("the daemon's token was removed from a message to the chat");
    this.post(isLeak ? (without(message, token) as Message) : message);
  }
}

/** A copy in which no string has the secret. */
function without(value: unknown, secret: string): unknown {
  if (typeof value === "string") return value.replaceAll(secret, HIDDEN);
  if (Array.isArray(value)) return value.map((item) => without(item, secret));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.replaceAll(secret, HIDDEN), without(item, secret)]));
}
