// The side panels: what agents see, which agents are connected, and whether agents can connect.

import { byId, type Child, element } from "./dom";
import { Drawer, type Panel } from "./drawer";
import { age, agentLabel, plain } from "./format";
import type { Agent, Doctor, IdeContext, OpenFile, Requester, ShownContext } from "./protocol";

const NAMES = ["context", "agents", "doctor"] as const;

export type PanelName = (typeof NAMES)[number];

export class Panels {
  readonly drawer = new Drawer(byId("body"), () => this.showButtons());
  private agents: readonly Agent[] = [];
  private hidden: ShownContext["hidden"] = [];
  private readonly panels: Record<PanelName, Panel> = {
    context: {
      name: "context",
      title: "What agents see",
      fill: async () => {
        const { context, hidden } = await this.connection.request("context/show");
        this.hidden = hidden;
        return this.context(context);
      },
    },
    agents: { name: "agents", title: "Agents", fill: () => this.agentList() },
    doctor: { name: "doctor", title: "Doctor", fill: async () => this.doctor(await this.connection.request("doctor")) },
  };

  constructor(private readonly connection: Requester) {
    for (const name of NAMES) byId(`open-${name}`).addEventListener("click", () => this.toggle(name));
  }

  toggle(name: PanelName): void {
    this.drawer.toggle(this.panels[name]);
  }

  setAgents(agents: readonly Agent[]): void {
    this.agents = agents;
    const listening = agents.filter((agent) => agent.listening).length;
    const badge = byId("agents-count");
    badge.textContent = String(agents.length);
    badge.classList.toggle("all", agents.length > 0 && listening === agents.length);
    void this.drawer.refresh("agents");
  }

  contextChanged(context: IdeContext): void {
    this.drawer.show("context", this.context(context));
    // The hidden files may have changed too.
    void this.drawer.refresh("context");
  }

  private showButtons(): void {
    for (const name of NAMES) byId(`open-${name}`).setAttribute("aria-expanded", String(this.drawer.shown === name));
  }

  private context(context: IdeContext): Child[] {
    const files = context.workspaceState?.openFiles ?? [];
    return [
      element("p", { class: "faint" }, "Exactly what every connected agent sees, updated live."),
      files.length === 0
        ? element("p", {}, "Agents see no open files.")
        : element("ul", { class: "files", "data-testid": "context-files" }, ...files.map(file)),
      files.length > 0 && this.agents.length > 0 && this.sendButton(),
      this.hidden.length > 0 &&
        element(
          "section",
          { "data-testid": "hidden-files" },
          element("h3", {}, "Hidden from agents"),
          element(
            "ul",
            { class: "files hidden-files" },
            ...this.hidden.map(({ path, reason }) =>
              element("li", {}, element("span", { class: "path" }, plain(path)), element("span", { class: "detail" }, plain(reason))),
            ),
          ),
        ),
    ];
  }

  /** Puts the selection, or the file, into the prompt of the agent that was used last. */
  private sendButton(): HTMLElement {
    const send = async (): Promise<void> => {
      try {
        const { agent } = await this.connection.request("agent/mention");
        button.textContent = `Sent to ${plain(agentLabel(agent.name, agent.version))}`;
      } catch (error) {
        button.textContent = plain((error as Error).message);
      }
    };
    const attributes = { type: "button", class: "quiet", "data-testid": "send-selection", onclick: () => void send() };
    const button = element("button", attributes, "Send to the agent\u2019s prompt");
    return button;
  }

  private agentList(): Child[] {
    if (this.agents.length === 0) {
      return [
        element("p", {}, "No agents connected."),
        element("p", { class: "faint" }, "Start an agent in a workspace folder. If it does not connect, Doctor shows why."),
      ];
    }
    const rows = this.agents.map((agent) =>
      element(
        "li",
        { "data-testid": "agent", "data-listening": String(agent.listening) },
        element("span", { class: `dot ${agent.listening ? "good" : "waiting"}`, "aria-hidden": "true" }),
        element("span", { class: "path" }, plain(agentLabel(agent.name, agent.version))),
        element("span", { class: "detail" }, `${agent.listening ? "connected" : "reconnecting"} \u00b7 since ${age(agent.since)}`),
      ),
    );
    return [element("ul", { class: "files agents" }, ...rows)];
  }

  private doctor(doctor: Doctor): Child[] {
    const installed = doctor.agents.filter((agent) => agent.installed !== false);
    const absent = doctor.agents.filter((agent) => agent.installed === false);
    const rows = installed.map((agent) =>
      element(
        "li",
        { "data-testid": "doctor-agent", "data-connects": String(agent.connects) },
        element("span", { class: `dot ${agent.connects ? "good" : "bad"}`, "aria-hidden": "true" }),
        element("span", { class: "path" }, plain(agent.displayName)),
        element(
          "span",
          { class: "detail" },
          agent.connects
            ? `${agent.step ? "can connect" : "would connect"}${agent.shows ? ` and show \u201c${plain(agent.shows)}\u201d` : ""}`
            : plain(agent.reason ?? "would not connect"),
        ),
        ...[agent.step, agent.hint, ...(agent.advice ?? []).map((advice) => `${advice.message}. ${advice.hint}`)]
          .filter((hint) => hint !== undefined)
          .map((hint) => element("span", { class: "hint" }, plain(hint))),
      ),
    );
    return [
      element(
        "p",
        { class: "faint" },
        "Whether an agent started in ",
        element("code", {}, plain(doctor.directory)),
        " would connect to this companion.",
      ),
      element("ul", { class: "files agents" }, ...rows),
      absent.length === 0
        ? null
        : element("p", { class: "faint" }, `Not installed: ${absent.map((agent) => agent.displayName).join(", ")}.`),
      element(
        "button",
        { type: "button", class: "quiet", "data-testid": "doctor-again", onclick: () => void this.drawer.refresh("doctor") },
        "Check again",
      ),
    ];
  }
}

function file(open: OpenFile): HTMLElement {
  return element(
    "li",
    { "data-active": String(open.isActive === true) },
    element("span", { class: "path" }, plain(open.path)),
    open.isActive ? element("span", { class: "chip" }, "active") : null,
    open.cursor ? element("span", { class: "detail" }, `line ${open.cursor.line}, character ${open.cursor.character}`) : null,
    open.selectedText
      ? element("pre", { class: "selection", tabindex: "0", "aria-label": "Selected text" }, plain(open.selectedText))
      : null,
  );
}
