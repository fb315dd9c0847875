// Generated from alongside-protocol. Do not edit; run `UPDATE_TYPES=1 cargo test -p alongside-protocol --test typescript`.

export interface Abilities {
  readonly listSessions: boolean;
  readonly loadSessions: boolean;
  readonly renameSessions: boolean;
  readonly findFiles: boolean;
  readonly switchModels: boolean;
  readonly switchModes: boolean;
  readonly images: boolean;
  readonly files: boolean;
  readonly readAttachments: boolean;
  readonly midTurn: boolean;
  readonly rewind: boolean;
  readonly shared: boolean;
  readonly reviewsWrites: boolean;
}

export interface Accept {
  readonly review: ReviewId;
  readonly content?: string;
  readonly evenIfEmpty?: boolean;
}

export type AgentCommand =
  | { readonly type: "prompt"; readonly blocks: readonly ContentBlock[]; readonly id?: string }
  | { readonly type: "midTurn"; readonly blocks: readonly ContentBlock[]; readonly id?: string }
  | { readonly type: "rewind"; readonly turn: number }
  | { readonly type: "readAttachment"; readonly name: string }
  | { readonly type: "cancel" }
  | { readonly type: "answer"; readonly requestId: string; readonly decision: PermissionDecision }
  | { readonly type: "removeQueued"; readonly promptId: string }
  | { readonly type: "setModel"; readonly modelId: string }
  | { readonly type: "setMode"; readonly modeId: string }
  | { readonly type: "listSessions"; readonly cursor?: string }
  | { readonly type: "newSession" }
  | { readonly type: "loadSession"; readonly sessionId: SessionId }
  | { readonly type: "rename"; readonly title: string }
  | { readonly type: "findFiles"; readonly pattern: string };

export type AgentEvent =
  | ({ readonly type: "connected" } & ConnectedSession)
  | { readonly type: "historyStart"; readonly reason: string }
  | { readonly type: "historyEnd" }
  | { readonly type: "promptAccepted"; readonly promptId: string; readonly text: string }
  | { readonly type: "userMessage"; readonly promptId: string | null; readonly content: ContentBlock }
  | { readonly type: "midTurnMessage"; readonly promptId: string | null; readonly messageId: string | null; readonly blocks: readonly ContentBlock[]; readonly own: boolean }
  | { readonly type: "rewound"; readonly turn: number }
  | { readonly type: "turnStarted"; readonly promptId: string }
  | { readonly type: "assistantChunk"; readonly promptId: string | null; readonly content: ContentBlock }
  | { readonly type: "thinkingChunk"; readonly promptId: string | null; readonly content: ContentBlock }
  | { readonly type: "toolCall"; readonly promptId: string | null; readonly call: ToolCall }
  | { readonly type: "plan"; readonly entries: readonly PlanEntry[] }
  | { readonly type: "approvalOpened"; readonly request: PermissionRequest }
  | { readonly type: "approvalProgress"; readonly requestId: string; readonly received: number; readonly needed: number }
  | { readonly type: "approvalClosed"; readonly requestId: string; readonly optionId: string | null; readonly own: boolean }
  | { readonly type: "cancelRequested"; readonly promptId: string | null }
  | { readonly type: "turnEnded"; readonly promptId: string | null; readonly end: TurnEnd }
  | { readonly type: "promptQueued"; readonly promptId: string; readonly text: string }
  | { readonly type: "promptUnqueued"; readonly promptId: string; readonly removed: boolean }
  | ({ readonly type: "models" } & Models)
  | { readonly type: "modelChanged"; readonly modelId: string }
  | { readonly type: "modelChangeFailed"; readonly modelId: string; readonly message: string }
  | ({ readonly type: "modes" } & Modes)
  | { readonly type: "modeChanged"; readonly modeId: string }
  | { readonly type: "commands"; readonly commands: readonly SlashCommand[]; readonly skills: readonly string[] }
  | { readonly type: "contextUsage"; readonly used: number; readonly size: number }
  | ({ readonly type: "tokenUsage" } & TokenUsage)
  | { readonly type: "title"; readonly title: string }
  | { readonly type: "suggestion"; readonly text: string }
  | { readonly type: "notice"; readonly level: NoticeLevel; readonly message: string }
  | { readonly type: "interrupted"; readonly reason: string; readonly retryInMilliseconds: number }
  | { readonly type: "reconnected" }
  | { readonly type: "disconnected"; readonly kind: DisconnectKind; readonly reason: string; readonly reopen: SessionId | null };

