// The chat: follows the conversation, shows it and sends commands.

import { type Channel, RequestError } from "../channel";
import { askText, confirmation } from "../dialogs";
import { announce, element } from "../dom";
import type { Drawer } from "../drawer";
import { plain, sessionLabel } from "../format";
import { outcomeOf } from "./answer-form";
import { selectionOf } from "./attachments";
import { Bar } from "./bar";
import { Composer, type UnsentStore } from "./composer";
import { ConnectionView } from "./connection-view";
import { asSentence, firstCause, sessionEnd } from "./endings";
import { Follower } from "./follower";
import { LogView } from "./log-view";
import { Memo } from "./memo";
import { agentPanel } from "./panels";
import type {
  AgentCommand,
  AgentEvent,
  AgentReply,
  ChatAgent,
  ChatConnection,
  ChatEvent,
  ChatState,
  ContentBlock,
  Decision,
  PendingReview,
  Writes,
} from "./protocol";
import { SessionPages, sessionPanel } from "./session-panel";
import { StatusView } from "./status-view";
import { type Item, openApprovals, type Transcript, turnStarts } from "./transcript";

/** While an answer streams, drawing is delayed by at most this, in milliseconds… */
const FRAME = 16;
/** …and by at most this many times the duration of the last drawing, so that a fast page shows each word immediately. */
const REST = 2;

/** How the sessions of the chat's agents begin in a review. */
const CHAT_SESSION = "chat-";

export interface ChatSurroundings {
  folders(): readonly string[];
  isShown(): boolean;
  toReviews(): void;
  openReview(review: number): void;
  exists(exists: boolean): void;
  /** How many requests wait for an answer, and whether the agent is working. */
  waits(count: number, isWorking: boolean): void;
  /** Where an unsent message is kept. */
  readonly unsent: UnsentStore;
}

export class Chat {
  private readonly follower = new Follower();
  private agents: readonly ChatAgent[] = [];
  private agentConnection: ChatConnection = { agent: null, phase: "idle", writes: "review" };
  private readonly bar: Bar;
  private readonly log: LogView;
  private readonly connectionView: ConnectionView;
  private readonly status: StatusView;
  private readonly composer: Composer;
  private readonly markMemo = new Memo();
  private readonly turnMemo = new Memo();
  private reviews = { all: 0, own: 0 };
  private drawn = 0;
  private cost = 0;
  private timer = 0;
  private due = false;
  /** Schedules the next task; timers are slower. */
  private readonly now = new MessageChannel();
  /** Attached images, by session and name. */
  private readonly pictures = new Map<string, Promise<string | null>>();
  /** The message that was being sent when the connection was lost; it may have arrived. */
  private uncertain: { readonly text: string; readonly known: ReadonlySet<string> } | null = null;

