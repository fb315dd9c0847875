// The front-end protocol (docs/PROTOCOL.md) as far as the page uses it; the chat's part is in chat/protocol.ts. Types only.

import type { AgentCommand, AgentReply, ChatConnection, ChatEvent, ChatState, Writes } from "./chat/protocol";

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
  readonly agentVersion?: string;
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
  readonly version?: string;
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

interface Request<Params, Result> {
  readonly params: Params;
  readonly result: Result;
}

type Empty = Readonly<Record<never, never>>;
type ReviewRef = { readonly review: number };
type DecideReview = Request<ReviewRef & { readonly evenIfEmpty?: boolean }, unknown>;
type DecideAll = Request<{ readonly session: string }, unknown>;
type NewVersion = { readonly version: number };

/** Parameters and result of each request, by method. */
export interface Requests {
  hello: Request<
    { readonly protocol: number; readonly name: string; readonly watch: boolean; readonly interactive: boolean; readonly chat: boolean },
    unknown
  >;
  status: Request<Empty, Status>;
  doctor: Request<Empty, Doctor>;
  difference: Request<{ readonly base: string; readonly proposal: string }, { readonly hunks: readonly Hunk[] }>;
  "context/show": Request<Empty, ShownContext>;
  "review/list": Request<Empty, readonly ReviewSummary[]>;
  "review/get": Request<ReviewRef, ReviewTexts>;
  "review/change": Request<ReviewRef & { readonly version: number; readonly changes: readonly WireChange[] }, NewVersion>;
  "review/hunk": Request<ReviewRef & { readonly hunk: Hunk["id"]; readonly decision: "accept" | "reject" }, NewVersion>;
  "review/accept": DecideReview;
  "review/reject": DecideReview;
  "review/acceptAll": DecideAll;
  "review/rejectAll": DecideAll;
  "chat/state": Request<Empty, ChatState>;
  "chat/connect": Request<{ readonly agent: string }, unknown>;
  "chat/disconnect": Request<Empty, unknown>;
  "chat/writes": Request<{ readonly writes: Writes }, unknown>;
  "chat/command": Request<{ readonly command: AgentCommand }, AgentReply>;
}

/** A response, or a notification if it has a method. */
export interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data?: { readonly kind?: string; readonly hint?: string } };
}
