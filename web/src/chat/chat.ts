// The chat: follows the conversation, shows it, and does what the person asks.

import type { Connection } from "../connection";
import { askText, confirmation } from "../dialogs";
import { announce, byId, element } from "../dom";
import type { Panels } from "../panels";
import { Refusal, type ShownContext } from "../protocol";
import { plain } from "../words";
import { outcomeOf } from "./answer-form";
import { Bar } from "./bar";
import { Composer, selectionOf } from "./composer";
import { Follower } from "./follower";
import { LogView } from "./log-view";
import { Memo } from "./memo";
import { agentPanel } from "./panels";
import type {
  AgentCommand,
  AgentEvent,
  AgentReply,
  ChatAgent,
  ChatEvent,
  ChatStanding,
  ChatState,
  ContentBlock,
  Decision,
  Writes,
} from "./protocol";
import { SessionPages, sessionPanel } from "./session-panel";
import { Standing } from "./standing";
import { StatusView } from "./status-view";
import { openApprovals, type Transcript } from "./transcript";

/** While words stream in, drawing waits at most this long, in milliseconds… */
const FRAME = 16;
/** …and no longer than this many times what the last drawing took: a quick page shows each word at once. */
const REST = 2;

export interface ChatSurroundings {
  folders(): readonly string[];
  isShown(): boolean;
  toReviews(): void;
  /** Whether there is a chat, and how many approvals wait. */
  exists(exists: boolean): void;
  waits(count: number): void;
}

export class Chat {
  private readonly follower = new Follower();
  private agents: readonly ChatAgent[] = [];
  private standing: ChatStanding = { agent: null, phase: "idle", writes: "review" };
  private readonly bar: Bar;
  private readonly log: LogView;
  private readonly place: Standing;
  private readonly status: StatusView;
  private readonly composer: Composer;
  private readonly markMemo = new Memo();
  private readonly turnMemo = new Memo();
  private reviews = 0;
  private drawn = 0;
  private cost = 0;
  private timer = 0;
  private due = false;
  /** The next task, which no timer is as quick for. */
  private readonly now = new MessageChannel();
  /** What was sent when the connection was lost: nobody knows yet whether it arrived. */
  private uncertain: { readonly text: string; readonly known: ReadonlySet<string> } | null = null;

  constructor(
    private readonly connection: Connection,
    private readonly panels: Panels,
    private readonly around: ChatSurroundings,
  ) {
    this.bar = new Bar({
      sessions: () => this.showSessions(),
      newSession: () => void this.command({ type: "newSession" }),
      rename: () => void this.rename(),
      details: () => this.showAgent(),
      setModel: async (modelId) => (await this.command({ type: "setModel", modelId })) !== null,
      setMode: async (modeId) => (await this.command({ type: "setMode", modeId })) !== null,
    });
    this.log = new LogView({
      connection,
      folders: () => around.folders(),
      appeared: () => performance.now(),
      answer: (requestId, decision) => this.answer(requestId, decision),
    });
    this.place = new Standing({
      connect: (agent) => void this.connect(agent),
      reopen: (sessionId) => void this.command({ type: "loadSession", sessionId }),
      newSession: () => void this.command({ type: "newSession" }),
      details: () => this.showAgent(),
      setWrites: (writes) => void this.setWrites(writes),
    });
    this.status = new StatusView({
      unqueue: (promptId) => void this.command({ type: "removeQueued", promptId }),
      toApproval: () => this.toApproval(),
      toReviews: () => around.toReviews(),
      fill: (text) => this.composer.fill(text),
    });
    this.composer = new Composer({
      send: (blocks, text) => this.send(blocks, text),
      stop: () => this.cancel(),
      commands: () => this.commands(),
      files: (word) => this.files(word),
      attach: () => void this.attach(),
      folders: () => around.folders(),
      suggestion: () => this.shown.suggestion,
    });
    const foot = element("div", { class: "chat-foot" }, this.status.element, this.composer.element, this.bar.choices);
    byId("chat").append(this.bar.element, this.place.banner, this.log.element, this.place.over, foot);
    this.log.element.prepend(this.place.empty);
    this.now.port1.onmessage = () => this.due && this.draw();
    connection.on("chat/event", (news) => this.news(news));
    connection.on("chat/changed", (standing) => this.changed(standing));
    this.draw();
  }

