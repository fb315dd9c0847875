// What an editor and the chat in its webview exchange besides the companion's own messages. Types only.

import type { PendingReview } from "./chat/protocol";

/** From the editor to the chat. */
export interface EditorNotifications {
  "editor/state": EditorState;
}

export interface EditorState {
  /** `stopped`: the companion is not running and does not come back by itself. */
  readonly companion: "running" | "starting" | "stopped";
  /** Different after each start of the companion: fetch everything shown again. */
  readonly run: number;
  readonly folders: readonly string[];
  readonly reviews: readonly PendingReview[];
}

/** From the chat to the editor. */
export interface ChatNotifications {
  /** The chat can receive messages. */
  "view/ready": Record<never, never>;
  /** Open a review, or choose one. */
  "view/openReview": { readonly review?: number };
  /** How many requests wait for an answer. */
  "view/waiting": { readonly count: number };
  "view/startCompanion": Record<never, never>;
}
