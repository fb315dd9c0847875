// The page: the pending reviews, the open one, and what happens on notifications and user actions.

import { type ConnectionState, RequestError } from "./channel";
import { Chat } from "./chat/chat";
import type { UnsentStore } from "./chat/composer";
import { Connection } from "./connection";
import { confirmation, showKeys } from "./dialogs";
import { announce, byId, element, replaceChildren } from "./dom";
import type { Layout } from "./editor/hunks";
import { FirstRun } from "./first-run";
import { agentLabel, count, outcome, plain, splitPath } from "./format";
import { listenToKeys } from "./keys";
import { allQuestion, ListView } from "./list-view";
import { Login, parseLink } from "./login";
import { Panels } from "./panels";
import type { Agent, ReviewSummary, ReviewTexts } from "./protocol";
import { ReviewView } from "./review-view";
import { type View, Views } from "./views";

const NARROW = window.matchMedia("(max-width: 760px)");

const UNSENT_KEY = "alongside:prompt";

/** Per tab, for as long as the tab exists. */
const UNSENT: UnsentStore = {
  read: () => sessionStorage.getItem(UNSENT_KEY),
  write: (message) => (message === null ? sessionStorage.removeItem(UNSENT_KEY) : sessionStorage.setItem(UNSENT_KEY, message)),
};

class Page {
  private readonly reviews = new Map<number, ReviewSummary>();
  private folders: readonly string[] = [];
  private view: ReviewView | null = null;
  /** The review being fetched. */
  private opening: number | null = null;
  private layout: Layout = storedLayout();
  private readonly area = byId("review-area");
  private readonly login = new Login(location.host, tabStorage());
  private readonly connection = new Connection(
    this.login,
    () => this.catchUp(),
    (state) => this.connectionChanged(state),
  );
  private readonly panels = new Panels(this.connection);
  private readonly views = new Views((view) => this.entered(view));
  private approvals = 0;
  private agents = 0;
  private wasOpen = false;
  private readonly chat = new Chat(byId("chat"), this.connection, this.panels.drawer, {
    folders: () => this.folders,
    isShown: () => this.views.current === "chat",
    toReviews: () => this.views.go("reviews"),
    openReview: (review) => {
      this.views.go("reviews");
      void this.open(review);
    },
    exists: (exists) => this.views.setChat(exists),
    waits: (count, isWorking) => {
      this.approvals = count;
      this.showTitle();
      const mark = byId("chat-mark");
      mark.dataset["state"] = count > 0 ? "asks" : isWorking ? "works" : "";
      mark.textContent = count > 0 ? "asks" : "";
    },
    unsent: UNSENT,
  });
  private readonly firstRun = new FirstRun(byId("first-run"), async () => {
    const { review } = await this.connection.request("demo/start");
    await this.open(review);
  });
  private readonly list = new ListView(byId("list"), byId("list-empty"), {
    open: (review) => void this.open(review),
    acceptAll: (session) => void this.decideAll(session, "Accept"),
    rejectAll: (session) => void this.decideAll(session, "Reject"),
  });

  start(): void {
    this.listen();
    this.takeLink();
    this.connection.connect();
    // A login link that is pasted into this tab changes only the fragment.
    window.addEventListener("hashchange", () => {
      if (this.takeLink()) this.connection.connect();
    });
    byId("reconnect").addEventListener("click", () => this.connection.connect());
    byId("open-keys").addEventListener("click", showKeys);
    NARROW.addEventListener("change", () => this.view?.showLayout(this.shownLayout()));
    window.addEventListener("online", () => this.connection.connect());
    window.addEventListener("beforeunload", (event) => {
      if (this.view?.isAhead) event.preventDefault();
    });
    listenToKeys({
      acceptReview: () => void this.view?.decide("accept"),
      rejectReview: () => void this.view?.decide("reject"),
      acceptHunk: () => void this.view?.decideCurrent("accept"),
      rejectHunk: () => void this.view?.decideCurrent("reject"),
      step: (by) => this.view?.step(by),
      edit: () => this.view?.panes.draftView.focus(),
      leave: () => this.leave(),
      toggleLayout: () => this.toggleLayout(),
      unfold: () => this.view?.panes.unfoldAll(),
      nextReview: (by) => this.stepReview(by),
      focusList: () => this.list.focus(this.view?.id ?? null),
      panel: (name) => this.panels.toggle(name),
      showKeys,
      isChat: () => this.views.current === "chat",
      toggleView: () => this.views.toggle(),
      focusMessageBox: () => this.chat.focusMessageBox(),
      attach: () => void this.chat.attach(),
      answer: (option) => this.chat.choose(option),
    });
  }

  /** Takes the key of a login link out of the address, where it would be shown and saved. */
  private takeLink(): boolean {
    const link = parseLink(location.hash);
    if (!link) return false;
    this.login.useLink(link.key);
    if (link.view) location.replace(`#${link.view}`);
    else history.replaceState(null, "", location.pathname);
    return true;
  }