  private get shown(): Transcript {
    return this.follower.shown;
  }

  /** Asks for all that is shown: after the connection was away, or after something was missed. */
  async catchUp(): Promise<void> {
    const waited = openApprovals(this.shown);
    this.follower.ask();
    let state: ChatState;
    try {
      state = await this.connection.request<ChatState>("chat/state");
    } catch (error) {
      this.follower.failed();
      if (!(error instanceof Refusal)) throw error;
      if (error.kind !== "offline") this.around.exists(false);
      return;
    }
    this.agents = state.agents;
    this.standing = { agent: state.agent, phase: state.phase, writes: state.writes };
    const fits = this.follower.whole(state);
    this.around.exists(true);
    this.settle();
    const open = new Set(openApprovals(this.shown).map(({ request }) => request.requestId));
    if (waited.some(({ request }) => !open.has(request.requestId))) this.tell("The agent\u2019s request has already been answered.");
    this.draw();
    if (!fits) await this.catchUp();
  }

  /** The place was chosen; the focus is the person's. */
  entered(): void {
    this.draw();
    this.composer.field.focus({ preventScroll: true });
  }

  setReviews(count: number): void {
    this.reviews = count;
    this.status.show(this.shown, count);
  }

  // Keys

  /** What Escape means here. */
  escape(): void {
    if (this.shown.turn) this.cancel();
    else if (document.activeElement === this.composer.field) this.log.scroller.focus({ preventScroll: true });
  }

  say(): void {
    this.composer.field.focus();
  }

  async attach(): Promise<void> {
    try {
      const { context } = await this.connection.request<ShownContext>("context/show");
      const selection = selectionOf(context.workspaceState?.openFiles ?? []);
      if (selection) {
        this.composer.attach(selection);
        announce("Selection attached to your next message.");
      } else {
        this.tell("Nothing is selected in your editor.");
      }
    } catch (error) {
      this.tell((error as Error).message);
    }
  }

  /** Gives an offered answer, by its place: of the form with the focus, else of the oldest. */
  choose(option: number): void {
    const { forms } = this.log;
    void (forms.find((form) => form.hasFocus) ?? forms[0])?.choose(option);
  }

  // What is heard

  private news(news: ChatEvent): void {
    const was = this.follower.take(news);
    if (was === "gap") void this.catchUp().catch((error: unknown) => console.warn(error));
    if (was !== "taken") return;
    this.announce(news.event);
    this.drawSoon();
  }

  private changed(standing: ChatStanding): void {
    this.standing = standing;
    this.drawSoon();
    this.panels.refreshOther("agent");
  }

  /** A short sentence about what matters, not each word. */
  private announce(event: AgentEvent): void {
    if (this.shown.telling || !this.around.isShown()) return;
    if (event.type === "approvalOpened")
      announce(
        `${plain(this.shown.session?.agent ?? "The agent")} asks: ${plain(event.request.questions[0]?.question ?? event.request.toolCall.title)}`,
      );
    else if (event.type === "turnEnded") {
      const last = this.shown.items.findLast((item) => item.kind === "answer" || item.kind === "notice" || item.kind === "user");
      const said = last?.kind === "answer" ? last.text : last?.kind === "notice" ? last.message : "Done.";
      announce(said.length > 400 ? `${plain(said.slice(0, 400))}\u2026` : plain(said));
    } else if (event.type === "approvalClosed" && !event.own) {
      const closed = this.shown.items.find((item) => item.kind === "tool" && item.approval?.request.requestId === event.requestId);
      if (closed?.kind === "tool" && closed.approval) announce(outcomeOf(closed.approval, false));
    } else if (event.type === "interrupted" || event.type === "disconnected") announce(plain(event.reason));
    else if (event.type === "notice") announce(plain(event.message));
  }

