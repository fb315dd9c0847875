// The chat's part of the front-end protocol (docs/PROTOCOL.md, "The chat"). Types only.

export type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data?: string; readonly mimeType: string }
  | { readonly type: "resource_link"; readonly name: string; readonly uri: string }
  | { readonly type: string };

export interface Location {
  readonly path: string;
  readonly line: number | null;
}

export type ToolContent =
  | { readonly type: "content"; readonly content: ContentBlock }
  | { readonly type: "diff"; readonly path: string; readonly oldText: string | null; readonly newText: string }
  | { readonly type: "other"; readonly value: unknown };

export interface ToolCall {
  readonly id: string;
  readonly title: string;
  readonly kind: string;
  readonly status: string;
  readonly toolName: string | null;
  readonly input: unknown;
  readonly output: unknown;
  readonly locations: readonly Location[];
  readonly content: readonly ToolContent[];
}

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: string;
}

export interface Question {
  readonly answerKey: string;
  readonly question: string;
  readonly header: string;
  readonly choices: readonly { readonly label: string; readonly description: string }[];
  readonly multiple: boolean;
}

export interface PermissionRequest {
  readonly requestId: string;
  readonly promptId: string | null;
  readonly toolCall: ToolCall;
  readonly options: readonly PermissionOption[];
  readonly questions: readonly Question[];
}

export interface PlanEntry {
  readonly content: string;
  readonly priority: string;
  readonly status: string;
}

export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
}

/** Models or modes. */
export interface Choices {
  readonly current: string | null;
  readonly available: readonly Choice[];
}

export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  readonly hint: string | null;
}

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

export interface PreflightCell {
  readonly kind: string;
  readonly status: string;
  readonly locality: string | null;
  readonly error: string | null;
  readonly detail: unknown;
}

export type Locality = { readonly where: "child" } | { readonly where: "daemon"; readonly preflight: readonly PreflightCell[] };

export interface Abilities {
  readonly listSessions: boolean;
  readonly loadSessions: boolean;
  readonly renameSessions: boolean;
  readonly switchModels: boolean;
  readonly switchModes: boolean;
  readonly images: boolean;
  readonly shared: boolean;
  readonly reviewsWrites: boolean;
}

export interface ConnectedSession {
  readonly sessionId: string;
  readonly agent: string;
  readonly agentVersion?: string;
  readonly attached: boolean;
  readonly workspace: string;
  readonly abilities: Abilities;
  readonly locality: Locality;
}

export type TurnEnd =
  | { readonly outcome: "completed"; readonly stopReason: string }
  | { readonly outcome: "failed"; readonly message: string; readonly code: string | null };

export type NoticeLevel = "information" | "warning" | "unsupported";

type Turn = { readonly promptId: string | null };

export type AgentEvent =
  | ({ readonly type: "connected" } & ConnectedSession)
  | { readonly type: "historyStart"; readonly reason: string }
  | { readonly type: "historyEnd" }
  | { readonly type: "promptAccepted"; readonly promptId: string; readonly text: string }
  | ({ readonly type: "userMessage" | "assistantChunk" | "thinkingChunk"; readonly content: ContentBlock } & Turn)
  | { readonly type: "turnStarted"; readonly promptId: string }
  | ({ readonly type: "toolCall"; readonly call: ToolCall } & Turn)
  | { readonly type: "plan"; readonly entries: readonly PlanEntry[] }
  | { readonly type: "approvalOpened"; readonly request: PermissionRequest }
  | { readonly type: "approvalProgress"; readonly requestId: string; readonly received: number; readonly needed: number }
  | { readonly type: "approvalClosed"; readonly requestId: string; readonly optionId: string | null; readonly own: boolean }
  | ({ readonly type: "cancelRequested" } & Turn)
  | ({ readonly type: "turnEnded"; readonly end: TurnEnd } & Turn)
  | { readonly type: "promptQueued"; readonly promptId: string; readonly text: string }
  | { readonly type: "promptUnqueued"; readonly promptId: string; readonly removed: boolean }
  | ({ readonly type: "models" | "modes" } & Choices)
  | { readonly type: "modelChanged"; readonly modelId: string }
  | { readonly type: "modelChangeFailed"; readonly modelId: string; readonly message: string }
  | { readonly type: "modeChanged"; readonly modeId: string }
  | { readonly type: "commands"; readonly commands: readonly SlashCommand[]; readonly skills: readonly string[] }
  | { readonly type: "contextUsage"; readonly used: number; readonly size: number }
  | ({ readonly type: "tokenUsage" } & TokenUsage)
  | { readonly type: "title"; readonly title: string }
  | { readonly type: "suggestion"; readonly text: string }
  | { readonly type: "notice"; readonly level: NoticeLevel; readonly message: string }
  | { readonly type: "interrupted"; readonly reason: string; readonly retryInMilliseconds: number }
  | { readonly type: "reconnected" }
  | { readonly type: "disconnected"; readonly kind: string; readonly reason: string; readonly reopen: string | null };

export type Phase = "idle" | "connecting" | "connected" | "interrupted" | "over";
export type Writes = "review" | "allow";

export interface ChatAgent {
  readonly id: string;
  readonly name: string;
  readonly kind: "child" | "daemon";
  readonly problem: string | null;
}

/** The parameters of `chat/changed`. */
export interface ChatConnection {
  readonly agent: string | null;
  readonly phase: Phase;
  readonly writes: Writes;
}

export interface ChatState extends ChatConnection {
  readonly agents: readonly ChatAgent[];
  readonly epoch: string;
  readonly sequence: number;
  readonly events: readonly AgentEvent[];
}

export interface ChatEvent {
  readonly epoch: string;
  readonly sequence: number;
  readonly event: AgentEvent;
}

export interface SessionSummary {
  readonly sessionId: string;
  readonly workspaceCwd: string;
  readonly displayName: string | null;
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
  readonly hasActivePrompt: boolean;
  readonly clientCount: number;
}

export type Decision =
  | { readonly decision: "select"; readonly optionId: string; readonly answers?: Readonly<Record<string, string>> }
  | { readonly decision: "cancel" };

export type AgentCommand =
  | { readonly type: "prompt"; readonly blocks: readonly ContentBlock[] }
  | { readonly type: "cancel" | "newSession" }
  | { readonly type: "listSessions"; readonly cursor?: string }
  | { readonly type: "answer"; readonly requestId: string; readonly decision: Decision }
  | { readonly type: "removeQueued"; readonly promptId: string }
  | { readonly type: "setModel"; readonly modelId: string }
  | { readonly type: "setMode"; readonly modeId: string }
  | { readonly type: "loadSession"; readonly sessionId: string }
  | { readonly type: "rename"; readonly title: string }
  | { readonly type: "findFiles"; readonly pattern: string };

export type AgentReply =
  | { readonly type: "done" | "tooLate" }
  | { readonly type: "prompt"; readonly promptId: string }
  | { readonly type: "sessions"; readonly sessions: readonly SessionSummary[]; readonly nextCursor?: string }
  | { readonly type: "files"; readonly paths: readonly string[] };
