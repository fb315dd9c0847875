// What the chat shows of a conversation, folded from the companion's events: `fold(shown, event)` returns the next transcript.
// Transcripts are immutable: an item that is the same object looks the same.

import { turnFailed, turnStopped } from "./endings";
import type {
  AgentEvent,
  Choices,
  ConnectedSession,
  ContentBlock,
  NoticeLevel,
  PermissionRequest,
  PlanEntry,
  SlashCommand,
  TokenUsage,
  ToolCall,
  TurnEnd,
} from "./protocol";

/** `expired`: the agent stopped before it had an answer. */
export type Closed = { readonly optionId: string | null; readonly own: boolean } | "expired";

export interface Approval {
  readonly request: PermissionRequest;
  /** Votes received and still needed, where one is not enough. */
  readonly votes: { readonly received: number; readonly needed: number } | null;
  /** How it ended; `null` while it is open. */
  readonly closed: Closed | null;
}

export type Item =
  | {
      readonly kind: "user";
      readonly promptId: string | null;
      readonly text: string;
      readonly others: readonly ContentBlock[];
      readonly own: boolean;
      /** Whether the agent received it during a turn: it starts none. */
      readonly midTurn: boolean;
    }
  | { readonly kind: "answer" | "thinking"; readonly promptId: string | null; readonly text: string }
  | { readonly kind: "block"; readonly block: ContentBlock }
  | { readonly kind: "tool"; readonly call: ToolCall; readonly approval: Approval | null }
  | { readonly kind: "notice"; readonly level: NoticeLevel | "problem"; readonly message: string };

export interface QueuedPrompt {
  readonly promptId: string;
  readonly text: string;
  /** Whether it was sent from a page of this companion. */
  readonly own: boolean;
}

export interface Transcript {
  readonly session: ConnectedSession | null;
  readonly items: readonly Item[];
  readonly queue: readonly QueuedPrompt[];
  /** The running turn. */
  readonly turn: { readonly promptId: string | null; readonly cancelling: boolean } | null;
  readonly plan: readonly PlanEntry[];
  readonly models: Choices;
  readonly modes: Choices;
  readonly commands: readonly SlashCommand[];
  readonly skills: readonly string[];
  readonly context: { readonly used: number; readonly size: number } | null;
  readonly tokens: TokenUsage | null;
  readonly title: string;
  readonly suggestion: string;
  readonly interrupted: { readonly reason: string; readonly retryInMilliseconds: number } | null;
  readonly over: { readonly kind: string; readonly reason: string; readonly reopen: string | null } | null;
  /** Requests that were open before the history that is being replayed. */
  readonly asked: readonly Approval[];
  /** Whether history is being replayed, which is not announced. */
  readonly replaying: boolean;
}

const NO_CHOICES: Choices = { current: null, available: [] };

export const EMPTY: Transcript = {
  session: null,
  items: [],
  queue: [],
  turn: null,
  plan: [],
  models: NO_CHOICES,
  modes: NO_CHOICES,
  commands: [],
  skills: [],
  context: null,
  tokens: null,
  title: "",
  suggestion: "",
  interrupted: null,
  over: null,
  asked: [],
  replaying: false,
};

/** The status of a tool call whose turn ended before it. */
export const STOPPED = "stopped";
const UNFINISHED: ReadonlySet<string> = new Set(["pending", "in_progress"]);

/** Open approvals, oldest first. */
export function openApprovals(shown: Transcript): Approval[] {
  const found: Approval[] = [];
  for (const item of shown.items) if (item.kind === "tool" && item.approval && !item.approval.closed) found.push(item.approval);
  return found;
}

export function foldAll(shown: Transcript, events: readonly AgentEvent[]): Transcript {
  let next = shown;
  for (const event of events) next = fold(next, event);
  return next;
}

