// The messages that the chat's webview may send. Everything else is dropped: what the webview shows comes from agents.
//
// Each check returns a copy with the known fields only, or undefined.

import type { AgentCommand, ContentBlock, PermissionDecision } from "../../../../web/src/generated/protocol";
import type { ChatNotifications } from "../../../../web/src/webview-messages";
import type { Requests } from "../protocol";

/** In UTF-16 code units. */
const MAX_NAME = 4096;
const MAX_TEXT = 4 * 1024 * 1024;
/** A file of 8 MB in base 64. */
const MAX_FILE = Math.ceil((8 * 1024 * 1024) / 3) * 4;
const MAX_BLOCKS = 64;
/** A message's files together, in base 64. */
const MAX_FILES = Math.ceil((32 * 1024 * 1024) / 3) * 4;
const MAX_ANSWERS = 64;

/** The requests that the chat needs. */
export type ChatMethod = "chat/state" | "chat/connect" | "chat/disconnect" | "chat/command" | "chat/writes" | "context/show" | "diff";

export type FromView =
  | { [Method in ChatMethod]: { readonly id: number; readonly method: Method; readonly params: Requests[Method]["params"] } }[ChatMethod]
  | { [Name in keyof ChatNotifications]: { readonly method: Name; readonly params: ChatNotifications[Name] } }[keyof ChatNotifications];

type Fields = Readonly<Record<string, unknown>>;
type Check<Value> = (fields: Fields) => Value | undefined;

const nothing: Check<Record<never, never>> = () => ({});

const REQUESTS: { readonly [Method in ChatMethod]: Check<Requests[Method]["params"]> } = {
  "chat/state": nothing,
  "chat/connect": ({ agent }) => (isName(agent) ? { agent } : undefined),
  "chat/disconnect": nothing,
  "chat/command": (params) => {
    const command = checkCommand(params["command"]);
    return command && { command };
  },
  "chat/writes": ({ writes }) => (writes === "review" || writes === "allow" ? { writes } : undefined),
  "context/show": nothing,
  diff: ({ base, proposal }) => (isText(base) && isText(proposal) ? { base, proposal } : undefined),
};

const NOTIFICATIONS: { readonly [Name in keyof ChatNotifications]: Check<ChatNotifications[Name]> } = {
  "view/ready": nothing,
  "view/openReview": ({ review }) => (review === undefined ? {} : isCount(review) ? { review } : undefined),
  "view/waiting": ({ count }) => (isCount(count) ? { count } : undefined),
  "view/startCompanion": nothing,
};

const COMMANDS: { readonly [Type in AgentCommand["type"]]: Check<AgentCommand & { readonly type: Type }> } = {
  prompt: (fields) => message("prompt", fields),
  midTurn: (fields) => message("midTurn", fields),
  rewind: ({ turn }) => (isCount(turn) ? { type: "rewind", turn } : undefined),
  readAttachment: ({ name }) => (isName(name) ? { type: "readAttachment", name } : undefined),
  cancel: () => ({ type: "cancel" }),
  answer: ({ requestId, decision }) => {
    const checked = checkDecision(decision);
    return isName(requestId) && checked ? { type: "answer", requestId, decision: checked } : undefined;
  },
  removeQueued: ({ promptId }) => (isName(promptId) ? { type: "removeQueued", promptId } : undefined),
  setModel: ({ modelId }) => (isName(modelId) ? { type: "setModel", modelId } : undefined),
  setMode: ({ modeId }) => (isName(modeId) ? { type: "setMode", modeId } : undefined),
  listSessions: ({ cursor }) => {
    if (cursor === undefined) return { type: "listSessions" };
    return isName(cursor) ? { type: "listSessions", cursor } : undefined;
  },
  newSession: () => ({ type: "newSession" }),
  loadSession: ({ sessionId }) => (isName(sessionId) ? { type: "loadSession", sessionId } : undefined),
  rename: ({ title }) => (isName(title) ? { type: "rename", title } : undefined),
  findFiles: ({ pattern }) => (isName(pattern) ? { type: "findFiles", pattern } : undefined),
};

/** The message if it is on the list and well formed. */
export function checkMessage(message: unknown): FromView | undefined {
  if (!isFields(message)) return undefined;
  const { id, method, params = {} } = message;
  if (typeof method !== "string" || !isFields(params)) return undefined;
  if (id === undefined) {
    const checked = lookUp(NOTIFICATIONS, method)?.(params);
    return checked && ({ method, params: checked } as FromView);
  }
  const checked = isCount(id) ? lookUp(REQUESTS, method)?.(params) : undefined;
  return checked && ({ id, method, params: checked } as FromView);
}

function checkCommand(command: unknown): AgentCommand | undefined {
  if (!isFields(command) || typeof command["type"] !== "string") return undefined;
  return lookUp(COMMANDS, command["type"])?.(command);
}

function message<Type extends "prompt" | "midTurn">(type: Type, { blocks }: Fields): (AgentCommand & { readonly type: Type }) | undefined {
  if (!Array.isArray(blocks) || blocks.length === 0 || blocks.length > MAX_BLOCKS) return undefined;
  const checked = blocks.map(checkBlock);
  if (checked.some((block) => block === undefined)) return undefined;
  const size = checked.reduce((sum, block) => sum + (block && "data" in block ? (block.data?.length ?? 0) : 0), 0);
  if (size > MAX_FILES) return undefined;
  return { type, blocks: checked } as AgentCommand & { readonly type: Type };
}

/** What the message box sends: text and attached files. */
function checkBlock(block: unknown): ContentBlock | undefined {
  if (!isFields(block)) return undefined;
  const { type, text, name, mimeType, data } = block;
  if (type === "text") return isText(text) ? { type, text } : undefined;
  if (type !== "file" || !isName(name) || !isName(mimeType) || typeof data !== "string" || data.length > MAX_FILE) return undefined;
  return { type, name, mimeType, data };
}

function checkDecision(decision: unknown): PermissionDecision | undefined {
  if (!isFields(decision)) return undefined;
  if (decision["decision"] === "cancel") return { decision: "cancel" };
  const { optionId, answers } = decision;
  if (decision["decision"] !== "select" || !isName(optionId)) return undefined;
  if (answers === undefined) return { decision: "select", optionId };
  if (!isFields(answers)) return undefined;
  const entries = Object.entries(answers);
  if (entries.length > MAX_ANSWERS || !entries.every(([key, answer]) => isName(key) && isText(answer))) return undefined;
  return { decision: "select", optionId, answers: Object.fromEntries(entries) as Record<string, string> };
}

/** Not a name that every object has, such as `constructor`. */
function lookUp<Checks extends object>(checks: Checks, name: string): Checks[keyof Checks] | undefined {
  return Object.hasOwn(checks, name) ? checks[name as keyof Checks] : undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_NAME;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TEXT;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