export interface AgentIdentity {
  readonly name: string;
  readonly version?: string;
}

export type AgentReply =
  | { readonly type: "done" }
  | { readonly type: "prompt"; readonly promptId: string }
  | { readonly type: "tooLate" }
  | { readonly type: "sessions"; readonly sessions: readonly SessionSummary[]; readonly nextCursor?: string }
  | { readonly type: "files"; readonly paths: readonly string[] }
  | { readonly type: "attachment"; readonly data: string };

export interface AgentSummary extends AgentIdentity {
  readonly session: SessionKey;
  readonly listening: boolean;
  readonly since: number;
}

export interface AgentsChanged {
  readonly agents: readonly AgentSummary[];
}

export type Answers = Readonly<Record<string, string>>;

export interface Buffer {
  readonly path: string;
  readonly text?: string;
}

export interface BulkDecision {
  readonly decided: readonly ReviewId[];
  readonly refused: readonly Undecided[];
}

export interface Change {
  readonly review: ReviewId;
  readonly version: number;
  readonly changes: readonly TextChange[];
}

export interface ChangeSize {
  readonly added: number;
  readonly removed: number;
}

export interface ChatAgent {
  readonly id: string;
  readonly name: string;
  readonly kind: ChatAgentKind;
  readonly problem: string | null;
}

export type ChatAgentKind = "child" | "daemon";

export interface ChatChanged {
  readonly agent: string | null;
  readonly phase: ChatPhase;
  readonly writes: ChatWrites;
}

export interface ChatCommand {
  readonly command: AgentCommand;
}

export interface ChatConnect {
  readonly agent: string;
  readonly ifIdle?: boolean;
}

export interface ChatEvent {
  readonly epoch: string;
  readonly sequence: number;
  readonly event: AgentEvent;
}

export type ChatPhase = "idle" | "connecting" | "connected" | "interrupted" | "ended";

export interface ChatState extends ChatChanged {
  readonly agents: readonly ChatAgent[];
  readonly epoch: string;
  readonly sequence: number;
  readonly events: readonly AgentEvent[];
}

export type ChatWrites = "review" | "allow";

export interface ChatWritesChoice {
  readonly writes: ChatWrites;
}

export interface ConnectedSession {
  readonly sessionId: SessionId;
  readonly agent: string;
  readonly agentVersion?: string;
  readonly attached: boolean;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly abilities: Abilities;
  readonly locality: Locality;
}

export type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data?: string; readonly mimeType: string }
  | { readonly type: "resource_link"; readonly name: string; readonly uri: string }
  | { readonly type: "file"; readonly name: string; readonly mimeType: string; readonly data: string }
  | { readonly type: "image" | "resource"; readonly attachmentId: string; readonly mimeType: string; readonly size: number }
  | { readonly type: "resource"; readonly resource: { readonly uri: string; readonly mimeType?: string } }
  | { readonly type: string };

export interface Cursor {
  readonly line: number;
  readonly character: number;
}

export interface DecideHunkParams {
  readonly review: ReviewId;
  readonly hunk: HunkId;
  readonly decision: HunkAction;
}

export interface Diagnostic {
  readonly start: Cursor;
  readonly end: Cursor;
  readonly severity: Severity;
  readonly message: string;
  readonly source?: string;
  readonly code?: string;
}

export interface DiagnosticsQuery {
  readonly path?: string;
}

export type DisconnectKind = "requested" | "died" | "closed" | "unauthorized" | "failed";