  /** The user switched to another view. */
  private entered(view: View): void {
    this.panels.drawer.close();
    const skip = document.querySelector<HTMLAnchorElement>(".skip");
    if (skip) {
      skip.textContent = view === "chat" ? "Skip to the message box" : "Skip to the change";
      skip.setAttribute("href", view === "chat" ? "#prompt" : "#review-area");
    }
    if (view === "chat") this.chat.entered();
    else this.area.focus({ preventScroll: true });
  }

  private listen(): void {
    const { connection } = this;
    connection.on("review/opened", (review) => {
      this.reviews.set(review.id, review);
      const { name } = splitPath(review.path, this.folders);
      announce(`${plain(agentLabel(review.agent, review.agentVersion))} proposed a change to ${name}.`);
      this.show();
      // Only if no review is open, and without moving the focus.
      if (!this.view && this.opening === null && !NARROW.matches) void this.open(review.id);
    });
    connection.on("review/changed", (review) => {
      const before = this.reviews.get(review.id);
      this.reviews.set(review.id, review);
      this.show();
      if (this.view?.id !== review.id) return;
      if (before && before.revision !== review.revision) void this.open(review.id, true);
      else this.view.update(review);
    });
    connection.on("review/closed", ({ review, outcome: how, path }) => {
      this.reviews.delete(review);
      if (this.view?.id === review) {
        this.view.closed(how);
      } else {
        announce(`${splitPath(path, this.folders).name}: ${outcome(how)}`);
      }
      this.show();
    });
    connection.on("review/edited", (note) => {
      if (this.view?.id === note.review) this.view.edited(note);
    });
    connection.on("review/rebased", ({ review, conflicts }) => {
      if (this.view?.id === review) void this.open(review, true).then(() => this.view?.rebased(conflicts));
    });
    connection.on("agents/changed", ({ agents }) => this.setAgents(agents));
    connection.on("problems/changed", ({ problems }) => showProblems(problems));
    connection.on("context/changed", (context) => this.panels.contextChanged(context));
    connection.on("resync", () => void this.catchUp().catch((error: unknown) => console.warn(error)));
  }

  /** Fetches the whole state. Edits made since then are kept and rebased onto the companion's text. */
  private async catchUp(): Promise<void> {
    const [status, reviews] = await Promise.all([this.connection.request("status"), this.connection.request("review/list")]);
    this.folders = status.workspace;
    this.reviews.clear();
    for (const review of reviews) this.reviews.set(review.id, review);
    this.setAgents(status.agents);
    showProblems(status.problems);
    byId("companion").textContent =
      `${plain(status.displayName)} \u00b7 ${status.workspace.map((folder) => splitPath(folder, []).name).join(", ")}`;
    const { view } = this;
    if (view) {
      const summary = this.reviews.get(view.id);
      if (!summary) view.closed(null);
      else if (summary.revision !== view.revision) void this.open(view.id, true);
      else view.catchUp(await this.connection.request("review/get", { review: view.id }));
    }
    this.show();
    const first = reviews[0];
    if (!this.view && first && !NARROW.matches) void this.open(first.id);
    void this.panels.drawer.refresh();
    await this.chat.catchUp();
  }

  private setAgents(agents: readonly Agent[]): void {
    this.panels.setAgents(agents);
    this.agents = agents.length;
    this.show();
  }

  private show(): void {
    const reviews = [...this.reviews.values()].sort((one, other) => one.opened - other.opened || one.id - other.id);
    this.list.show(reviews, this.opening ?? this.view?.id ?? null, this.folders);
    this.showTitle();
    this.chat.setReviews(reviews);
    byId("pending-count").textContent = String(reviews.length);
    byId("reviews-count").textContent = String(reviews.length);
    byId("review-empty").hidden = this.view !== null;
    this.firstRun.show(reviews.length > 0 ? null : { folders: this.folders, agents: this.agents });
    byId("review-empty-text").textContent = reviews.length > 0 ? `${count(reviews.length, "change")} to review.` : "No changes to review.";
  }

  /** Shows the number of pending reviews and approvals. */
  private showTitle(): void {
    const waiting = this.reviews.size + this.approvals;
    document.title = waiting > 0 ? `(${waiting}) alongside` : "alongside";
  }

  /** Opens a review instead of the open one. */
  private async open(id: number, again = false): Promise<void> {
    if (!again && this.view?.id === id) {
      document.body.dataset["narrow"] = "review";
      return;
    }
    this.opening = id;
    this.show();
    const started = performance.now();
    try {
      const review = await this.fetch(id);
      // The user may have opened another one since then.
      if (this.opening !== id) return;
      const hadFocus = this.area.contains(document.activeElement);
      const view = new ReviewView(this.connection, review, review, this.shownLayout(), this.folders, {
        decided: (decided) => this.openNext(decided),
        close: () => (document.body.dataset["narrow"] = "list"),
        toggleLayout: () => this.toggleLayout(),
        nextReview: () => this.stepReview(1),
      });
      const before = this.view;
      this.area.append(view.element);
      if (hadFocus) view.panes.element.focus();
      if (before?.id === id) view.panes.resume(before.panes);
      this.view = view;
      before?.destroy();
      view.arm();
      document.body.dataset["narrow"] = "review";
      performance.measure("alongside:open", { start: started, end: performance.now() });
    } catch (error) {
      if (error instanceof RequestError && error.kind !== "offline") this.reviews.delete(id);
      announce((error as Error).message);
    } finally {
      if (this.opening === id) this.opening = null;
      this.show();
    }
  }

