// Sentences for the ends of turns, sessions and connections, each with a next step. Agents and daemons report codes and ids.

/** Reasons that programs give, as a pattern, and what they mean. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/^daemon_shutdown$/, "The daemon was stopped."],
  [/^channel_closed$|^agent channel closed|^the agent exited \(signal/, "The agent stopped unexpectedly."],
  [/^client_close$/, "Another client closed the session."],
  [/^idle_timeout$|^session_idle/, "The daemon closed the session because it was not used."],
  [/^(invalid params: )?session is closing/i, "The session was being closed."],
];

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi;

/** Begins with a capital letter and ends with a period. */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const whole = /[.!?\u2026]$/.test(trimmed) ? trimmed : `${trimmed}.`;
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

/** A reason as a sentence. Empty if it has nothing that a user could read. */
export function readable(reason: string): string {
  const meaning = MEANINGS.find(([pattern]) => pattern.test(reason.trim()));
  if (meaning) return meaning[1];
  const words = reason
    // What the agent printed last is more useful than its status.
    .replace(/^the agent exited \([^)]*\): /, "the agent stopped: ")
    .replace(/\s*\((?:session|prompt|request|client)?\s*[0-9a-f-]{36}\)/gi, "")
    .replace(UUID, "\u2026")
    .trim();
  // A code, such as `ring_evicted`.
  return /^[a-z0-9]+(?:_[a-z0-9]+)+$/.test(words) ? "" : asSentence(words);
}

/** Only the first of nested causes (`cannot connect: lost: reset by peer`). */
export function firstCause(text: string): string {
  const causes = text.split(": ");
  return causes.length > 2 ? (causes[0] ?? text) : text;
}

const SESSION_ENDS: Record<string, string> = {
  requested: "The chat was disconnected.",
  died: "The agent stopped unexpectedly.",
  closed: "The session was closed.",
  unauthorized: "The agent requires a login.",
};

export function sessionEnd({ kind, reason, reopen }: { kind: string; reason: string; reopen: string | null }): string {
  const isExit = reason.startsWith("the agent exited");
  const what = readable(isExit ? reason : firstCause(reason)) || SESSION_ENDS[kind] || "The connection to the agent was lost.";
  if (kind === "unauthorized") return `${what} Log in to the agent, or set its token, and reconnect.`;
  if (kind === "died" && reopen !== null) return `${what} Send a message, or reopen the session, to continue where it ended.`;
  return `${what} ${reopen === null ? "Start a new session to continue." : "Reopen the session to continue where it ended."}`;
}

const STOP_REASONS: Record<string, string> = {
  cancelled: "Cancelled. Send a message to continue.",
  max_tokens: "The answer was cut off at the model\u2019s length limit. Ask the agent to continue.",
  max_turn_requests: "The agent stopped at the request limit for one turn. Ask it to continue.",
  refusal: "The model declined to continue. Rephrase your message, or choose another model.",
};

/** Why a turn ended early. */
export function turnStopped(stopReason: string): string {
  return STOP_REASONS[stopReason] ?? "The agent stopped before it was done. Ask it to continue.";
}

export function turnFailed(message: string): string {
  return `${readable(message) || "The agent could not continue."} Send your message again to retry.`;
}

/** Why a request can no longer be answered. */
export const EXPIRED = "The agent stopped before this was answered. Send your message again if you still want it.";
