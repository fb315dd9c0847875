// The agent panel: the connected agent, where it runs, and the others to switch to.

import { element } from "../dom";
import { plain, sessionLabel } from "../format";
import type { ChatAgent, ChatConnection, ConnectedSession, PreflightCell, Writes } from "./protocol";

export const DAEMON_SENTENCE =
  "Uses the files, MCP servers, skills and credentials of the daemon\u2019s host, not those of this page\u2019s companion.";

export function writesSentence(writes: Writes): string {
  return writes === "review" ? "File writes go through review." : "File writes are not reviewed.";
}

export function agentButtons(agents: readonly ChatAgent[], current: string | null, connect: (agent: ChatAgent) => void): HTMLElement {
  if (agents.length === 0) return element("p", { class: "faint" }, "No agents are available.");
  return element(
    "ul",
    { class: "agent-choices" },
    ...agents.map((agent) =>
      element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            class: "agent-choice",
            "data-testid": "choose-agent",
            "data-agent": agent.id,
            "aria-current": agent.id === current ? "true" : null,
            "aria-disabled": String(agent.problem !== null),
            onclick: () => agent.problem === null && connect(agent),
          },
          element("span", { class: "name" }, plain(agent.name)),
          element(
            "span",
            { class: "detail" },
            agent.problem !== null
              ? plain(agent.problem)
              : agent.kind === "daemon"
                ? "runs in a daemon, with its host\u2019s files and credentials"
                : "runs locally, started by the companion",
          ),
        ),
      ),
    ),
  );
}

export interface AgentPanelListener {
  connect(agent: ChatAgent): void;
  disconnect(): void;
  setWrites(writes: Writes): void;
}

export function agentPanel(
  session: ConnectedSession | null,
  connection: ChatConnection,
  agents: readonly ChatAgent[],
  listener: AgentPanelListener,
): HTMLElement {
  const connected = connection.phase === "connected" || connection.phase === "interrupted";
  const made = element("div", { class: "agent-panel", "data-testid": "agent-panel" });
  if (connected && session) {
    made.append(
      element(
        "dl",
        { class: "facts" },
        ...fact("Agent", sessionLabel(session)),
        ...fact("Working directory", session.workspace),
        ...fact("Session", session.attached ? "joined an existing session; others may be connected" : "started here"),
      ),
      element("button", { type: "button", "data-testid": "disconnect", onclick: () => listener.disconnect() }, "Disconnect"),
    );
    if (session.locality.where === "daemon")
      made.append(element("h3", {}, "Where it runs"), element("p", {}, DAEMON_SENTENCE), preflight(session.locality.preflight));
  }
  if (!session || session.locality.where === "child") made.append(writesSwitch(connection.writes, listener));
  made.append(
    element("h3", {}, connected ? "Switch agent" : "Choose an agent"),
    agentButtons(agents, connected ? connection.agent : null, (agent) => listener.connect(agent)),
  );
  return made;
}

function fact(name: string, value: string): HTMLElement[] {
  return [element("dt", {}, name), element("dd", {}, plain(value))];
}

export function writesSwitch(writes: Writes, { setWrites }: Pick<AgentPanelListener, "setWrites">): HTMLElement {
  const option = (value: Writes, label: string) => {
    const input = element("input", {
      type: "radio",
      name: "writes",
      value,
      "data-testid": `writes-${value}`,
      onchange: () => setWrites(value),
    });
    input.checked = writes === value;
    return element("label", {}, input, label);
  };
  return element(
    "fieldset",
    { class: "writes", "data-testid": "writes", "data-writes": writes },
    element("legend", {}, "When a local agent writes a file"),
    option("review", "review it first"),
    option("allow", "write it immediately"),
  );
}

const CELLS: Record<string, string> = { ok: "good", warning: "waiting", error: "bad" };

function preflight(cells: readonly PreflightCell[]): HTMLElement {
  if (cells.length === 0) return element("p", { class: "faint" }, "The daemon reports no details.");
  return element(
    "ul",
    { class: "files agents", "data-testid": "preflight" },
    ...cells.map((cell) =>
      element(
        "li",
        {},
        element("span", { class: `dot ${CELLS[cell.status] ?? ""}`, "aria-hidden": "true" }),
        element("span", { class: "path" }, plain(cell.kind.replaceAll("_", " "))),
        element(
          "span",
          { class: "detail" },
          [
            plain(cell.status),
            cell.locality ? `applies to: ${plain(cell.locality)}` : "",
            cell.error ? plain(cell.error) : "",
            details(cell.detail),
          ]
            .filter(Boolean)
            .join(" \u00b7 "),
        ),
      ),
    ),
  );
}

function details(detail: unknown): string {
  if (detail === null || detail === undefined) return "";
  if (typeof detail === "string") return plain(detail);
  if (typeof detail !== "object") return String(detail);
  const entries = Object.entries(detail).filter(([, value]) => value !== null && typeof value !== "object");
  return entries.map(([name, value]) => `${plain(name)}: ${plain(String(value))}`).join(", ");
}
