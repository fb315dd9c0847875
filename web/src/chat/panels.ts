// The agent panel: the connected agent, where it runs, and the others to switch to.

import { element } from "../dom";
import { plain, sessionLabel } from "../format";
import { readable } from "./endings";
import type { ChatAgent, ChatConnection, ConnectedSession, PreflightCell, Writes } from "./protocol";

export const DAEMON_SENTENCE = "Uses the files, MCP servers, skills and credentials of the daemon\u2019s host, not those of the companion.";

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
      made.append(element("h3", {}, "Where it runs"), ownership(), preflight(session.locality.preflight) ?? "");
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

/** Whose files, servers, skills and credentials a daemon's agent uses. */
function ownership(): HTMLElement {
  const host = "of the daemon\u2019s host";
  const lines = [
    ["Files", host],
    ["MCP servers", `${host}, as configured there`],
    ["Skills", host],
    ["Credentials", "of the user who started the daemon"],
  ] as const;
  return element("dl", { class: "facts", "data-testid": "ownership" }, ...lines.flatMap(([name, whose]) => fact(name, whose)));
}

/** The daemon's checks in plain words: what is checked, whether it is fine, and the daemon's own sentence if it has one. */
function preflight(cells: readonly PreflightCell[]): HTMLElement | null {
  if (cells.length === 0) return null;
  return element(
    "details",
    { "data-testid": "preflight" },
    element("summary", {}, "Checks by the daemon"),
    element(
      "ul",
      { class: "files agents" },
      ...cells.map((cell) => {
        const [words, color] = checkResult(cell);
        return element(
          "li",
          {},
          element("span", { class: `dot ${color}`, "aria-hidden": "true" }),
          element("span", { class: "path" }, checkName(cell.kind)),
          element("span", { class: "detail" }, words),
        );
      }),
    ),
  );
}

const CHECKS: Record<string, string> = {
  node_version: "Node.js version",
  auth: "Login",
  mcp_discovery: "MCP servers",
  cli_entry: "Program",
  workspace_dir: "Working directory",
  ripgrep: "File search (ripgrep)",
  git: "Git",
  npm: "npm",
  skills: "Skills",
  providers: "Model providers",
  tool_registry: "Tools",
  egress: "Network access",
};

export function checkName(kind: string): string {
  const words = plain(kind.replaceAll("_", " "));
  return CHECKS[kind] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

const RESULTS: Record<string, readonly [string, string]> = {
  ok: ["fine", "good"],
  warning: ["needs attention", "waiting"],
  error: ["does not work", "bad"],
  disabled: ["turned off", ""],
  not_started: ["not checked yet", ""],
  unknown: ["not checked yet", ""],
};

/** The result in words, and its color. */
export function checkResult({ status, error }: PreflightCell): readonly [string, string] {
  const [words, color] = RESULTS[status] ?? [plain(status.replaceAll("_", " ")), ""];
  const why = error ? plain(readable(error)) : "";
  return [why ? `${words}: ${why}` : words, color];
}
