// The state of the connection to the agent: where it runs, and what to do when there is none.

import { element, replaceChildren } from "../dom";
import { plain, sessionLabel } from "../format";
import { sessionEnd } from "./endings";
import { Memo } from "./memo";
import { agentButtons, DAEMON_SENTENCE, writesSentence } from "./panels";
import type { ChatAgent, ChatConnection, Writes } from "./protocol";
import type { Transcript } from "./transcript";

export interface ConnectionViewListener {
  connect(agent: ChatAgent): void;
  reopen(sessionId: string): void;
  newSession(): void;
  details(): void;
  setWrites(writes: Writes): void;
}

export class ConnectionView {
  /** Where the agent runs, and whether its writes are reviewed. */
  readonly banner = element("div", { class: "locality", "data-testid": "locality", hidden: true });
  /** Shown instead of an empty conversation. */
  readonly empty = element("div", { class: "chat-empty", "data-testid": "chat-empty" });
  /** Shown when the connection is interrupted or the session has ended. */
  readonly over = element("div", { class: "chat-over", role: "alert", "data-testid": "chat-over", hidden: true });
  private shownBanner = "";
  private readonly emptyMemo = new Memo();
  private readonly overMemo = new Memo();

  constructor(private readonly listener: ConnectionViewListener) {}

  /** @param isOnline whether the companion can be reached; if not, the page says only that. */
  show(shown: Transcript, connection: ChatConnection, agents: readonly ChatAgent[], isOnline: boolean): void {
    this.showBanner(shown, connection);
    this.showEmpty(shown, connection, agents);
    this.showOver(shown, connection, agents, isOnline);
  }

  private showBanner({ session }: Transcript, { phase, writes }: ChatConnection): void {
    const where = phase === "connected" || phase === "interrupted" ? session?.locality.where : undefined;
    const now = `${where ?? ""} ${writes}`;
    // The user may have clicked the box and then cancelled.
    const box = this.banner.querySelector("input");
    if (box) box.checked = writes === "review";
    if (now === this.shownBanner) return;
    this.shownBanner = now;
    this.banner.hidden = where === undefined;
    this.banner.dataset["where"] = where ?? "";
    this.banner.dataset["writes"] = writes;
    const details = element(
      "button",
      { type: "button", class: "quiet small", "data-testid": "locality-details", onclick: () => this.listener.details() },
      "Details",
    );
    if (where === "daemon") {
      replaceChildren(
        this.banner,
        element("span", { class: "chip" }, "daemon"),
        element("span", { class: "grow" }, DAEMON_SENTENCE),
        details,
      );
    } else if (where === "child") {
      const input = element("input", {
        type: "checkbox",
        role: "switch",
        "data-testid": "review-writes",
        onchange: () => this.listener.setWrites(input.checked ? "review" : "allow"),
      });
      input.checked = writes === "review";
      replaceChildren(
        this.banner,
        element("span", { class: "chip" }, "local"),
        element(
          "span",
          { class: "grow" },
          session?.abilities.reviewsWrites === false
            ? "Runs locally, as you, and writes files without review."
            : `Runs locally, as you. ${writesSentence(writes)}`,
        ),
        session?.abilities.reviewsWrites !== false && element("label", { class: "switch" }, input, "Review writes"),
        details,
      );
    }
  }

  private showEmpty(shown: Transcript, { phase, agent }: ChatConnection, agents: readonly ChatAgent[]): void {
    const isEmpty = shown.items.length === 0;
    if (!this.emptyMemo.isNew(isEmpty, phase, agent, agents, shown.session)) return;
    this.empty.hidden = !isEmpty;
    const name = plain(agents.find(({ id }) => id === agent)?.name ?? "the agent");
    if (phase === "connecting") {
      replaceChildren(
        this.empty,
        element("p", { class: "empty-title" }, `Connecting to ${name}\u2026`),
        element("p", { class: "faint" }, "Starting an agent for the first time may take a while."),
      );
    } else if (phase === "connected" || phase === "interrupted") {
      replaceChildren(
        this.empty,
        element("p", { class: "empty-title" }, `Chat with ${plain(shown.session ? sessionLabel(shown.session) : name)}`),
        element(
          "p",
          { class: "faint" },
          "Working in ",
          element("code", {}, plain(shown.session?.workspace ?? "this folder")),
          ". ",
          element("kbd", {}, "/"),
          " lists commands, ",
          element("kbd", {}, "@"),
          " mentions a file, ",
          element("kbd", {}, "Alt+S"),
          " attaches your editor selection.",
        ),
      );
    } else {
      replaceChildren(
        this.empty,
        element("p", { class: "empty-title" }, "Chat with an agent"),
        element("p", { class: "faint" }, "The companion\u2019s pages and its editor share one conversation."),
        agentButtons(agents, null, (chosen) => this.listener.connect(chosen)),
      );
    }
  }

  private showOver({ over }: Transcript, { phase, agent }: ChatConnection, agents: readonly ChatAgent[], isOnline: boolean): void {
    const chosen = agents.find(({ id }) => id === agent);
    if (!this.overMemo.isNew(phase, over, chosen, isOnline)) return;
    const button = (testId: string, kind: string, label: string, action: () => void) =>
      element("button", { type: "button", class: kind, "data-testid": testId, onclick: action }, label);
    const connect = chosen && button("connect-again", "", "Reconnect", () => this.listener.connect(chosen));
    if (isOnline && phase === "interrupted") {
      this.over.hidden = false;
      this.over.dataset["state"] = "interrupted";
      replaceChildren(this.over, element("span", { class: "grow" }, "The connection to the agent was lost. Reconnecting\u2026"), connect);
    } else if (isOnline && phase === "ended") {
      const reopen = over?.reopen;
      this.over.hidden = false;
      this.over.dataset["state"] = "over";
      this.over.dataset["kind"] = over?.kind ?? "";
      replaceChildren(
        this.over,
        element(
          "span",
          { class: "grow" },
          over ? plain(sessionEnd(over)) : "Could not connect to the agent. Try again, or choose another agent.",
        ),
        reopen && button("reopen", "primary", "Reopen session", () => this.listener.reopen(reopen)),
        over && button("begin-new", "", "New session", () => this.listener.newSession()),
        !reopen && connect,
      );
    } else {
      this.over.hidden = true;
      replaceChildren(this.over);
    }
  }
}