export function fold(shown: Transcript, event: AgentEvent): Transcript {
  switch (event.type) {
    case "connected": {
      // A log has it in its middle when the companion or the connection was replaced. Another conversation is another log.
      const { type: _, ...session } = event;
      return { ...shown, session, interrupted: null, over: null };
    }
    case "historyStart":
      return { ...shown, asked: openApprovals(shown), items: [], queue: [], turn: null, plan: [], suggestion: "", replaying: true };
    case "historyEnd":
      return replayed(shown);
    case "promptAccepted":
      return {
        ...shown,
        suggestion: "",
        items: [...shown.items, ownMessage(event.promptId, event.text)],
      };
    case "userMessage":
      return { ...shown, suggestion: "", items: userPiece(shown.items, event.promptId, event.content, shown.replaying) };
    case "midTurnMessage":
      return midTurnMessage(shown, event.messageId, event.blocks, event.own);
    case "rewound":
      return rewound(shown, event.turn);
    case "turnStarted":
      return { ...unqueue(shown, event.promptId, false), turn: { promptId: event.promptId, cancelling: false } };
    case "assistantChunk":
      return { ...shown, items: piece(shown.items, "answer", event.promptId, event.content) };
    case "thinkingChunk":
      return { ...shown, items: piece(shown.items, "thinking", event.promptId, event.content) };
    case "toolCall":
      return { ...shown, items: card(shown.items, event.call) };
    case "plan":
      return { ...shown, plan: event.entries };
    case "approvalOpened":
      return { ...shown, items: opened(shown.items, event.request) };
    case "approvalProgress":
      return {
        ...shown,
        items: approval(shown.items, event.requestId, (known) => ({ ...known, votes: { received: event.received, needed: event.needed } })),
      };
    case "approvalClosed":
      return {
        ...shown,
        items: approval(shown.items, event.requestId, (known) => ({
          ...known,
          closed: known.closed ?? { optionId: event.optionId, own: event.own },
        })),
      };
    case "cancelRequested":
      return { ...shown, turn: shown.turn && { ...shown.turn, cancelling: true } };
    case "turnEnded":
      return ended(shown, event.promptId, event.end);
    case "promptQueued":
      return queued(shown, event.promptId, event.text);
    case "promptUnqueued":
      return unqueue(shown, event.promptId, event.removed);
    case "models":
      return { ...shown, models: { current: event.current, available: event.available } };
    case "modes":
      return { ...shown, modes: { current: event.current, available: event.available } };
    case "modelChanged":
      return { ...shown, models: { ...shown.models, current: event.modelId } };
    case "modelChangeFailed":
      return notice(shown, "warning", `Could not switch to model ${event.modelId}: ${event.message}`);
    case "modeChanged":
      return { ...shown, modes: { ...shown.modes, current: event.modeId } };
    case "commands":
      return { ...shown, commands: event.commands, skills: event.skills };
    case "contextUsage":
      return { ...shown, context: { used: event.used, size: event.size } };
    case "tokenUsage": {
      const { type: _, ...tokens } = event;
      return { ...shown, tokens };
    }
    case "title":
      return { ...shown, title: event.title };
    case "suggestion":
      return { ...shown, suggestion: event.text };
    case "notice":
      return notice(shown, event.level, event.message);
    case "interrupted":
      return { ...shown, interrupted: { reason: event.reason, retryInMilliseconds: event.retryInMilliseconds } };
    case "reconnected":
      return { ...shown, interrupted: null };
    case "disconnected":
      return over(shown, event);
    default:
      // A newer companion may send other events: show them as unknown instead of dropping them.
      return notice(shown, "unsupported", `This page cannot display an event (${String((event as { type?: unknown }).type)}).`);
  }
}

function notice(shown: Transcript, level: NoticeLevel | "problem", message: string): Transcript {
  return { ...shown, items: [...shown.items, { kind: "notice", level, message }] };
}

function textOf(content: ContentBlock): string | null {
  return content.type === "text" && "text" in content && typeof content.text === "string" ? content.text : null;
}

/** Appends to the last item if it is of the same kind and turn, or starts another. */
function piece(items: readonly Item[], kind: "answer" | "thinking", promptId: string | null, content: ContentBlock): readonly Item[] {
  const text = textOf(content);
  if (text === null) return [...items, { kind: "block", block: content }];
  if (text === "") return items;
  const last = items.at(-1);
  if (last?.kind === kind && last.promptId === promptId) return replaceLast(items, { ...last, text: last.text + text });
  return [...items, { kind, promptId, text }];
}

