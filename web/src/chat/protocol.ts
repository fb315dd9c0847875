// The chat's part of the front-end protocol (docs/PROTOCOL.md, "The chat") under the names that the page uses. Types only.

import type { ReviewSummary } from "../generated/protocol";

export type {
  Abilities,
  AgentCommand,
  AgentEvent,
  AgentReply,
  ChatAgent,
  ChatChanged as ChatConnection,
  ChatEvent,
  ChatState,
  ChatWrites as Writes,
  ConnectedSession,
  ContentBlock,
  Modes as Choices,
  NoticeLevel,
  PermissionDecision as Decision,
  PermissionOption,
  PermissionRequest,
  PlanEntry,
  PreflightCell,
  Question,
  SessionSummary,
  SlashCommand,
  TokenUsage,
  ToolCall,
  ToolContent,
  TurnEnd,
} from "../generated/protocol";

/** What the chat knows about a pending review, of its own agent or another one. */
export type PendingReview = Pick<ReviewSummary, "id" | "path" | "session">;
