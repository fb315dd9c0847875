// The front-end protocol (docs/PROTOCOL.md) as far as the page uses it; the chat's part is in chat/protocol.ts. Types only.

import type { ChatConnection, ChatEvent } from "./chat/protocol";

/** `count` lines from `start` (1-based). If `count` is 0, `start` is the line before which they would be inserted. */
export interface LineRange {
  readonly start: number;
  readonly count: number;
}

export type HunkState = "accepted" | "rejected" | "edited" | "conflict";

export interface Hunk {
  readonly id: number | string;
  readonly state: HunkState;
  readonly base: LineRange;
  readonly proposal: LineRange;
  readonly draft: LineRange;
  /** Whether the user made it, not the agent. */
  readonly yours: boolean;
}

export interface ReviewSummary {
  readonly id: number;
  readonly path: string;
  readonly agent: string;
  readonly session: string;
  readonly revision: number;
  readonly newFile: boolean;
  readonly edited: boolean;
  readonly size: { readonly added: number; readonly removed: number };
  readonly opened: number;
  readonly version?: number;
  readonly conflicts?: number;
}

export interface ReviewTexts extends ReviewSummary {
  readonly base?: string;
  readonly proposal: string;
  readonly draft: string;
  readonly version: number;
  readonly hunks: readonly Hunk[];
  readonly notes?: readonly string[];
}

/** Replaces the text between two offsets in UTF-16 code units. */
export interface WireChange {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** Replaces consecutive hunks. */
export interface HunkChange {
  /** Index of the first one. */
  readonly at: number;
  /** How many are replaced. */
  readonly removed: number;
  /** Their replacements. */
  readonly now: readonly Hunk[];
  /** By how many draft lines the hunks below move. */
  readonly shift: number;
}

export interface Edited {
  readonly review: number;
  readonly version: number;
  readonly changes: readonly WireChange[];
  readonly hunks: HunkChange;
}

export type Outcome = "accepted" | "rejected" | "closedByAgent" | "orphaned" | "shutDown";

export interface ReviewClosed {
  readonly review: number;
  readonly path: string;
  readonly outcome: Outcome;
}

export interface Agent {
  readonly name: string;
  readonly session: string;
  readonly listening: boolean;
  readonly since: number;
}

export interface OpenFile {
  readonly path: string;
  readonly isActive?: boolean;
  readonly selectedText?: string;
  readonly cursor?: { readonly line: number; readonly character: number };
}

export interface IdeContext {
  readonly workspaceState?: { readonly openFiles?: readonly OpenFile[]; readonly isTrusted?: boolean };
}

export interface ShownContext {
  readonly context: IdeContext;
  readonly hidden: readonly { readonly path: string; readonly because: string }[];
}

export interface Status {
  readonly pid: number;
  readonly version: string;
  readonly displayName: string;
  readonly workspace: readonly string[];
  readonly problems: readonly string[];
  readonly agents: readonly Agent[];
}

export interface Doctor {
  readonly ok: boolean;
  readonly directory: string;
  readonly agents: readonly {
    readonly displayName: string;
    readonly connects: boolean;
    readonly reason?: string;
    readonly hint?: string;
    readonly shows?: string;
  }[];
}

export interface Notifications {
  "review/opened": ReviewSummary;
  "review/changed": ReviewSummary;
  "review/closed": ReviewClosed;
  "review/edited": Edited;
  "review/rebased": { readonly review: number; readonly conflicts: number };
  "agents/changed": { readonly agents: readonly Agent[] };
  "context/changed": IdeContext;
  "chat/event": ChatEvent;
  "chat/changed": ChatConnection;
  resync: object;
}
