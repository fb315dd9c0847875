// The views of the items of a conversation.

import { element, replaceChildren } from "../dom";
import { formatSize, plain } from "../format";
import { CodeView } from "./code-view";
import { MarkdownView } from "./markdown-view";
import { appendProse } from "./prose";
import type { ContentBlock } from "./protocol";
import { ToolCard, type ToolCardSurroundings } from "./tool-card";
import type { Item } from "./transcript";

export interface ItemView {
  readonly kind: Item["kind"];
  readonly element: HTMLElement;
  update(item: Item): void;
  destroy(): void;
}

export interface ItemSurroundings extends ToolCardSurroundings {
  /** The content of an attached image in base 64, if it can be read. */
  picture(name: string): Promise<string | null>;
  /** Removes this message and everything after it. */
  rewind(item: Item): void;
}

export function viewOf(item: Item, around: ItemSurroundings): ItemView {
  switch (item.kind) {
    case "user":
      return simple(
        item,
        element("article", { class: "message", "data-testid": "user", "aria-label": item.own ? "You" : "Sent from elsewhere" }),
        (made, now) => showUser(made, now, around),
      );
    case "answer": {
      const view = new MarkdownView();
      const made = element("article", { class: "answered-text", "data-testid": "answer", "aria-label": "Answer" }, view.element);
      return simple(item, made, (_, { text }) => view.update(text));
    }
    case "thinking": {
      const text = element("p", { dir: "auto" });
      const made = element("details", { class: "thinking", "data-testid": "thinking" }, element("summary", {}, "Thinking"), text);
      let shown = 0;
      return simple(item, made, (_, now) => {
        // Fast path: append.
        if (now.text.length < shown) {
          text.replaceChildren();
          shown = 0;
        }
        appendProse(text, now.text.slice(shown));
        shown = now.text.length;
      });
    }
    case "block":
      return simple(item, element("article", { class: "block", "data-testid": "block", "aria-label": "Answer" }), (made, { block }) =>
        replaceChildren(made, blockElement(block, around)),
      );
    case "notice":
      return simple(item, element("p", { class: "chat-notice", "data-testid": "chat-notice" }), (made, { level, message }) => {
        made.dataset["level"] = level;
        made.replaceChildren();
        appendProse(made, message);
      });
    case "tool": {
      const card = new ToolCard(item, around);
      return {
        kind: "tool",
        element: card.element,
        update: (next) => next.kind === "tool" && card.update(next),
        destroy: () => card.destroy(),
        card,
      } as ItemView & { card: ToolCard };
    }
  }
}

export function cardOf(view: ItemView): ToolCard | null {
  return "card" in view ? (view.card as ToolCard) : null;
}

function simple<Kind extends Item["kind"]>(
  item: Item & { kind: Kind },
  made: HTMLElement,
  show: (made: HTMLElement, item: Item & { kind: Kind }) => void,
): ItemView {
  show(made, item);
  return {
    kind: item.kind,
    element: made,
    update: (next) => next.kind === item.kind && show(made, next as Item & { kind: Kind }),
    destroy: () => undefined,
  };
}

/** A user message: verbatim, except that code blocks look like code. */
function showUser(made: HTMLElement, item: Item & { kind: "user" }, around: ItemSurroundings): void {
  const { text, others, own, midTurn } = item;
  const parts: (Node | string)[] = [];
  if (!own) parts.push(element("p", { class: "faint" }, "Sent from elsewhere"));
  // Alternates between text, the language after the fence, and code.
  const pieces = text.split(/^```([^\n`]*)\n([\s\S]*?)\n```$/m);
  for (let index = 0; index < pieces.length; index += 3) {
    const written = (pieces[index] ?? "").replace(/^\n+|\n+$/g, "");
    const paragraph = element("p", { class: "as-written", dir: "auto" });
    appendProse(paragraph, written);
    if (written !== "") parts.push(paragraph);
    const code = pieces[index + 2];
    if (code !== undefined) parts.push(new CodeView(pieces[index + 1] ?? "", code).element);
  }
  if (midTurn) parts.push(element("p", { class: "faint" }, "Sent during the turn"));
  const rewind = element(
    "button",
    {
      type: "button",
      class: "quiet small rewind",
      "data-testid": "rewind",
      title: "Rewind to here",
      "aria-label": `Rewind to before: ${plain(text.slice(0, 60))}`,
      onclick: () => around.rewind(item),
    },
    "\u21b6",
  );
  replaceChildren(made, ...parts, ...others.map((block) => blockElement(block, around)), midTurn ? "" : rewind);
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** A larger image is only named, in bytes. */
const MAX_PICTURE = 1024 * 1024;

/** An attached file: its name, type and size, and a small image. */
function attachmentElement(name: string, mimeType: string, size: number, around: ItemSurroundings): HTMLElement {
  const made = element(
    "p",
    { class: "attached", "data-testid": "attached" },
    element("span", { class: "chip" }, `${plain(name)} \u00b7 ${plain(mimeType)} \u00b7 ${formatSize(size)}`),
  );
  if (PICTURES.has(mimeType) && size <= MAX_PICTURE)
    void around.picture(name).then((data) => data !== null && made.append(picture(mimeType, data, plain(name))));
  return made;
}

function picture(mimeType: string, data: string, alt: string): HTMLElement {
  const image = element("img", { class: "picture", alt, src: `data:${mimeType};base64,${data}` });
  // What is not an image has its name above.
  image.onerror = () => image.remove();
  return image;
}

/** A content block that is not text. */
function blockElement(block: ContentBlock, around: ItemSurroundings): HTMLElement {
  if ("attachmentId" in block) return attachmentElement(block.attachmentId, block.mimeType, block.size, around);
  if (block.type === "image" && "data" in block && typeof block.data === "string" && PICTURES.has(block.mimeType)) {
    return picture(block.mimeType, block.data, "Image");
  }
  if (block.type === "resource" && "resource" in block) {
    const { uri, mimeType } = block.resource;
    const name = uri.slice(uri.lastIndexOf("/") + 1);
    return element(
      "p",
      { class: "attached", "data-testid": "attached" },
      element("span", { class: "chip" }, `${plain(name)} \u00b7 ${plain(mimeType ?? "file")}`),
    );
  }
  if (block.type === "resource_link" && "uri" in block) {
    return element("p", { class: "chip resource" }, plain(block.name), " ", element("span", { class: "target" }, `(${plain(block.uri)})`));
  }
  return element(
    "p",
    { class: "chat-notice", "data-level": "unsupported" },
    `This page cannot display this content (${plain(block.type || "unnamed")}).`,
  );
}