function ownMessage(promptId: string, text: string): Item {
  return { kind: "user", promptId, text, others: [], own: true, midTurn: false };
}

/** A part of a message: with an id it continues the last message, without one only what is right before it. */
function userPiece(items: readonly Item[], promptId: string | null, content: ContentBlock, isHistory: boolean): readonly Item[] {
  const text = textOf(content);
  const index = items.findLastIndex((item) => item.kind === "user" && !item.midTurn);
  const last = items[index];
  if (last?.kind === "user" && last.promptId === promptId && (promptId !== null || index === items.length - 1)) {
    return items.with(index, text === null ? { ...last, others: [...last.others, content] } : { ...last, text: last.text + text });
  }
  // History does not record who sent a message. A live message that is not ours was sent from elsewhere.
  return [...items, { kind: "user", promptId, text: text ?? "", others: text === null ? [content] : [], own: isHistory, midTurn: false }];
}

/** The agent received a message during a turn: it is shown here, and no longer in the queue or where it was accepted. */
function midTurnMessage(shown: Transcript, id: string | null, blocks: readonly ContentBlock[], own: boolean): Transcript {
  const text = blocks.map((block) => textOf(block) ?? "").join("");
  const others = blocks.filter((block) => textOf(block) === null);
  return {
    ...shown,
    queue: shown.queue.filter(({ promptId }) => promptId !== id),
    items: [...withoutMessage(shown.items, id), { kind: "user", promptId: id, text, others, own, midTurn: true }],
  };
}

/** Removes a message. An answer that it interrupted is one again. */
function withoutMessage(items: readonly Item[], id: string | null): readonly Item[] {
  const index = items.findIndex((item) => id !== null && item.kind === "user" && item.promptId === id);
  if (index < 0) return items;
  const [before, after] = [items[index - 1], items[index + 1]];
  const isOne = before && after && "text" in before && "text" in after && before.kind === after.kind && before.kind !== "user";
  if (!isOne || after.kind === "user" || before.promptId !== after.promptId) return items.toSpliced(index, 1);
  return items.toSpliced(index - 1, 3, { ...before, text: before.text + after.text });
}

/** The messages that start turns, in order. */
export function turnStarts(items: readonly Item[]): readonly Item[] {
  return items.filter((item) => item.kind === "user" && !item.midTurn);
}

function rewound(shown: Transcript, turn: number): Transcript {
  const first = turnStarts(shown.items)[turn];
  if (!first) return shown;
  return { ...shown, items: stopped(shown.items.slice(0, shown.items.indexOf(first))), turn: null, plan: [], suggestion: "" };
}

function replaceLast(items: readonly Item[], item: Item): readonly Item[] {
  const copy = items.slice();
  copy[copy.length - 1] = item;
  return copy;
}

/** The index of a tool call, searched from the end, where most events belong. */
function cardIndex(items: readonly Item[], matches: (item: Item & { kind: "tool" }) => boolean): number {
  return items.findLastIndex((item) => item.kind === "tool" && matches(item));
}

function card(items: readonly Item[], call: ToolCall): readonly Item[] {
  const index = cardIndex(items, (item) => item.call.id === call.id);
  const known = items[index];
  if (known?.kind !== "tool") return [...items, { kind: "tool", call, approval: null }];
  return items.with(index, { ...known, call: completed(call, known.call) });
}

/** The newer state of a call, with fields that only the older one had. */
function completed(newer: ToolCall, older: ToolCall): ToolCall {
  return {
    ...newer,
    title: newer.title || older.title,
    kind: newer.kind || older.kind,
    toolName: newer.toolName ?? older.toolName,
    input: newer.input ?? older.input,
    locations: newer.locations.length > 0 ? newer.locations : older.locations,
    content: newer.content.length > 0 ? newer.content : older.content,
  };
}

