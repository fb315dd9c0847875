// The chat's bar with the agent and its session, and the model, mode and context usage below the message box.

import { element, replaceChildren } from "../dom";
import { plain, sessionLabel } from "../format";
import { Memo } from "./memo";
import type { ChatAgent, ChatConnection, Choices } from "./protocol";
import type { Transcript } from "./transcript";

export interface BarListener {
  sessions(): void;
  newSession(): void;
  rename(): void;
  details(): void;
  setModel(id: string): Promise<boolean>;
  setMode(id: string): Promise<boolean>;
}

/** The state of the connection, as the rest of the page describes it, and its color. */
export function headline(phase: ChatConnection["phase"], hasEnded: boolean, isOnline: boolean): readonly [words: string, color: string] {
  if (!isOnline) return ["companion unreachable", "bad"];
  switch (phase) {
    case "idle":
      return ["not connected", ""];
    case "connecting":
      return ["connecting\u2026", "waiting"];
    case "connected":
      return ["connected", "good"];
    case "interrupted":
      return ["reconnecting\u2026", "waiting"];
    case "ended":
      // Without a session that ended, the connection attempt failed.
      return hasEnded ? ["disconnected", "bad"] : ["could not connect", "bad"];
  }
}

export class Bar {
  readonly element: HTMLElement;
  /** Model, mode and context usage, for below the message box. */
  readonly choices: HTMLElement;
  private readonly memo = new Memo();
  private readonly dot = element("span", { class: "dot", "aria-hidden": "true" });
  private readonly agent = element("span", { class: "chat-agent", "data-testid": "chat-agent" });
  private readonly phase = element("span", { class: "phase", "data-testid": "phase" });
  private readonly title: HTMLButtonElement;
  private readonly sessions: HTMLButtonElement;
  private readonly fresh: HTMLButtonElement;
  private readonly model: Dropdown;
  private readonly mode: Dropdown;
  private readonly meter = element("span", { class: "meter", "data-testid": "meter", hidden: true });

  constructor(listener: BarListener) {
    this.title = element("button", {
      type: "button",
      class: "quiet chat-title",
      "data-testid": "chat-title",
      onclick: () => listener.rename(),
    });
    this.sessions = element(
      "button",
      { type: "button", class: "quiet", "data-testid": "open-sessions", "aria-controls": "drawer", onclick: () => listener.sessions() },
      "Sessions",
    );
    this.fresh = element(
      "button",
      { type: "button", class: "quiet", "data-testid": "new-session", onclick: () => listener.newSession() },
      "New",
    );
    const details = element(
      "button",
      {
        type: "button",
        class: "quiet who",
        "data-testid": "open-agent",
        "aria-controls": "drawer",
        title: "Agent details",
        onclick: () => listener.details(),
      },
      this.dot,
      this.agent,
      this.phase,
    );
    this.element = element(
      "header",
      { class: "chat-bar" },
      details,
      this.title,
      element("span", { class: "grow" }),
      this.sessions,
      this.fresh,
    );
    this.model = new Dropdown("Model", "model", (id) => listener.setModel(id));
    this.mode = new Dropdown("Mode", "mode", (id) => listener.setMode(id));
    this.choices = element("div", { class: "choices" }, this.mode.element, this.model.element, this.meter);
  }

  /** @param isOnline whether the companion can be reached. */
  show(shown: Transcript, connection: ChatConnection, agents: readonly ChatAgent[], isOnline: boolean): void {
    const { session, title, models, modes, context, tokens, over } = shown;
    if (!this.memo.isNew(session, title, models, modes, context, tokens, over, connection, agents, isOnline)) return;
    const { phase } = connection;
    const connected = phase === "connected" || phase === "interrupted";
    const abilities = shown.session?.abilities;
    const chosen = agents.find(({ id }) => id === connection.agent)?.name;
    this.agent.textContent = plain((connected && shown.session && sessionLabel(shown.session)) || chosen || "Choose an agent");
    const [words, color] = headline(phase, over !== null, isOnline);
    this.phase.textContent = words;
    this.dot.className = `dot ${color}`;
    this.title.textContent = plain(shown.title) || (connected ? "Untitled" : "");
    this.title.hidden = !connected;
    const canRename = abilities?.renameSessions ?? false;
    this.title.setAttribute("aria-disabled", String(!canRename));
    this.title.title = canRename ? "Rename this session" : "";
    this.sessions.hidden = !(connected && abilities?.listSessions);
    this.fresh.hidden = !connected;
    this.model.show(connected ? shown.models : null, abilities?.switchModels ?? false);
    this.mode.show(connected ? shown.modes : null, abilities?.switchModes ?? false);
    this.showMeter(shown, connected);
  }

  private showMeter({ context, tokens }: Transcript, connected: boolean): void {
    this.meter.hidden = !connected || (!context && !tokens);
    if (this.meter.hidden) return;
    const lastAnswer = tokens ? `last answer: ${formatTokens(tokens.inputTokens)} in, ${formatTokens(tokens.outputTokens)} out` : "";
    if (!context || context.size === 0) {
      replaceChildren(this.meter, lastAnswer);
      return;
    }
    const part = Math.min(1, context.used / context.size);
    const fill = element("span");
    fill.style.width = `${Math.round(part * 100)}%`;
    this.meter.title = [`${context.used.toLocaleString("en")} of ${context.size.toLocaleString("en")} context tokens used`, lastAnswer]
      .filter(Boolean)
      .join("; ");
    replaceChildren(
      this.meter,
      element(
        "span",
        {
          class: `meter-line${part > 0.9 ? " full" : ""}`,
          role: "meter",
          "aria-label": "Context usage",
          "aria-valuemin": 0,
          "aria-valuemax": context.size,
          "aria-valuenow": Math.min(context.used, context.size),
        },
        fill,
      ),
      `${formatTokens(context.used)} / ${formatTokens(context.size)}`,
    );
  }
}

function formatTokens(number: number): string {
  return number < 1000
    ? String(number)
    : number < 1_000_000
      ? `${(number / 1000).toFixed(number < 10_000 ? 1 : 0)}k`
      : `${(number / 1_000_000).toFixed(1)}M`;
}

/** Shows the active model or mode. It changes when the agent confirms, not on the click. */
class Dropdown {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;
  private shown: Choices | null = null;

  constructor(label: string, testId: string, set: (id: string) => Promise<boolean>) {
    this.select = element("select", {
      "data-testid": testId,
      "aria-label": label,
      onchange: () => {
        const wanted = this.select.value;
        if (this.shown?.current) this.select.value = this.shown.current;
        this.select.disabled = true;
        void set(wanted).finally(() => (this.select.disabled = false));
      },
    });
    this.element = element("label", { class: "choice" }, element("span", {}, label), this.select);
  }

  show(choices: Choices | null, canSwitch: boolean): void {
    this.element.hidden = !choices || (choices.current === null && choices.available.length === 0);
    if (!choices || choices === this.shown) return;
    this.shown = choices;
    const { current, available } = choices;
    const all =
      current !== null && available.every(({ id }) => id !== current)
        ? [{ id: current, name: current, description: null }, ...available]
        : available;
    const offered = canSwitch ? all : all.filter(({ id }) => id === current);
    replaceChildren(
      this.select,
      ...offered.map(({ id, name, description }) =>
        element("option", { value: id, title: description ? plain(description) : null }, plain(name)),
      ),
    );
    this.select.value = current ?? "";
    this.select.dataset["current"] = current ?? "";
    this.select.title = plain(all.find(({ id }) => id === current)?.description ?? "");
  }
}
