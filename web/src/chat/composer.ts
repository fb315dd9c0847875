// The message box, with attachments and completion.

import { element, replaceChildren } from "../dom";
import { count, plain, splitPath } from "../format";
import type { OpenFile } from "../protocol";
import { CompletionList, matching, type Suggestion, wantedAt } from "./completion";
import type { ContentBlock } from "./protocol";

const STORAGE_KEY = "alongside:prompt";
/** Delay after typing before files are requested, in milliseconds. */
const PAUSE = 80;

/** An editor selection attached to a prompt. */
export interface Attachment {
  readonly path: string;
  readonly line: number | null;
  readonly text: string;
}

export interface ComposerListener {
  /** Returns whether the message was received. */
  send(blocks: readonly ContentBlock[], text: string): Promise<boolean>;
  stop(): void;
  commands(): readonly Suggestion[];
  files(word: string): Promise<readonly string[]>;
  attach(): void;
  folders(): readonly string[];
  suggestion(): string;
}

export class Composer {
  readonly element: HTMLElement;
  readonly field: HTMLTextAreaElement;
  private readonly chips = element("div", { class: "chips", hidden: true });
  private readonly sendButton: HTMLButtonElement;
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
    this.sendButton = element(
      "button",
      { type: "button", class: "primary", "data-testid": "send", title: "Send (Enter)", onclick: () => void this.send() },
      "Send",
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
      element("div", { class: "composer-buttons" }, attach, element("span", { class: "grow" }), this.stopButton, this.sendButton),
    );
    this.restore();
    this.field.addEventListener("input", () => this.edited());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("blur", () => this.list.close());
    this.field.addEventListener("click", () => this.completeSoon());
  }

  get isEmpty(): boolean {
    return this.field.value.trim() === "" && this.attachments.length === 0;
  }

  get isCompleting(): boolean {
    return this.list.isOpen;
  }

  showTurn(running: boolean, stopping: boolean, canSend: boolean): void {
    this.element.dataset["turn"] = running ? "running" : "none";
    this.stopButton.hidden = !running || !canSend;
    this.stopButton.setAttribute("aria-disabled", String(stopping));
    this.sendButton.replaceChildren(running && canSend ? "Queue" : "Send");
    this.sendButton.classList.toggle("primary", canSend);
    this.sendButton.setAttribute("aria-disabled", String(!canSend));
  }

  attach(attachment: Attachment): void {
    const isKnown = this.attachments.some((known) => known.path === attachment.path && known.text === attachment.text);
    if (!isKnown) this.attachments = [...this.attachments, attachment];
    this.changed();
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
    const parts = [written, ...this.attachments.map((attachment) => quoted(attachment, this.listener.folders()))].filter(
      (part) => part !== "",
    );
    return parts.length === 0 ? [] : [{ type: "text", text: parts.join("\n\n") }];
  }

  async send(): Promise<void> {
    if (this.isEmpty || this.sending) return;
    const { blocks } = this;
    const text = blocks.map((block) => ("text" in block ? block.text : "")).join("");
    const [before, with_] = [this.field.value, this.attachments];
    this.sending = true;
    this.list.close();
    const arrived = await this.listener.send(blocks, text).finally(() => (this.sending = false));
    // Keep what was typed since then.
    if (arrived && this.field.value === before && this.attachments === with_) this.clear();
    this.changed();
  }

  private key(event: KeyboardEvent): void {
    if (this.list.key(event)) return;
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (!event.repeat) void this.send();
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
    // Per tab, for as long as the tab exists.
    const kept = { text: this.field.value, attachments: this.attachments };
    try {
      if (this.isEmpty) sessionStorage.removeItem(STORAGE_KEY);
      else sessionStorage.setItem(STORAGE_KEY, JSON.stringify(kept));
    } catch {
      // Storage may be full; then it is kept in memory only.
    }
  }

  private restore(): void {
    try {
      const kept = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null") as { text: string; attachments: Attachment[] } | null;
      if (!kept) return;
      this.field.value = kept.text;
      this.attachments = kept.attachments;
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
    const { name } = splitPath(attachment.path, this.listener.folders());
    const lines = attachment.text.split("\n").length;
    return element(
      "span",
      { class: "chip attachment", "data-testid": "attachment", title: plain(attachment.text.slice(0, 400)) },
      `${name}${attachment.line ? `:${attachment.line}` : ""} \u00b7 ${count(lines, "line")}`,
      element(
        "button",
        {
          type: "button",
          class: "quiet",
          "data-testid": "detach",
          "aria-label": `Remove the selection from ${name}`,
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
}

/** A selection as part of a prompt: its path, and the text in a fence longer than any in it. */
function quoted({ path, line, text }: Attachment, folders: readonly string[]): string {
  const { folder, name } = splitPath(path, folders);
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  const extension = /\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1] ?? "";
  return `Selected in ${folder}${name}${line ? ` at line ${line}` : ""}:\n${fence}${extension}\n${text}\n${fence}`;
}

/** The selection in the context that agents see. */
export function selectionOf(files: readonly OpenFile[]): Attachment | null {
  const file = files.find(({ selectedText }) => selectedText !== undefined && selectedText !== "");
  return file?.selectedText === undefined ? null : { path: file.path, line: file.cursor?.line ?? null, text: file.selectedText };
}
