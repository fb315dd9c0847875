// The chat in an editor's webview: the page's chat, whose connection to the companion is the editor.

import { Calls, type Channel, type ConnectionState, RequestError } from "./channel";
import { Chat } from "./chat/chat";
import { announce, byId } from "./dom";
import { Drawer } from "./drawer";
import { listenToChatKeys } from "./keys";
import type { Message, Notifications, Requests } from "./protocol";
import type { ChatNotifications, EditorNotifications, EditorState } from "./webview-messages";

/** What VS Code offers a webview. */
interface WebviewApi {
  postMessage(message: Message): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): WebviewApi;

const api = acquireVsCodeApi();

class EditorChannel implements Channel {
  state: ConnectionState = "connecting";
  private readonly calls = new Calls();

  constructor() {
    window.addEventListener("message", (event: MessageEvent<Message>) => this.calls.receive(event.data));
  }

  on<Name extends keyof (Notifications & EditorNotifications)>(
    name: Name,
    handler: (params: (Notifications & EditorNotifications)[Name]) => void,
  ): void {
    this.calls.on(name, handler);
  }

  request<Method extends keyof Requests>(
    method: Method,
    ...[params]: object extends Requests[Method]["params"] ? [] : [params: Requests[Method]["params"]]
  ): Promise<Requests[Method]["response"]> {
    if (this.state === "lost") return Promise.reject(new RequestError("offline", "The companion is not running."));
    return this.calls.request((message) => api.postMessage(message), method, params ?? {});
  }

  notify<Name extends keyof ChatNotifications>(method: Name, params: ChatNotifications[Name]): void {
    api.postMessage({ method, params });
  }

  /** The companion was lost, or is back. */
  enter(state: ConnectionState): void {
    this.state = state;
    if (state === "lost") this.calls.abandon();
  }
}

class ChatView {
  private readonly channel = new EditorChannel();
  private readonly drawer = new Drawer(byId("body"));
  private shown: EditorState = { companion: "starting", run: 0, folders: [], reviews: [] };
  private readonly chat = new Chat(byId("chat"), this.channel, this.drawer, {
    folders: () => this.shown.folders,
    isShown: () => true,
    toReviews: () => this.channel.notify("view/openReview", {}),
    openReview: (review) => this.channel.notify("view/openReview", { review }),
    exists: () => undefined,
    waits: (count) => this.channel.notify("view/waiting", { count }),
    unsent: {
      read: () => {
        const state = api.getState();
        return typeof state === "string" && state !== "" ? state : null;
      },
      // VS Code ignores a state without a value.
      write: (message) => api.setState(message ?? ""),
    },
  });

  start(): void {
    this.channel.on("editor/state", (state) => this.show(state));
    this.channel.on("resync", () => this.catchUp());
    byId("start-companion").addEventListener("click", () => this.channel.notify("view/startCompanion", {}));
    listenToChatKeys({
      leave: () => (this.drawer.isOpen ? this.drawer.close() : this.chat.escape()),
      focusMessageBox: () => this.chat.focusMessageBox(),
      attach: () => void this.chat.attach(),
      answer: (option) => this.chat.choose(option),
    });
    this.channel.notify("view/ready", {});
  }

  private show(state: EditorState): void {
    const before = this.shown;
    this.shown = state;
    const isRunning = state.companion === "running";
    if (isRunning !== (this.channel.state === "open")) {
      this.channel.enter(isRunning ? "open" : state.companion === "starting" ? "connecting" : "lost");
      document.body.dataset["connection"] = this.channel.state;
      byId("connection").hidden = state.companion !== "stopped";
      if (state.companion === "stopped") announce("The companion is not running.");
      this.chat.connectionChanged();
    }
    this.chat.setReviews(state.reviews);
    if (isRunning && (state.run !== before.run || before.companion !== "running")) this.catchUp();
  }

  private catchUp(): void {
    this.chat.catchUp().catch((error: unknown) => console.warn(error));
  }
}

new ChatView().start();
