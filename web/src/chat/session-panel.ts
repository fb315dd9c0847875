// The sessions panel: saved sessions, a page at a time.

import { element } from "../dom";
import { age, plain } from "../format";
import type { AgentReply, ConnectedSession, SessionSummary } from "./protocol";

export type SessionPage = Omit<Extract<AgentReply, { type: "sessions" }>, "type">;

/** The sessions loaded so far. */
export class SessionPages {
  readonly sessions: SessionSummary[] = [];
  private cursor: string | undefined;

  constructor(private readonly load: (cursor: string | undefined) => Promise<SessionPage>) {}

  get hasMore(): boolean {
    return this.cursor !== undefined;
  }

  /** Loads the next page and returns its sessions, without those of earlier pages. */
  async next(): Promise<readonly SessionSummary[]> {
    const { sessions, nextCursor } = await this.load(this.cursor);
    this.cursor = nextCursor;
    // A session that is used between two pages moves, and can be on both.
    const known = new Set(this.sessions.map(({ sessionId }) => sessionId));
    const added = sessions.filter(({ sessionId }) => !known.has(sessionId));
    this.sessions.push(...added);
    return added;
  }
}

export interface SessionPanelListener {
  open(session: SessionSummary): void;
  rename(): void;
}

/** Shows the first page, and a button for the next. */
export async function sessionPanel(
  pages: SessionPages,
  current: ConnectedSession | null,
  listener: SessionPanelListener,
): Promise<HTMLElement> {
  await pages.next();
  if (pages.sessions.length === 0 && !pages.hasMore)
    return element("p", { class: "faint", "data-testid": "no-sessions" }, "The agent has no saved sessions for this folder.");
  const row = (session: SessionSummary) => sessionRow(session, current, listener);
  const list = element("ul", { class: "files sessions", "data-testid": "sessions" }, ...pages.sessions.map(row));
  const problem = element("p", { class: "problem", hidden: true });
  const more = element("button", { type: "button", "data-testid": "more-sessions", onclick: () => void showMore() }, "Show more");
  more.hidden = !pages.hasMore;
  let isLoading = false;
  const showMore = async () => {
    if (isLoading) return;
    isLoading = true;
    try {
      const rows = (await pages.next()).map(row);
      list.append(...rows);
      problem.hidden = true;
      // The button may disappear under the focus.
      if (document.activeElement === more) rows[0]?.querySelector("button")?.focus();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = (error as Error).message;
    }
    isLoading = false;
    more.hidden = !pages.hasMore;
  };
  return element("div", {}, list, problem, more);
}

function sessionRow(session: SessionSummary, current: ConnectedSession | null, listener: SessionPanelListener): HTMLElement {
  const isCurrent = session.sessionId === current?.sessionId;
  const when = session.updatedAt ?? session.createdAt;
  const about = [
    when && !Number.isNaN(Date.parse(when)) ? age(Date.parse(when)) : "",
    session.hasActivePrompt ? "running" : "",
    session.clientCount > 0 ? `${session.clientCount} connected` : "",
  ]
    .filter(Boolean)
    .join(" \u00b7 ");
  const name = plain(session.displayName ?? "") || `Session ${plain(session.sessionId.slice(0, 8))}`;
  const canOpen = current?.abilities.loadSessions ?? false;
  const button = (kind: string, testId: string, label: string, action: () => void) =>
    element("button", { type: "button", class: `quiet ${kind}`, "data-testid": testId, onclick: action }, label);
  return element(
    "li",
    { "data-testid": "session", "data-session": session.sessionId, "data-current": String(isCurrent) },
    isCurrent || !canOpen
      ? element("span", { class: "path" }, name)
      : button("session-open", "session-open", name, () => listener.open(session)),
    isCurrent && element("span", { class: "chip" }, "current"),
    isCurrent && current?.abilities.renameSessions && button("small", "session-rename", "Rename", () => listener.rename()),
    element("span", { class: "detail" }, about),
  );
}
