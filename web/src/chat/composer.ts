// The message box, with attachments and completion.

import { element, replaceChildren } from "../dom";
import { count, formatSize, plain, splitPath } from "../format";
import { type Accepted, type Attachment, fileBlock, quoted, readFile, refusal, type Selection } from "./attachments";
import { CompletionList, matching, type Suggestion, wantedAt } from "./completion";
import type { ContentBlock } from "./protocol";

/** Delay after typing before files are requested, in milliseconds. */
const PAUSE = 80;

/** Keeps an unsent message, as text, for as long as its view may come back. Throws if that is not possible. */
export interface UnsentStore {
  read(): string | null;
  write(message: string | null): void;
}

export interface ComposerListener {
  /** Returns whether the message was received. It is for the running turn, if possible, or for the queue. */
  send(blocks: readonly ContentBlock[], text: string, midTurn: boolean): Promise<boolean>;
  stop(): void;
  commands(): readonly Suggestion[];
  files(word: string): Promise<readonly string[]>;
  attach(): void;
  folders(): readonly string[];
  suggestion(): string;
  /** Shows why a file was not attached. */
  refuse(sentence: string): void;
  readonly unsent: UnsentStore;
}

export class Composer {
  readonly element: HTMLElement;
  readonly field: HTMLTextAreaElement;
  private readonly chips = element("div", { class: "chips", hidden: true });
  private readonly sendButton: HTMLButtonElement;
  private readonly queueButton: HTMLButtonElement;
  private readonly fileButton: HTMLButtonElement;
  private readonly picker = element("input", { type: "file", multiple: true, hidden: true, "data-testid": "file-picker" });
  private accepted: Accepted = { images: false, files: false };
  private canSendMidTurn = false;
  private readonly stopButton: HTMLButtonElement;
  private readonly list: CompletionList;
  private attachments: Attachment[] = [];
  private timer = 0;
  private asked = 0;
  private sending = false;

  constructor(private readonly listener: ComposerListener) {
    this.field = element("textarea", {
      rows: 1,
      id: "prompt",
      "data-testid": "prompt",
      "aria-label": "Message to the agent",
      placeholder: "Ask a question or describe a task. / for commands, @ for files",
      "aria-autocomplete": "list",
      "aria-haspopup": "listbox",
      "aria-controls": "completion",
      spellcheck: "true",
    });
    this.list = new CompletionList(this.field, (suggestion) => this.complete(suggestion));
    const attach = element(
      "button",
      {
        type: "button",
        class: "quiet small",
        "data-testid": "attach",
        title: "Attach the editor selection (Alt+S)",
        onclick: () => listener.attach(),
      },
      "+ Selection",
      element("kbd", { "aria-hidden": "true" }, "Alt S"),
    );
    this.fileButton = element(
      "button",
      {
        type: "button",
        class: "quiet small",
        "data-testid": "attach-file",
        title: "Attach images or files. You can also paste them, or drop them here.",
        hidden: true,
        onclick: () => this.picker.click(),
      },
      "+ File",
    );
    this.sendButton = element(
      "button",
      { type: "button", class: "primary", "data-testid": "send", onclick: () => void this.send() },
      "Send",
    );
    this.queueButton = element(
      "button",
      {
        type: "button",
        "data-testid": "queue-message",
        title: "Send it when the turn has ended (Alt+Enter)",
        hidden: true,
        onclick: () => void this.send(true),
      },
      "Queue",
    );
    this.stopButton = element(
      "button",
      {
        type: "button",
        class: "danger",
        "data-testid": "stop",
        title: "Cancel the turn (Esc)",
        hidden: true,
        onclick: () => listener.stop(),
      },
      "Stop",
      element("kbd", { "aria-hidden": "true" }, "Esc"),
    );
    this.element = element(
      "div",
      { class: "composer", "data-testid": "composer" },
      this.list.element,
      this.chips,
      this.field,
      element(
        "div",
        { class: "composer-buttons" },
        attach,
        this.fileButton,
        this.picker,
        element("span", { class: "grow" }),
        this.stopButton,
        this.queueButton,
        this.sendButton,
      ),
    );
    this.restore();
    this.field.addEventListener("input", () => this.edited());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("blur", () => this.list.close());
    this.field.addEventListener("click", () => this.completeSoon());
    this.picker.addEventListener("change", () => {
      void this.attachFiles(this.picker.files);
      // The same file can be chosen again.
      this.picker.value = "";
    });
    this.field.addEventListener("paste", (event) => this.attachFrom(event, event.clipboardData));
    this.element.addEventListener("drop", (event) => this.attachFrom(event, event.dataTransfer));
    this.element.addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
  }