  constructor(
    place: HTMLElement,
    private readonly connection: Channel,
    private readonly drawer: Drawer,
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
      answer: (requestId, decision) => this.answer(requestId, decision),
      picture: (name) => this.picture(name),
      rewind: (item) => void this.rewind(item),
      openReview: (review) => around.openReview(review),
    });
    this.connectionView = new ConnectionView({
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
      retry: () => void this.composer.send(),
    });
    this.composer = new Composer({
      send: (blocks, text, midTurn) => this.send(blocks, text, midTurn),
      refuse: (sentence) => this.notify(sentence),
      stop: () => this.cancel(),
      commands: () => this.commands(),
      files: (word) => this.files(word),
      attach: () => void this.attach(),
      folders: () => around.folders(),
      suggestion: () => this.shown.suggestion,
      unsent: around.unsent,
    });
    const foot = element("div", { class: "chat-foot" }, this.status.element, this.composer.element, this.bar.choices);
    place.append(this.bar.element, this.connectionView.banner, this.log.element, this.connectionView.over, foot);
    this.log.element.prepend(this.connectionView.empty);
    this.now.port1.onmessage = () => this.due && this.draw();
    connection.on("chat/event", (event) => this.onEvent(event));
    connection.on("chat/changed", (agentConnection) => this.onChanged(agentConnection));
    this.draw();
  }

  private get shown(): Transcript {
    return this.follower.shown;
  }

  /** Fetches the whole state, after a reconnect or a missed event. */
  async catchUp(): Promise<void> {
    const waited = openApprovals(this.shown);
    this.follower.startFetch();
    let state: ChatState;
    try {
      state = await this.connection.request("chat/state");
    } catch (error) {
      this.follower.fetchFailed();
      if (!(error instanceof RequestError)) throw error;
      if (error.kind !== "offline") this.around.exists(false);
      return;
    }
    this.agents = state.agents;
    this.agentConnection = { agent: state.agent, phase: state.phase, writes: state.writes };
    const fits = this.follower.applyState(state);
    this.around.exists(true);
    this.settle();
    const open = new Set(openApprovals(this.shown).map(({ request }) => request.requestId));
    if (waited.some(({ request }) => !open.has(request.requestId))) this.notify("The agent\u2019s request has already been answered.");
    this.draw();
    if (!fits) await this.catchUp();
  }

  /** The user switched to the chat. */
  entered(): void {
    this.draw();
    this.composer.field.focus({ preventScroll: true });
  }

  setReviews(reviews: readonly PendingReview[]): void {
    const own = reviews.filter(({ session }) => session.startsWith(CHAT_SESSION));
    this.reviews = { all: reviews.length, own: own.length };
    this.log.setReviews(own);
    this.showStatus();
  }

  /** The companion was lost, or is back. */
  connectionChanged(): void {
    this.draw();
  }

  private get isOnline(): boolean {
    return this.connection.state === "open" || this.connection.state === "connecting";
  }

  /** Whether a message or an answer can reach the agent now. */
  private get isReachable(): boolean {
    return this.isOnline && this.agentConnection.phase === "connected";
  }

  /** The session that the next message opens again, because its agent crashed. */
  private get canRestart(): string | null {
    const { over } = this.shown;
    return this.isOnline && this.agentConnection.phase === "ended" && over?.kind === "died" ? over.reopen : null;
  }

  private showStatus(): void {
    const { reviews, isReachable } = this;
    this.status.show(this.shown, { reviews: reviews.all, ownReviews: reviews.own, isReachable });
  }

  // Keys

  escape(): void {
    if (this.shown.turn) this.cancel();
    else if (document.activeElement === this.composer.field) this.log.scroller.focus({ preventScroll: true });
  }

  focusMessageBox(): void {
    this.composer.field.focus();
  }

  async attach(): Promise<void> {
    try {
      const { context } = await this.connection.request("context/show");
      const selection = selectionOf(context.workspaceState?.openFiles ?? []);
      if (selection) {
        this.composer.attach(selection);
        announce("Selection attached to your next message.");
      } else {
        this.notify("Nothing is selected in your editor.");
      }
    } catch (error) {
      this.notify((error as Error).message);
    }
  }

  /** Chooses an option by its index, in the form with the focus or else in the oldest. */
  choose(option: number): void {
    const { forms } = this.log;
    void (forms.find((form) => form.hasFocus) ?? forms[0])?.choose(option);
  }

  // Notifications

  private onEvent(event: ChatEvent): void {
    const result = this.follower.apply(event);
    if (result === "gap") void this.catchUp().catch((error: unknown) => console.warn(error));
    if (result !== "applied") return;
    this.announce(event.event);
    this.drawSoon();
  }

  private onChanged(agentConnection: ChatConnection): void {
    this.agentConnection = agentConnection;
    this.drawSoon();
    void this.drawer.refresh("agent");
  }

  /** Announces what matters in one sentence, not each word. */
  private announce(event: AgentEvent): void {
    if (this.shown.replaying || !this.around.isShown()) return;
    if (event.type === "approvalOpened")
      announce(
        `${plain(this.shown.session ? sessionLabel(this.shown.session) : "The agent")} asks: ${plain(event.request.questions[0]?.question ?? event.request.toolCall.title)}`,
      );
    else if (event.type === "turnEnded") {
      const last = this.shown.items.findLast((item) => item.kind === "answer" || item.kind === "notice" || item.kind === "user");
      const message = last?.kind === "answer" ? last.text : last?.kind === "notice" ? last.message : "Done.";
      announce(message.length > 400 ? `${plain(message.slice(0, 400))}\u2026` : plain(message));
    } else if (event.type === "approvalClosed" && !event.own) {
      const closed = this.shown.items.find((item) => item.kind === "tool" && item.approval?.request.requestId === event.requestId);
      if (closed?.kind === "tool" && closed.approval) announce(outcomeOf(closed.approval, false));
    } else if (event.type === "interrupted") announce("The connection to the agent was lost. Reconnecting\u2026");
    else if (event.type === "disconnected") announce(plain(sessionEnd(event)));
    else if (event.type === "notice") announce(plain(event.message));
  }

  // Drawing

  /** Draws in the next task, or a little later if the last drawing was recent. */
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
    const { shown, agentConnection } = this;
    const waiting = openApprovals(shown).length;
    const { isOnline, isReachable } = this;
    if (this.markMemo.isNew(waiting, shown.turn !== null, isReachable)) {
      this.around.waits(waiting, shown.turn !== null && isReachable);
    }
    if (this.around.isShown()) {
      this.bar.show(shown, agentConnection, this.agents, isOnline);
      this.connectionView.show(shown, agentConnection, this.agents, isOnline);
      this.log.show(shown.items, isReachable);
      this.showStatus();
      const abilities = shown.session?.abilities;
      const canSend = isReachable || this.canRestart !== null;
      if (this.turnMemo.isNew(shown.turn, isReachable, canSend, abilities)) {
        this.composer.showTurn(shown.turn !== null, shown.turn?.cancelling ?? false, canSend, abilities?.midTurn ?? false);
        this.composer.accept({ images: abilities?.images ?? false, files: abilities?.files ?? false });
        this.log.offerRewind((abilities?.rewind ?? false) && isReachable && shown.turn === null);
      }
    }
    this.drawn = performance.now();
    this.cost = this.drawn - started;
  }

  private notify(sentence: string, canRetry = false): void {
    this.status.showProblem(sentence, canRetry);
    announce(sentence);
  }

  // Commands

  /** Shows a failure and returns `null`. */
  private async command(command: AgentCommand): Promise<AgentReply | null> {
    this.status.showProblem("");
    try {
      return await this.connection.request("chat/command", { command });
    } catch (error) {
      this.notify(sentenceOf(error));
      return null;
    }
  }

  private async send(blocks: readonly ContentBlock[], text: string, midTurn: boolean): Promise<boolean> {
    const { phase } = this.agentConnection;
    const { canRestart } = this;
    if (!canRestart && phase !== "connected" && phase !== "interrupted") {
      this.notify("Not sent: no agent is connected. Your message is kept.", true);
      return false;
    }
    this.log.toEnd();
    this.uncertain = { text, known: new Set(promptIds(this.shown)) };
    try {
      if (canRestart) {
        this.status.showProblem("");
        await this.connection.request("chat/command", { command: { type: "loadSession", sessionId: canRestart } });
      }
      await this.connection.request("chat/command", { command: { type: midTurn ? "midTurn" : "prompt", blocks } });
      this.uncertain = null;
      this.status.showProblem("");
      return true;
    } catch (error) {
      if (!(error instanceof RequestError && error.kind === "offline")) this.uncertain = null;
      this.notify(`Not sent. ${sentenceOf(error)} Your message is kept.`, true);
      return false;
    }
  }

  /** After a reconnect: if the last message did arrive, clear the box so that it is not sent twice. */
  private settle(): void {
    const { uncertain } = this;
    this.uncertain = null;
    if (!uncertain) return;
    const arrived = [...this.shown.items, ...this.shown.queue].some(
      (message) =>
        "promptId" in message &&
        message.promptId !== null &&
        !uncertain.known.has(message.promptId) &&
        "text" in message &&
        message.text === uncertain.text,
    );
    if (arrived) this.composer.clear();
    this.status.showProblem(arrived ? "" : "Not sent. Your message is kept.", !arrived);
  }

  /** The content of an attached image, read once. */
  private picture(name: string): Promise<string | null> {
    const { session } = this.shown;
    if (!session?.abilities.readAttachments) return Promise.resolve(null);
    const key = `${session.sessionId}/${name}`;
    const known = this.pictures.get(key);
    if (known) return known;
    const read = this.connection.request("chat/command", { command: { type: "readAttachment", name } }).then(
      (reply) => (reply.type === "attachment" ? reply.data : null),
      () => null,
    );
    this.pictures.set(key, read);
    return read;
  }

  private async rewind(item: Item): Promise<void> {
    const sentence = "This message and everything after it are removed from the conversation. Files stay as they are.";
    if (!(await confirmation("Rewind to before this message?", sentence, "Rewind"))) return;
    const turn = turnStarts(this.shown.items).indexOf(item);
    if (turn < 0 || item.kind !== "user") return;
    const reply = await this.command({ type: "rewind", turn });
    if (!reply) return;
    announce("Rewound.");
    // To change it and send it again.
    if (this.composer.isEmpty) this.composer.fill(item.text);
  }

  private cancel(): void {
    if (this.shown.turn && !this.shown.turn.cancelling) void this.command({ type: "cancel" });
  }

  private async answer(requestId: string, decision: Decision): Promise<string | null> {
    try {
      const reply = await this.connection.request("chat/command", { command: { type: "answer", requestId, decision } });
      return reply.type === "tooLate" ? "Already answered elsewhere." : null;
    } catch (error) {
      return sentenceOf(error);
    }
  }

  private async connect(agent: ChatAgent): Promise<void> {
    this.drawer.close();
    try {
      this.status.showProblem("");
      await this.connection.request("chat/connect", { agent: agent.id });
    } catch (error) {
      this.notify(sentenceOf(error));
    }
  }

  private async setWrites(writes: Writes): Promise<void> {
    const sentence = "The agent will change files without asking you to review them first.";
    if (writes === "allow" && !(await confirmation("Allow writes without review?", sentence, "Allow writes"))) {
      this.connectionView.show(this.shown, this.agentConnection, this.agents, this.isOnline);
      void this.drawer.refresh("agent");
      return;
    }
    try {
      await this.connection.request("chat/writes", { writes });
    } catch (error) {
      this.notify(sentenceOf(error));
    }
  }

  private async rename(): Promise<void> {
    if (!this.shown.session?.abilities.renameSessions) return;
    const title = await askText("Rename this session", "Name", this.shown.title, "Rename");
    if (!title) return;
    await this.command({ type: "rename", title });
    void this.drawer.refresh("sessions");
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

  /** Workspace files, open ones first. */
  private async files(word: string): Promise<readonly string[]> {
    const open = this.connection.request("context/show").then(
      ({ context }) => (context.workspaceState?.openFiles ?? []).map(({ path }) => this.relative(path)),
      () => [],
    );
    // Remove pattern characters: the word is literal.
    const escaped = word.replace(/[*?[\]{}!\\]/g, "");
    const found = this.connection.request("chat/command", { command: { type: "findFiles", pattern: `**/*${escaped}*` } }).then(
      (reply) => (reply.type === "files" ? reply.paths.map((path) => this.relative(path)) : []),
      // If the agent cannot search files, offer the open ones.
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
    this.drawer.toggle({
      name: "sessions",
      title: "Sessions",
      fill: () => {
        const pages = new SessionPages(async (cursor) => {
          const command: AgentCommand = { type: "listSessions", ...(cursor === undefined ? {} : { cursor }) };
          const reply = await this.connection.request("chat/command", { command });
          return reply.type === "sessions" ? reply : { sessions: [] };
        });
        const open = ({ sessionId }: { sessionId: string }) => {
          this.drawer.close();
          void this.command({ type: "loadSession", sessionId });
        };
        return sessionPanel(pages, this.shown.session, { open, rename: () => void this.rename() });
      },
    });
  }

  private showAgent(): void {
    this.drawer.toggle({
      name: "agent",
      title: "Agent",
      fill: () =>
        agentPanel(this.shown.session, this.agentConnection, this.agents, {
          connect: (agent) => void this.connect(agent),
          disconnect: () => void this.connection.request("chat/disconnect").catch((error: unknown) => this.notify(sentenceOf(error))),
          setWrites: (writes) => void this.setWrites(writes),
        }),
    });
  }
}

function promptIds({ items, queue }: Transcript): string[] {
  return [...items, ...queue].flatMap((message) => ("promptId" in message && message.promptId !== null ? [message.promptId] : []));
}

function sentenceOf(error: unknown): string {
  const whole = asSentence(firstCause(error instanceof Error ? error.message : String(error)));
  return error instanceof RequestError && error.hint ? `${whole} ${error.hint}` : whole;
}