export interface Edit {
  readonly review: ReviewId;
  readonly content: string;
}

export type Empty = Readonly<Record<never, never>>;

export interface File {
  readonly path: string;
  readonly timestamp: number;
  readonly isActive?: boolean;
  readonly cursor?: Cursor;
  readonly selectedText?: string;
}

export interface FileDiagnostics {
  readonly path: string;
  readonly diagnostics: readonly Diagnostic[];
}

export interface FilePath {
  readonly path: string;
}

export interface FileTarget {
  readonly path: string;
  readonly line?: number;
}

export interface Focus {
  readonly path: string;
  readonly cursor?: Cursor;
  readonly selectedText?: string;
  readonly selectionStart?: Cursor;
}

export interface Folders {
  readonly folders: readonly string[];
}

export interface Hello {
  readonly protocol: number;
  readonly name: string;
  readonly watch?: boolean;
  readonly interactive?: boolean;
  readonly trusted?: boolean;
  readonly chat?: boolean;
  readonly opensFiles?: boolean;
}

export interface HiddenFile {
  readonly path: string;
  readonly reason: string;
  readonly rule?: Rule;
}

export type HookAgent = "claude" | "codex" | "copilot" | "gemini" | "opencode" | "qwen";

export interface HookFile {
  readonly path: string;
  readonly content?: string;
}

export type HookFollower = "hook" | "diff";

export type HookOutcome =
  | { readonly outcome: "accepted"; readonly content?: string }
  | { readonly outcome: "rejected"; readonly reason?: string };

export interface HookReview {
  readonly agent: HookAgent;
  readonly session: string;
  readonly files: readonly HookFile[];
  readonly followedBy?: readonly HookFollower[];
}

export interface HookReviewed {
  readonly files: readonly HookOutcome[];
}

export interface HookSession {
  readonly agent: HookAgent;
  readonly session: string;
}

export interface Hunk {
  readonly id: HunkId;
  readonly state: HunkState;
  readonly yours: boolean;
  readonly kind: HunkKind;
  readonly base: LineRange;
  readonly proposal: LineRange;
  readonly draft: LineRange;
}

export type HunkAction = "accept" | "reject" | "keep";

export interface HunkChange {
  readonly at: number;
  readonly removed: number;
  readonly now: readonly Hunk[];
  readonly shift: number;
}

export type HunkId = number;

export type HunkKind = "text" | "whitespace" | "lineEnding" | "finalNewline" | "byteOrderMark";

export type HunkState = "accepted" | "rejected" | "edited" | "conflict";

export interface Hunks {
  readonly hunks: readonly Hunk[];
}

export interface IdeContext {
  readonly workspaceState: WorkspaceState;
}

export interface LineRange {
  readonly start: number;
  readonly count: number;
}

export type Locality =
  | { readonly where: "child" }
  | { readonly where: "daemon"; readonly preflight: readonly PreflightCell[] };

export interface Location {
  readonly path: string;
  readonly line: number | null;
}

export interface MentionTarget {
  readonly session?: SessionKey;
}

export interface Mentioned {
  readonly session: SessionKey;
  readonly agent: AgentIdentity;
  readonly path: string;
  readonly firstLine?: number;
  readonly lastLine?: number;
}

export interface ModeInfo {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
}

export interface ModelInfo {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly contextLimit: number | null;
}

export interface Models {
  readonly current: string | null;
  readonly available: readonly ModelInfo[];
}

export interface Modes {
  readonly current: string | null;
  readonly available: readonly ModeInfo[];
}

export type NoticeLevel = "information" | "warning" | "unsupported";

export type OptionKind = string;

export interface PageFile {
  readonly path: string;
}

export interface PageLink {
  readonly url: string;
}

export interface PageTarget {
  readonly view?: PageView;
}

export type PageView = "reviews" | "chat";

export type PermissionDecision =
  | { readonly decision: "select"; readonly optionId: string; readonly answers?: Answers }
  | { readonly decision: "cancel" };