  /** Fetches a review after the edits to the open one have arrived. */
  private async fetch(id: number): Promise<ReviewTexts> {
    for (;;) {
      await this.view?.sendEdits();
      const review = await this.connection.request("review/get", { review: id });
      if (!this.view?.isAhead || this.connection.state !== "open") return review;
    }
  }

  /** Opens the oldest pending review after a decision on this page. */
  private openNext(decided: ReviewView): void {
    this.reviews.delete(decided.id);
    if (this.view !== decided) return;
    const hadFocus = this.area.contains(document.activeElement) || document.activeElement === document.body;
    const next = [...this.reviews.values()].sort((one, other) => one.opened - other.opened)[0];
    if (hadFocus) this.area.focus();
    this.closeView();
    if (next && !NARROW.matches) void this.open(next.id);
  }

  private closeView(): void {
    this.view?.destroy();
    this.view = null;
    document.body.dataset["narrow"] = "list";
    this.show();
  }

  private stepReview(by: 1 | -1): void {
    const reviews = [...this.reviews.values()].sort((one, other) => one.opened - other.opened || one.id - other.id);
    const index = reviews.findIndex((review) => review.id === (this.opening ?? this.view?.id));
    const next = reviews[index < 0 ? 0 : index + by];
    if (next) void this.open(next.id);
    else if (index < 0) this.closeView();
  }

  private async decideAll(session: string, verb: "Accept" | "Reject"): Promise<void> {
    const reviews = [...this.reviews.values()].filter((review) => review.session === session);
    const { title, sentence, yes } = allQuestion(reviews, verb);
    if (reviews.length === 0 || !(await confirmation(title, sentence, yes))) return;
    try {
      await this.view?.sendEdits();
      await this.connection.request(verb === "Accept" ? "review/acceptAll" : "review/rejectAll", { session });
      announce(`${verb}ed ${count(reviews.length, "change")}.`);
      if (this.view && !this.reviews.has(this.view.id)) this.openNext(this.view);
    } catch (error) {
      await confirmation("Something went wrong", (error as Error).message, "OK");
    }
  }

  private leave(): void {
    if (this.panels.drawer.isOpen) this.panels.drawer.close();
    else if (this.views.current === "chat") this.chat.escape();
    else this.view?.panes.element.focus();
  }

  private shownLayout(): Layout {
    return NARROW.matches ? "unified" : this.layout;
  }

  private toggleLayout(): void {
    this.layout = this.shownLayout() === "split" ? "unified" : "split";
    localStorage.setItem("alongside:layout", this.layout);
    this.view?.showLayout(this.shownLayout());
  }

  private showLogin(): void {
    const [title, reason] =
      this.login.obstacle === "noLink"
        ? ["This tab is not logged in", "Each tab logs in with a one-time link."]
        : this.login.obstacle === "invalidLink"
          ? ["This link is no longer valid", "Login links work once and expire after ten minutes."]
          : ["You have been logged out", "The companion does not know this login."];
    byId("login-title").textContent = title ?? "";
    byId("login-reason").textContent = reason ?? "";
  }

  private connectionChanged(state: ConnectionState): void {
    document.body.dataset["connection"] = state;
    if (state === "open") this.wasOpen = true;
    // A page that has shown something stays as it is: there may be unsent edits.
    const isLoginShown = state === "loggedOut" && !this.wasOpen;
    byId("login").hidden = !isLoginShown;
    byId("body").hidden = isLoginShown;
    document.body.toggleAttribute("data-login", isLoginShown);
    if (isLoginShown) this.showLogin();
    this.chat.connectionChanged();
    const banner = byId("connection");
    banner.hidden = state === "open" || state === "connecting" || isLoginShown;
    byId("reconnect").hidden = state === "loggedOut";
    const text = byId("connection-text");
    if (state === "loggedOut") {
      replaceChildren(text, "You have been logged out. Run ", element("code", {}, "alongside page"), " for a new link.");
    } else if (state === "lost") {
      replaceChildren(text, "Disconnected from the companion. Reconnecting\u2026 Unsent edits stay on this page.");
    } else {
      replaceChildren(text);
      announce("Connected.");
    }
  }
}

/** `null` if the browser refuses to keep anything; then a reload has to log in again. */
function tabStorage(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

/** Says what is wrong with the companion, such as a full disk. */
function showProblems(problems: readonly string[]): void {
  const banner = byId("problems");
  banner.hidden = problems.length === 0;
  const sentences = problems.map((problem) => `${problem.charAt(0).toUpperCase()}${plain(problem.slice(1))}.`);
  replaceChildren(banner, element("span", {}, sentences.join(" ")));
}

function storedLayout(): Layout {
  return localStorage.getItem("alongside:layout") === "unified" ? "unified" : "split";
}

new Page().start();
