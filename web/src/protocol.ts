// The front-end protocol (docs/PROTOCOL.md) under the names that the page uses; the chat's part is in chat/protocol.ts. Types only.

import type { Requests as GeneratedRequests } from "./generated/protocol";

export type {
  AgentSummary as Agent,
  File as OpenFile,
  Hunk,
  HunkAction,
  HunkChange,
  IdeContext,
  LineRange,
  Notifications,
  ReviewEdited as Edited,
  ReviewOutcome as Outcome,
  ReviewSummary,
  ReviewTexts,
  ShownContext,
  TextChange as WireChange,
} from "./generated/protocol";

export interface Doctor {
  readonly ok: boolean;
  readonly directory: string;
  readonly agents: readonly {
    readonly displayName: string;
    readonly connects: boolean;
    readonly reason?: string;
    readonly hint?: string;
    readonly shows?: string;
    /** What the user has to do once. */
    readonly step?: string;
    readonly installed?: boolean;
    readonly advice?: readonly { readonly message: string; readonly hint: string }[];
  }[];
}

/** Parameters and response of each request, by method. */
export interface Requests extends Omit<GeneratedRequests, "doctor"> {
  doctor: { readonly params: GeneratedRequests["doctor"]["params"]; readonly response: Doctor };
}

/** A connection to the companion. */
export interface Requester {
  /** Rejects with an error that has a `kind`, which is `offline` if the connection is or gets lost. */
  request<Method extends keyof Requests>(
    method: Method,
    ...[params]: object extends Requests[Method]["params"] ? [] : [params: Requests[Method]["params"]]
  ): Promise<Requests[Method]["response"]>;
}

/** A response, or a notification if it has a method. */
export interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data?: { readonly kind?: string; readonly hint?: string } };
}