export interface PermissionOption {
  readonly optionId: string;
  readonly name: string;
  readonly kind: OptionKind;
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

export interface PreflightCell {
  readonly kind: string;
  readonly status: string;
  readonly locality: string | null;
  readonly error: string | null;
  readonly detail: unknown;
}

export interface ProblemsChanged {
  readonly problems: readonly string[];
}

export interface Question {
  readonly answerKey: string;
  readonly question: string;
  readonly header: string;
  readonly choices: readonly QuestionChoice[];
  readonly multiple: boolean;
}

export interface QuestionChoice {
  readonly label: string;
  readonly description: string;
}

export interface Reject {
  readonly review: ReviewId;
  readonly reason?: string;
}

export interface ReviewClosed {
  readonly review: ReviewId;
  readonly path: string;
  readonly outcome: ReviewOutcome;
}

export interface ReviewDecided {
  readonly review: ReviewId;
  readonly outcome: ReviewOutcome;
}

export interface ReviewEdited {
  readonly review: ReviewId;
  readonly version: number;
  readonly changes: readonly TextChange[];
  readonly hunks: HunkChange;
  readonly request?: unknown;
}

export type ReviewId = number;

export type ReviewOutcome = "accepted" | "rejected" | "closedByAgent" | "orphaned" | "shutDown";

export interface ReviewRebased {
  readonly review: ReviewId;
  readonly conflicts: number;
}

export interface ReviewRef {
  readonly review: ReviewId;
}

export interface ReviewSummary {
  readonly id: ReviewId;
  readonly path: string;
  readonly agent: string;
  readonly agentVersion?: string;
  readonly session: SessionKey;
  readonly revision: number;
  readonly version: number;
  readonly newFile: boolean;
  readonly edited: boolean;
  readonly size: ChangeSize;
  readonly conflicts: number;
  readonly takesReason: boolean;
  readonly opened: number;
}

export interface ReviewTexts extends ReviewSummary {
  readonly base?: string;
  readonly proposal: string;
  readonly draft: string;
  readonly hunks: readonly Hunk[];
  readonly notes: readonly string[];
}

export interface Rule {
  readonly pattern: string;
  readonly origin: string;
}

export type SessionId = string;

export type SessionKey = string;

export interface SessionRef {
  readonly session: SessionKey;
}

export interface SessionSummary {
  readonly sessionId: SessionId;
  readonly workspaceCwd: string;
  readonly displayName: string | null;
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
  readonly hasActivePrompt: boolean;
  readonly clientCount: number;
}

export type Severity = "error" | "warning" | "information" | "hint";

export interface ShownContext {
  readonly context: IdeContext;
  readonly hidden: readonly HiddenFile[];
}

export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  readonly hint: string | null;
}

export interface Status {
  readonly pid: number;
  readonly port: number;
  readonly version: string;
  readonly displayName: string;
  readonly workspace: readonly string[];
  readonly files: readonly string[];
  readonly problems: readonly string[];
  readonly agents: readonly AgentSummary[];
  readonly reviews: readonly ReviewSummary[];
}

export interface TextChange {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

export interface Texts {
  readonly base: string;
  readonly proposal: string;
}

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly thoughtTokens: number;
  readonly cachedReadTokens: number;
}

export interface ToolCall {
  readonly id: string;
  readonly title: string;
  readonly kind: string;
  readonly status: ToolStatus;
  readonly toolName: string | null;
  readonly input: unknown;
  readonly output: unknown;
  readonly locations: readonly Location[];
  readonly content: readonly ToolContent[];
}

export type ToolContent =
  | { readonly type: "content"; readonly content: ContentBlock }
  | { readonly type: "diff"; readonly path: string; readonly oldText: string | null; readonly newText: string }
  | { readonly type: "other"; readonly value: unknown };

export type ToolStatus = string;

export type TurnEnd =
  | { readonly outcome: "completed"; readonly stopReason: string }
  | { readonly outcome: "cancelled"; readonly stopReason: string }
  | { readonly outcome: "failed"; readonly message: string; readonly code: string | null };

