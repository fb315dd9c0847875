// An answer while it streams. Only the last block can still change, so only that is rendered again.

import { element } from "../dom";
import type { CodeView } from "./code-view";
import { maybeClosed, type OpenFence, openingFence } from "./fence";
import { blocksOf, renderBlock } from "./markdown";
import { appendProse } from "./prose";

export class MarkdownView {
  readonly element = element("div", { class: "markdown" });
  private text = "";
  /** Start of the last block; everything before it is final. */
  private settled = 0;
  private last: Element | null = null;
  private open: { readonly fence: OpenFence; readonly view: CodeView } | null = null;

  constructor(text = "") {
    this.update(text);
  }

  /** Shows the text so far, usually the previous text with more at the end. */
  update(text: string): void {
    if (text === this.text) return;
    const before = this.text.length;
    if (!text.startsWith(this.text)) this.begin();
    this.text = text;
    if (this.open && before > 0 && !maybeClosed(text, this.open.fence, before)) {
      this.open.view.update(withoutLastBreak(text.slice(this.open.fence.start)));
      return;
    }
    this.renderLast();
  }

  private begin(): void {
    this.element.replaceChildren();
    this.settled = 0;
    this.last = null;
    this.open = null;
  }

  private renderLast(): void {
    const tail = this.text.slice(this.settled);
    this.open = null;
    this.last?.remove();
    this.last = null;
    try {
      const blocks = blocksOf(tail);
      for (const [index, block] of blocks.entries()) {
        const isLast = index === blocks.length - 1;
        const made = renderBlock(block, tail, (view) => {
          if (isLast) this.keepOpen(tail.slice(block.from), this.settled + block.from, view);
        });
        this.element.append(made);
        if (isLast) {
          this.last = made;
          this.settled += block.from;
        }
      }
    } catch (error) {
      // If the parser fails, show the plain text.
      console.warn("An answer is shown as it was written.", error);
      const made = element("p", { class: "literal" });
      appendProse(made, tail);
      this.element.append(made);
      this.last = made;
    }
  }

  private keepOpen(block: string, offset: number, view: CodeView): void {
    const fence = openingFence(block, offset);
    if (fence && !maybeClosed(this.text, fence, fence.start)) this.open = { fence, view };
  }
}

function withoutLastBreak(code: string): string {
  return code.endsWith("\n") ? code.slice(0, -1) : code;
}