/** An approval belongs to the tool call that it is about. */
function opened(items: readonly Item[], request: PermissionRequest): readonly Item[] {
  const fresh: Approval = { request, votes: null, closed: null };
  const index = cardIndex(items, (item) => item.call.id === request.toolCall.id);
  const known = items[index];
  if (known?.kind !== "tool") return [...items, { kind: "tool", call: request.toolCall, approval: fresh }];
  if (known.approval?.request.requestId === request.requestId) return items;
  const call = { ...completed(request.toolCall, known.call), status: known.call.status, output: known.call.output };
  return items.with(index, { kind: "tool", call, approval: fresh });
}

function approval(items: readonly Item[], requestId: string, change: (known: Approval) => Approval): readonly Item[] {
  const index = cardIndex(items, (item) => item.approval?.request.requestId === requestId);
  const known = items[index];
  if (known?.kind !== "tool" || !known.approval) return items;
  return items.with(index, { ...known, approval: change(known.approval) });
}

/** Queued prompts are shown in the queue, not in the conversation. */
function queued(shown: Transcript, promptId: string, text: string): Transcript {
  if (shown.queue.some((known) => known.promptId === promptId)) return shown;
  const sent = shown.items.find((item) => item.kind === "user" && item.promptId === promptId);
  return {
    ...shown,
    items: withoutMessage(shown.items, promptId),
    queue: [...shown.queue, { promptId, text, own: sent?.kind === "user" && sent.own }],
  };
}

function unqueue(shown: Transcript, promptId: string, removed: boolean): Transcript {
  const waited = shown.queue.find((known) => known.promptId === promptId);
  if (!waited) return shown;
  const queue = shown.queue.filter((known) => known !== waited);
  // A prompt from elsewhere arrives as a `userMessage` when its turn starts.
  if (removed || !waited.own) return { ...shown, queue };
  return { ...shown, queue, items: [...shown.items, ownMessage(promptId, waited.text)] };
}

function ended(shown: Transcript, promptId: string | null, end: TurnEnd): Transcript {
  const isRunning = !shown.turn || promptId === null || shown.turn.promptId === null || shown.turn.promptId === promptId;
  const next: Transcript = isRunning ? { ...shown, turn: null, items: stopped(shown.items) } : shown;
  if (end.outcome === "failed") return notice(next, "problem", turnFailed(end.message));
  if (end.stopReason === "end_turn" || end.stopReason === "") return next;
  return notice(next, "information", turnStopped(end.stopReason));
}

/** No turn is running: what is unfinished stays so, and open requests can no longer be answered. */
function stopped(items: readonly Item[]): readonly Item[] {
  const isOpen = (item: Item) =>
    item.kind === "tool" && ((item.approval !== null && !item.approval.closed) || UNFINISHED.has(item.call.status));
  if (!items.some(isOpen)) return items;
  return items.map((item): Item => {
    if (item.kind !== "tool" || !isOpen(item)) return item;
    const call = UNFINISHED.has(item.call.status) ? { ...item.call, status: STOPPED } : item.call;
    return { ...item, call, approval: item.approval && { ...item.approval, closed: item.approval.closed ?? "expired" } };
  });
}

/** A history replaces the conversation: requests that were open before it, and are not in it, expired. */
function replayed(shown: Transcript): Transcript {
  let { items } = shown;
  for (const lost of shown.asked) {
    const index = cardIndex(items, (item) => item.call.id === lost.request.toolCall.id);
    const known = items[index];
    if (known?.kind === "tool" && !known.approval) items = items.with(index, { ...known, approval: { ...lost, closed: "expired" } });
  }
  return { ...shown, items: shown.turn ? items : stopped(items), asked: [], replaying: false };
}

/** The session ended, and with it all open approvals. */
function over(shown: Transcript, { kind, reason, reopen }: { kind: string; reason: string; reopen: string | null }): Transcript {
  const items = stopped(shown.items);
  return { ...shown, items, queue: [], turn: null, suggestion: "", interrupted: null, over: { kind, reason, reopen } };
}