export interface Undecided {
  readonly review: ReviewId;
  readonly message: string;
}

export interface Variables {
  readonly variables: Readonly<Record<string, string>>;
}

export interface Version {
  readonly version: number;
}

export interface Welcome {
  readonly protocol: number;
  readonly version: string;
  readonly pid: number;
  readonly workspace: readonly string[];
}

export interface WorkspaceState {
  readonly openFiles: readonly File[];
  readonly isTrusted?: boolean;
}

/** Parameters and response of each request, by method. */
export interface Requests {
  hello: { readonly params: Hello; readonly response: Welcome };
  "context/open": { readonly params: FilePath; readonly response: Empty };
  "context/focus": { readonly params: Focus; readonly response: Empty };
  "window/focus": { readonly params: Empty; readonly response: Empty };
  "context/close": { readonly params: FilePath; readonly response: Empty };
  "context/show": { readonly params: Empty; readonly response: ShownContext };
  "agent/mention": { readonly params: MentionTarget; readonly response: Mentioned };
  "review/list": { readonly params: Empty; readonly response: readonly ReviewSummary[] };
  "review/get": { readonly params: ReviewRef; readonly response: ReviewTexts };
  "review/edit": { readonly params: Edit; readonly response: ReviewSummary };
  "review/change": { readonly params: Change; readonly response: Version };
  "review/hunk": { readonly params: DecideHunkParams; readonly response: Version };
  "review/accept": { readonly params: Accept; readonly response: ReviewDecided };
  "review/reject": { readonly params: Reject; readonly response: ReviewDecided };
  "review/acceptAll": { readonly params: SessionRef; readonly response: BulkDecision };
  "review/rejectAll": { readonly params: SessionRef; readonly response: BulkDecision };
  "hook/review": { readonly params: HookReview; readonly response: HookReviewed };
  "hook/prompt": { readonly params: HookSession; readonly response: Empty };
  "context/buffer": { readonly params: Buffer; readonly response: Empty };
  "context/diagnostics": { readonly params: FileDiagnostics; readonly response: Empty };
  "diagnostics/list": { readonly params: DiagnosticsQuery; readonly response: readonly FileDiagnostics[] };
  "file/open": { readonly params: FileTarget; readonly response: Empty };
  "workspace/set": { readonly params: Folders; readonly response: Empty };
  "workspace/enter": { readonly params: FilePath; readonly response: Empty };
  status: { readonly params: Empty; readonly response: Status };
  doctor: { readonly params: Empty; readonly response: unknown };
  "page/link": { readonly params: PageTarget; readonly response: PageLink };
  "page/file": { readonly params: PageTarget; readonly response: PageFile };
  "demo/start": { readonly params: Empty; readonly response: ReviewRef };
  "terminal/environment": { readonly params: Empty; readonly response: Variables };
  "chat/state": { readonly params: Empty; readonly response: ChatState };
  "chat/connect": { readonly params: ChatConnect; readonly response: Empty };
  "chat/disconnect": { readonly params: Empty; readonly response: Empty };
  "chat/command": { readonly params: ChatCommand; readonly response: AgentReply };
  "chat/writes": { readonly params: ChatWritesChoice; readonly response: Empty };
  diff: { readonly params: Texts; readonly response: Hunks };
  leaving: { readonly params: Empty; readonly response: Empty };
  handOver: { readonly params: Empty; readonly response: Empty };
  stop: { readonly params: Empty; readonly response: Empty };
}

/** Parameters of each notification, by method. */
export interface Notifications {
  "review/opened": ReviewSummary;
  "review/changed": ReviewSummary;
  "review/edited": ReviewEdited;
  "review/rebased": ReviewRebased;
  "review/closed": ReviewClosed;
  "agents/changed": AgentsChanged;
  "context/changed": IdeContext;
  "problems/changed": ProblemsChanged;
  "file/show": FileTarget;
  "chat/event": ChatEvent;
  "chat/changed": ChatChanged;
  resync: Empty;
}
