// A block of code: its language, a button that copies it, and colours that come when there is time for them.

import type { LanguageSupport } from "@codemirror/language";
import { classHighlighter, highlightTree } from "@lezer/highlight";
import { announce, element } from "../dom";
import { languageNamed } from "../editor/languages";
import { appendVisibly } from "../editor/special";
import { plain } from "../words";

/** Longer code is shown without colours. */
const LONGEST_COLOURED = 60_000;
/** So many lines are laid out together; those that nobody sees are not laid out at all. */
const LINES_TOGETHER = 400;
/** The height of a line, as in the style sheet. */
const LINE_HEIGHT = 20;
/** While code is being written, colours come at most this often, in milliseconds. */
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
      // It can be scrolled, so it can have the focus.
      element("pre", { tabindex: "0", "aria-label": name ? `Code, ${plain(name)}` : "Code" }, this.code),
    );
    this.update(text);
    if (name) void this.load(name);
  }

  /** The code as it is by now. */
  update(text: string): void {
    if (text === this.text) return;
    if (this.text === "" || !text.startsWith(this.text)) {
      this.code.replaceChildren();
      this.last = null;
      this.text = "";
    }
    this.append(text.slice(this.text.length));
    this.text = text;
    this.colourSoon();
  }

  /** Adds to the end. Very long code is in pieces, so that a word more does not lay out all of it again. */
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
    this.colour();
  }

  private colourSoon(): void {
    if (!this.language || this.timer !== 0 || this.text.length > LONGEST_COLOURED) return;
    this.timer = window.setTimeout(() => this.colour(), Math.max(PAUSE, this.cost * 8));
  }

  private colour(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    if (!this.language || this.text.length > LONGEST_COLOURED) return;
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
