// The side panels: what agents see, which agents are connected, and whether agents can connect.

import type { Connection } from "./connection";
import { byId, element, replaceChildren } from "./dom";
import { age, agentLabel, plain } from "./format";
import type { Agent, Doctor, IdeContext, OpenFile, ShownContext } from "./protocol";

export type PanelName = "context" | "agents" | "doctor";

/** A panel of the chat. */
export interface OtherPanel {
  readonly name: string;
  readonly title: string;
  fill(): Promise<HTMLElement> | HTMLElement;
}

export class Panels {
  private shown: PanelName | OtherPanel | null = null;
  private agents: readonly Agent[] = [];
  private before: Element | null = null;
  private readonly drawer = byId("drawer");
  private readonly content = byId("drawer-content");
  private readonly title = byId("drawer-title");

  constructor(private readonly connection: Connection) {
    byId("drawer-close").addEventListener("click", () => this.close());
    for (const name of ["context", "agents", "doctor"] as const) {
      byId(`open-${name}`).addEventListener("click", () => this.toggle(name));
    }
  }

  get isOpen(): boolean {
    return this.shown !== null;
  }

  toggle(name: PanelName): void {
    if (this.shown === name) this.close();
    else this.open(name);
  }

  toggleOther(panel: OtherPanel): void {
    if (this.isShown(panel.name)) this.close();
    else this.open(panel);
  }

  /** Refreshes a panel if it is open. */
  refreshOther(name: string): void {
    if (this.isShown(name)) void this.refresh();
  }

  private isShown(name: string): boolean {
    return this.shown !== null && (typeof this.shown === "string" ? this.shown : this.shown.name) === name;
  }

  close(): void {
    if (!this.shown) return;
    const hadFocus = this.drawer.contains(document.activeElement);
    this.shown = null;
    this.drawer.hidden = true;
    this.showButtons();
    if (hadFocus && this.before instanceof HTMLElement) this.before.focus();
  }

  setAgents(agents: readonly Agent[]): void {
    this.agents = agents;
    const listening = agents.filter((agent) => agent.listening).length;
    const badge = byId("agents-count");
    badge.textContent = String(agents.length);
    badge.classList.toggle("all", agents.length > 0 && listening === agents.length);
    if (this.shown === "agents") this.showAgents();
  }

  contextChanged(context: IdeContext): void {
    if (this.shown !== "context") return;
    // The hidden files may have changed too.
    this.showContext({ context, hidden: [] }, true);
    void this.refresh();
  }

  async refresh(): Promise<void> {
    const name = this.shown;
    try {
      if (name === "context") {
        const context = await this.connection.request("context/show");
        if (this.shown === name) this.showContext(context, false);
      } else if (name === "doctor") {
        const doctor = await this.connection.request("doctor");
        if (this.shown === name) this.showDoctor(doctor);
      } else if (name === "agents") {
        this.showAgents();
      } else if (name) {
        const made = await name.fill();
        if (this.shown === name) replaceChildren(this.content, made);
      }
    } catch (error) {
      if (this.shown === name) replaceChildren(this.content, element("p", { class: "problem" }, (error as Error).message));
    }
  }

  private open(name: PanelName | OtherPanel): void {
    if (!this.shown) this.before = document.activeElement;
    this.shown = name;
    this.drawer.hidden = false;
    this.drawer.dataset["panel"] = typeof name === "string" ? name : name.name;
    this.title.textContent =
      typeof name === "string" ? { context: "What agents see", agents: "Agents", doctor: "Doctor" }[name] : name.title;
    replaceChildren(this.content, element("p", { class: "faint" }, "Loading\u2026"));
    this.showButtons();
    this.title.focus();
    void this.refresh();
  }

  private showButtons(): void {
    for (const name of ["context", "agents", "doctor"] as const)
      byId(`open-${name}`).setAttribute("aria-expanded", String(this.shown === name));
  }

  private showContext({ context, hidden }: ShownContext, keepHidden: boolean): void {
    const files = context.workspaceState?.openFiles ?? [];
    const kept = keepHidden ? this.content.querySelector("[data-testid=hidden-files]") : null;
    replaceChildren(
      this.content,
      element("p", { class: "faint" }, "Exactly what every connected agent sees, updated live."),
      files.length === 0
        ? element("p", {}, "Agents see no open files.")
        : element("ul", { class: "files", "data-testid": "context-files" }, ...files.map(file)),
      files.length > 0 && this.agents.length > 0 && this.sendButton(),
      kept ??
        (hidden.length > 0 &&
          element(
            "section",
            { "data-testid": "hidden-files" },
            element("h3", {}, "Hidden from agents"),
            element(
              "ul",
              { class: "files hidden-files" },
              ...hidden.map(({ path, reason }) =>
                element("li", {}, element("span", { class: "path" }, plain(path)), element("span", { class: "detail" }, plain(reason))),
              ),
            ),
          )),
    );
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

  private showAgents(): void {
    if (this.agents.length === 0) {
      replaceChildren(
        this.content,
        element("p", {}, "No agents connected."),
        element("p", { class: "faint" }, "Start an agent in a workspace folder. If it does not connect, Doctor shows why."),
      );
      return;
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
    replaceChildren(this.content, element("ul", { class: "files agents" }, ...rows));
  }

  private showDoctor(doctor: Doctor): void {
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
    replaceChildren(
      this.content,
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
        { type: "button", class: "quiet", "data-testid": "doctor-again", onclick: () => void this.refresh() },
        "Check again",
      ),
    );
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
