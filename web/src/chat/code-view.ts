// A block of code: its language, a button that copies it, and colours that come when there is time for them.

import type { LanguageSupport } from "@codemirror/language";
import { classHighlighter, highlightTree } from "@lezer/highlight";
import { announce, element } from "../dom";
import { languageNamed } from "../editor/languages";
import { appendVisibly } from "../editor/special";
import { plain } from "../words";

/** Longer code is shown without colours. */
const LONGEST_COLOURED = 60_000;
/** While code is being written, colours come at most this often, in milliseconds. */
const PAUSE = 160;

export class CodeView {
  readonly element: HTMLElement;
  private readonly code = element("code");
  private text = "";
  private language: LanguageSupport | null = null;
  private timer = 0;
  private cost = 0;

  constructor(info: string, text: string) {
    const name = /^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? "";
    const copy = element("button", { type: "button", class: "quiet small copy", "data-testid": "copy-code", "aria-label": "Copy this code", onclick: () => void this.copy(copy) }, "Copy");
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
    if (this.text !== "" && text.startsWith(this.text)) {
      appendVisibly(this.code, text.slice(this.text.length));
    } else {
      this.code.replaceChildren();
      appendVisibly(this.code, text);
    }
    this.text = text;
    this.colourSoon();
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
    this.code.replaceChildren(made);
    this.cost = performance.now() - started;
  }

  private async copy(button: HTMLElement): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.text);
      button.textContent = "Copied";
      announce("Copied.");
    } catch {
      button.textContent = "Not copied";
      announce("The browser did not let the code be copied.");
    }
    window.setTimeout(() => (button.textContent = "Copy"), 1500);
  }
}