  // What is shown

  /** At once, but together with what has arrived with it; a little later if it was drawn just now. */
  private drawSoon(): void {
    if (this.due) return;
    this.due = true;
    const wait = this.drawn + Math.min(FRAME, this.cost * REST) - performance.now();
    if (wait <= 0) this.now.port2.postMessage(null);
    else this.timer = window.setTimeout(() => this.draw(), wait);
  }

  private draw(): void {
    window.clearTimeout(this.timer);
    this.due = false;
    const started = performance.now();
    const { shown, standing } = this;
    const waiting = openApprovals(shown).length;
    if (this.markMemo.isNew(waiting, shown.turn !== null)) {
      this.around.waits(waiting);
      const mark = byId("chat-mark");
      mark.dataset["state"] = waiting > 0 ? "asks" : shown.turn ? "works" : "";
      mark.textContent = waiting > 0 ? "asks" : "";
    }
    if (this.around.isShown()) {
      this.bar.show(shown, standing, this.agents);
      this.place.show(shown, standing, this.agents);
      this.log.show(shown.items);
      this.status.show(shown, this.reviews);
      const canSend = standing.phase === "connected" || standing.phase === "interrupted";
      if (this.turnMemo.isNew(shown.turn, canSend)) this.composer.showTurn(shown.turn !== null, shown.turn?.cancelling ?? false, canSend);
    }
    this.drawn = performance.now();
    this.cost = this.drawn - started;
  }

  private tell(sentence: string): void {
    this.status.say(sentence);
    announce(sentence);
  }

  // What is asked for

  /** Does it; `null` if it did not work, which is told. */
  private async command(command: AgentCommand): Promise<AgentReply | null> {
    this.status.say("");
    try {
      return await this.connection.request<AgentReply>("chat/command", { command });
    } catch (error) {
      this.tell(sentenceOf(error));
      return null;
    }
  }

  private async send(blocks: readonly ContentBlock[], text: string): Promise<boolean> {
    const { phase } = this.standing;
    if (phase !== "connected" && phase !== "interrupted") {
      this.tell("No agent is connected. Your message is kept.");
      return false;
    }
    this.log.toEnd();
    this.uncertain = { text, known: new Set(promptIds(this.shown)) };
    try {
      await this.connection.request<AgentReply>("chat/command", { command: { type: "prompt", blocks } });
      this.uncertain = null;
      this.status.say("");
      return true;
    } catch (error) {
      if (!(error instanceof Refusal && error.kind === "offline")) this.uncertain = null;
      this.tell(`Not sent: ${sentenceOf(error)} Your message is kept.`);
      return false;
    }
  }

  /** After the connection was away: if what was sent last has arrived, it must not be sent again. */
  private settle(): void {
    const { uncertain } = this;
    this.uncertain = null;
    if (!uncertain) return;
    const arrived = [...this.shown.items, ...this.shown.queue].some(
      (said) =>
        "promptId" in said &&
        said.promptId !== null &&
        !uncertain.known.has(said.promptId) &&
        "text" in said &&
        said.text === uncertain.text,
    );
    if (arrived) this.composer.clear();
    this.status.say(arrived ? "" : "Your message was not delivered; it is kept.");
  }

  private cancel(): void {
    if (this.shown.turn && !this.shown.turn.cancelling) void this.command({ type: "cancel" });
  }

  private async answer(requestId: string, decision: Decision): Promise<string | null> {
    try {
      const reply = await this.connection.request<AgentReply>("chat/command", { command: { type: "answer", requestId, decision } });
      return reply.type === "tooLate" ? "Already answered elsewhere." : null;
    } catch (error) {
      return sentenceOf(error);
    }
  }

  private async connect(agent: ChatAgent): Promise<void> {
    this.panels.close();
    try {
      this.status.say("");
      await this.connection.request("chat/connect", { agent: agent.id });
    } catch (error) {
      this.tell(sentenceOf(error));
    }
  }

