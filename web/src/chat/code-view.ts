// A code block with its language and a copy button, highlighted when the page is idle.

import type { LanguageSupport } from "@codemirror/language";
import { classHighlighter, highlightTree } from "@lezer/highlight";
import { announce, element } from "../dom";
import { languageNamed } from "../editor/languages";
import { appendVisibly } from "../editor/special";
import { plain } from "../format";

/** Longer code is not highlighted. */
const MAX_HIGHLIGHTED_CHARS = 60_000;
/** Lines per chunk; chunks outside of the viewport are not laid out. */
const LINES_TOGETHER = 400;
/** As in styles/markdown.css. */
const LINE_HEIGHT = 20;
/** Minimum time between two highlightings while code streams, in milliseconds. */
const PAUSE = 160;

export class CodeView {
  readonly element: HTMLElement;
  private readonly code = element("code");
  private text = "";
  private last: { readonly place: HTMLElement; lines: number } | null = null;
  private language: LanguageSupport | null = null;
  private timer = 0;
  private cost = 0;

  constructor(info: string, text: string) {
    const name = /^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? "";
    const copy = element(
      "button",
      {
        type: "button",
        class: "quiet small copy",
        "data-testid": "copy-code",
        "aria-label": "Copy this code",
        onclick: () => void this.copy(copy),
      },
      "Copy",
    );
    this.element = element(
      "figure",
      { class: "code", "data-testid": "code", "data-language": name || null },
      element("figcaption", {}, element("span", {}, plain(name) || "text"), copy),
      // Scrollable, so it must be focusable.
      element("pre", { tabindex: "0", "aria-label": name ? `Code, ${plain(name)}` : "Code" }, this.code),
    );
    this.update(text);
    if (name) void this.load(name);
  }

  /** Shows the code so far. */
  update(text: string): void {
    if (text === this.text) return;
    if (this.text === "" || !text.startsWith(this.text)) {
      this.code.replaceChildren();
      this.last = null;
      this.text = "";
    }
    this.append(text.slice(this.text.length));
    this.text = text;
    this.highlightSoon();
  }

  /** Appends. Long code is split into chunks, so that appending does not lay out all of it again. */
  private append(text: string): void {
    for (let start = 0; start < text.length; ) {
      if (!this.last || this.last.lines >= LINES_TOGETHER) {
        this.last = { place: element("span", { class: "lines" }), lines: 0 };
        this.code.append(this.last.place);
      }
      let end = start;
      while (end < text.length && this.last.lines < LINES_TOGETHER) {
        const line = text.indexOf("\n", end);
        if (line < 0) end = text.length;
        else {
          end = line + 1;
          this.last.lines++;
        }
      }
      appendVisibly(this.last.place, text.slice(start, end));
      this.last.place.style.containIntrinsicBlockSize = `${Math.max(1, this.last.lines) * LINE_HEIGHT}px`;
      start = end;
    }
  }

  private async load(name: string): Promise<void> {
    this.language = (await languageNamed(name)) as LanguageSupport | null;
    this.highlight();
  }

  private highlightSoon(): void {
    if (!this.language || this.timer !== 0 || this.text.length > MAX_HIGHLIGHTED_CHARS) return;
    this.timer = window.setTimeout(() => this.highlight(), Math.max(PAUSE, this.cost * 8));
  }

  private highlight(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    if (!this.language || this.text.length > MAX_HIGHLIGHTED_CHARS) return;
    const started = performance.now();
    const { text } = this;
    const made = document.createDocumentFragment();
    let end = 0;
    highlightTree(this.language.language.parser.parse(text), classHighlighter, (from, to, style) => {
      if (from > end) appendVisibly(made, text.slice(end, from));
      const span = element("span", { class: style });
      appendVisibly(span, text.slice(from, to));
      made.append(span);
      end = to;
    });
    if (end < text.length) appendVisibly(made, text.slice(end));
    const lines = text.split("\n").length - 1;
    const place = element("span", { class: "lines" }, made);
    place.style.containIntrinsicBlockSize = `${Math.max(1, lines) * LINE_HEIGHT}px`;
    this.last = { place, lines };
    this.code.replaceChildren(place);
    this.cost = performance.now() - started;
  }

  private async copy(button: HTMLElement): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.text);
      button.textContent = "Copied";
      announce("Copied.");
    } catch {
      button.textContent = "Copy failed";
      announce("The browser blocked copying.");
    }
    window.setTimeout(() => (button.textContent = "Copy"), 1500);
  }
}