  get isEmpty(): boolean {
    return this.field.value.trim() === "" && this.attachments.length === 0;
  }

  get isCompleting(): boolean {
    return this.list.isOpen;
  }

  showTurn(running: boolean, stopping: boolean, canSend: boolean, canSendMidTurn: boolean): void {
    this.element.dataset["turn"] = running ? "running" : "none";
    this.stopButton.hidden = !running || !canSend;
    this.stopButton.setAttribute("aria-disabled", String(stopping));
    this.canSendMidTurn = running && canSend && canSendMidTurn;
    this.sendButton.textContent = this.canSendMidTurn ? "Send now" : running && canSend ? "Queue" : "Send";
    this.sendButton.title = this.canSendMidTurn ? "The agent receives it with its next step (Enter)" : "Send (Enter)";
    this.sendButton.classList.toggle("primary", canSend);
    this.sendButton.setAttribute("aria-disabled", String(!canSend));
    this.queueButton.hidden = !this.canSendMidTurn;
  }

  /** What the agent accepts in a message. */
  accept(accepted: Accepted): void {
    this.accepted = accepted;
    this.fileButton.hidden = !accepted.images && !accepted.files;
  }

  attach(attachment: Selection): void {
    const isSame = (known: Attachment) => known.kind === "selection" && known.path === attachment.path && known.text === attachment.text;
    if (!this.attachments.some(isSame)) this.attachments = [...this.attachments, attachment];
    this.changed();
  }

  private attachFrom(event: Event, data: DataTransfer | null): void {
    if (!data || data.files.length === 0) return;
    event.preventDefault();
    void this.attachFiles(data.files);
  }

  private async attachFiles(files: FileList | null): Promise<void> {
    for (const file of [...(files ?? [])]) {
      let problem = refusal(file, this.attachments, this.accepted);
      if (problem === null) {
        try {
          this.attachments = [...this.attachments, await readFile(file)];
        } catch (error) {
          problem = (error as Error).message;
        }
      }
      if (problem !== null) this.listener.refuse(problem);
    }
    this.changed();
    this.field.focus();
  }

  fill(text: string): void {
    this.field.value = text;
    this.edited();
    this.field.focus();
  }

  /** The message was received. */
  clear(): void {
    this.field.value = "";
    this.attachments = [];
    this.changed();
  }

  /** The message as it would be sent now. */
  get blocks(): readonly ContentBlock[] {
    const written = this.field.value.trim();
    const selections = this.attachments.filter((attachment) => attachment.kind === "selection");
    const files = this.attachments.filter((attachment) => attachment.kind === "file");
    const parts = [written, ...selections.map((selection) => quoted(selection, this.listener.folders()))].filter((part) => part !== "");
    const text: ContentBlock[] = parts.length === 0 ? [] : [{ type: "text", text: parts.join("\n\n") }];
    return [...text, ...files.map(fileBlock)];
  }

  /** During a turn, the message is for that turn unless `isForQueue`. */
  async send(isForQueue = false): Promise<void> {
    if (this.isEmpty || this.sending) return;
    const { blocks } = this;
    const text = blocks.map((block) => ("text" in block ? block.text : "")).join("");
    const [before, with_] = [this.field.value, this.attachments];
    this.sending = true;
    this.list.close();
    const midTurn = this.canSendMidTurn && !isForQueue;
    const arrived = await this.listener.send(blocks, text, midTurn).finally(() => (this.sending = false));
    // Keep what was typed since then.
    if (arrived && this.field.value === before && this.attachments === with_) this.clear();
    this.changed();
  }