  private async setWrites(writes: Writes): Promise<void> {
    const sentence = "The agent will change files without asking you to review them first.";
    if (writes === "allow" && !(await confirmation("Allow writes without review?", sentence, "Allow writes"))) {
      this.place.show(this.shown, this.standing, this.agents);
      this.panels.refreshOther("agent");
      return;
    }
    try {
      await this.connection.request("chat/writes", { writes });
    } catch (error) {
      this.tell(sentenceOf(error));
    }
  }

  private async rename(): Promise<void> {
    if (!this.shown.session?.abilities.renameSessions) return;
    const title = await askText("Rename this session", "Name", this.shown.title, "Rename");
    if (!title) return;
    await this.command({ type: "rename", title });
    this.panels.refreshOther("sessions");
  }

  private commands() {
    const { commands, skills } = this.shown;
    const known = new Set(commands.map(({ name }) => name));
    return [
      ...commands.map(({ name, description, hint }) => ({
        insert: `/${name} `,
        label: name,
        about: [description, hint].filter(Boolean).join(" \u2014 "),
      })),
      ...skills.filter((name) => !known.has(name)).map((name) => ({ insert: `/${name} `, label: name, about: "skill" })),
    ];
  }

  /** Files of the workspace, those that are open first. */
  private async files(word: string): Promise<readonly string[]> {
    const open = this.connection.request<ShownContext>("context/show").then(
      ({ context }) => (context.workspaceState?.openFiles ?? []).map(({ path }) => this.relative(path)),
      () => [],
    );
    // Signs that mean something in a pattern mean themselves here.
    const escaped = word.replace(/[*?[\]{}!\\]/g, "");
    const found = this.connection.request<AgentReply>("chat/command", { command: { type: "findFiles", pattern: `**/*${escaped}*` } }).then(
      (reply) => (reply.type === "files" ? reply.paths.map((path) => this.relative(path)) : []),
      // An agent that cannot find files leaves those that are open.
      () => [],
    );
    return [...new Set([...(await open), ...(await found)])];
  }

  private relative(path: string): string {
    for (const folder of [...this.around.folders(), this.shown.session?.workspace ?? ""])
      if (folder && path.startsWith(`${folder}/`)) return path.slice(folder.length + 1);
    return path;
  }

  private toApproval(): void {
    const form = this.log.forms[0];
    form?.element.scrollIntoView({ block: "nearest" });
    form?.focus();
  }

  private showSessions(): void {
    this.panels.toggleOther({
      name: "sessions",
      title: "Sessions",
      fill: () => {
        const pages = new SessionPages(async (cursor) => {
          const command: AgentCommand = { type: "listSessions", ...(cursor === undefined ? {} : { cursor }) };
          const reply = await this.connection.request<AgentReply>("chat/command", { command });
          return reply.type === "sessions" ? reply : { sessions: [] };
        });
        const open = ({ sessionId }: { sessionId: string }) => {
          this.panels.close();
          void this.command({ type: "loadSession", sessionId });
        };
        return sessionPanel(pages, this.shown.session, { open, rename: () => void this.rename() });
      },
    });
  }

  private showAgent(): void {
    this.panels.toggleOther({
      name: "agent",
      title: "Agent",
      fill: () =>
        agentPanel(this.shown.session, this.standing, this.agents, {
          connect: (agent) => void this.connect(agent),
          disconnect: () => void this.connection.request("chat/disconnect").catch((error: unknown) => this.tell(sentenceOf(error))),
          setWrites: (writes) => void this.setWrites(writes),
        }),
    });
  }
}

function promptIds({ items, queue }: Transcript): string[] {
  return [...items, ...queue].flatMap((said) => ("promptId" in said && said.promptId !== null ? [said.promptId] : []));
}

function sentenceOf(error: unknown): string {
  const sentence = error instanceof Error ? error.message : String(error);
  const whole = /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
  return error instanceof Refusal && error.hint ? `${whole} ${error.hint}` : whole;
}
