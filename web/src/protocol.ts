// The words of the front-end protocol (docs/PROTOCOL.md), as far as the page uses them. Those of the chat are in chat/protocol.ts.

import type { ChatEvent, ChatStanding } from "./chat/protocol";

/** Lines from `start` (the first line is 1), `count` of them. With no lines, `start` is the line before which they would be. */
export interface LineRange {
  readonly start: number;
  readonly count: number;
}

export type HunkState = "accepted" | "rejected" | "edited" | "conflict";

/** A part of a change that is decided by itself. */
export interface Hunk {
  readonly id: number | string;
  readonly state: HunkState;
  readonly base: LineRange;
  readonly proposal: LineRange;
  readonly draft: LineRange;
  /** Whether a person made it, not the agent. */
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

/** Replaces what is between two offsets, counted in UTF-16 code units. */
export interface WireChange {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

/** Parts in a row that are others now. */
export interface HunkChange {
  /** How many parts above stay as they are. */
  readonly at: number;
  /** How many after those are no more. */
  readonly removed: number;
  /** What is in their place. */
  readonly now: readonly Hunk[];
  /** By how many lines of the draft the parts below move. */
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

/** What the companion says without being asked. */
export interface Notifications {
  "review/opened": ReviewSummary;
  "review/changed": ReviewSummary;
  "review/closed": ReviewClosed;
  "review/edited": Edited;
  "review/rebased": { readonly review: number; readonly conflicts: number };
  "agents/changed": { readonly agents: readonly Agent[] };
  "context/changed": IdeContext;
  "chat/event": ChatEvent;
  "chat/changed": ChatStanding;
  resync: object;
}

/** An answer that says no: a sentence for people and a word for programs. */
export class Refusal extends Error {
  constructor(
    readonly kind: string,
    message: string,
    /** What a person can do about it. */
    readonly hint: string = "",
  ) {
    super(message);
  }
}