  private key(event: KeyboardEvent): void {
    if (this.list.key(event)) return;
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (!event.repeat) void this.send(event.altKey);
    } else if (event.key === "ArrowRight" && this.field.value === "" && this.listener.suggestion() !== "") {
      event.preventDefault();
      this.fill(this.listener.suggestion());
    } else if (event.key === "Backspace" && this.field.value === "" && this.attachments.length > 0) {
      this.attachments = this.attachments.slice(0, -1);
      this.changed();
    }
  }

  private edited(): void {
    this.changed();
    this.completeSoon();
  }

  private completeSoon(): void {
    const wanted = wantedAt(this.field.value, this.field.selectionStart);
    window.clearTimeout(this.timer);
    const number = ++this.asked;
    if (!wanted) {
      this.list.close();
      return;
    }
    if (wanted.kind === "command") {
      this.list.show(matching(this.listener.commands(), wanted.word));
      return;
    }
    this.timer = window.setTimeout(() => {
      void this.listener.files(wanted.word).then((paths) => {
        if (number !== this.asked || document.activeElement !== this.field) return;
        const suggestions = paths.map((path) => ({
          insert: `@${path.includes(" ") ? path.replace(/ /g, "\\ ") : path} `,
          label: path,
          about: "",
        }));
        this.list.show(matching(suggestions, wanted.word));
      });
    }, PAUSE);
  }

  private complete(suggestion: Suggestion): void {
    const wanted = wantedAt(this.field.value, this.field.selectionStart);
    if (!wanted) return;
    this.field.setRangeText(suggestion.insert, wanted.from, wanted.to, "end");
    this.list.close();
    this.changed();
  }

  private changed(): void {
    this.fit();
    this.chips.hidden = this.attachments.length === 0;
    replaceChildren(this.chips, ...this.attachments.map((attachment) => this.chip(attachment)));
    // Files are too large for this.
    const kept = { text: this.field.value, attachments: this.attachments.filter(({ kind }) => kind === "selection") };
    try {
      this.listener.unsent.write(this.isEmpty ? null : JSON.stringify(kept));
    } catch {
      // Storage may be full; then it is kept in memory only.
    }
  }

  private restore(): void {
    try {
      const kept = JSON.parse(this.listener.unsent.read() ?? "null") as { text: string; attachments: Attachment[] } | null;
      if (!kept) return;
      this.field.value = kept.text;
      this.attachments = kept.attachments.filter(({ kind }) => kind === "selection");
    } catch {
      return;
    }
    queueMicrotask(() => this.changed());
  }

  /** Fits the height to the text in browsers without `field-sizing`. */
  private fit(): void {
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  private chip(attachment: Attachment): HTMLElement {
    const [name, label, title] = this.describe(attachment);
    return element(
      "span",
      { class: "chip attachment", "data-testid": "attachment", title },
      label,
      element(
        "button",
        {
          type: "button",
          class: "quiet",
          "data-testid": "detach",
          "aria-label": `Remove ${name}`,
          onclick: () => {
            this.attachments = this.attachments.filter((known) => known !== attachment);
            this.changed();
            this.field.focus();
          },
        },
        "\u2715",
      ),
    );
  }

  private describe(attachment: Attachment): readonly [name: string, label: string, title: string] {
    if (attachment.kind === "file") {
      const name = plain(attachment.name);
      return [name, `${name} \u00b7 ${formatSize(attachment.bytes)}`, plain(attachment.mimeType)];
    }
    const { name } = splitPath(attachment.path, this.listener.folders());
    const lines = count(attachment.text.split("\n").length, "line");
    const at = attachment.line ? `:${attachment.line}` : "";
    return [`the selection from ${name}`, `${name}${at} \u00b7 ${lines}`, plain(attachment.text.slice(0, 400))];
  }
}
