// Renders Markdown to elements. Agent output never becomes markup: HTML tags are shown as text.

import type { SyntaxNode } from "@lezer/common";
import { GFM, parser } from "@lezer/markdown";
import { element } from "../dom";
import { plain } from "../format";
import { CodeView } from "./code-view";
import { target } from "./links";
import { appendProse } from "./prose";

const markdown = parser.configure([GFM]);

/** Deeper nesting is shown as text. */
const MAX_DEPTH = 24;

/** Syntax that is not shown. */
const SIGNS = new Set(["EmphasisMark", "CodeMark", "HeaderMark", "QuoteMark", "ListMark", "StrikethroughMark", "LinkMark", "TaskMarker"]);

const ENTITIES: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "\u00a9",
  hellip: "\u2026",
  mdash: "\u2014",
  ndash: "\u2013",
  rarr: "\u2192",
  larr: "\u2190",
  times: "\u00d7",
};

/** Top-level blocks, in order. */
export function blocksOf(text: string): SyntaxNode[] {
  const blocks: SyntaxNode[] = [];
  for (let node = markdown.parse(text).topNode.firstChild; node; node = node.nextSibling) blocks.push(node);
  return blocks;
}

/** Renders a block. The view of a code block is passed to `code`, so that streamed code can be appended to it. */
export function renderBlock(node: SyntaxNode, text: string, code?: (view: CodeView) => void): HTMLElement {
  return block(node, text, 0, code);
}

function block(node: SyntaxNode, text: string, depth: number, code?: (view: CodeView) => void): HTMLElement {
  const { name } = node;
  if (depth > MAX_DEPTH) return literal("p", text.slice(node.from, node.to));
  const heading = /^(?:ATX|Setext)Heading(\d)$/.exec(name);
  // Levels 1 and 2 are the page's own headings.
  if (heading)
    return inlineInto(
      element("p", { class: "heading", role: "heading", "aria-level": Math.min(6, Number(heading[1]) + 2), dir: "auto" }),
      node,
      text,
      depth,
    );
  switch (name) {
    case "Paragraph":
      return inlineInto(element("p", { dir: "auto" }), node, text, depth);
    case "FencedCode":
    case "CodeBlock": {
      const view = codeView(node, text);
      code?.(view);
      return view.element;
    }
    case "Blockquote":
      return children(element("blockquote"), node, text, depth);
    case "BulletList":
      return children(element("ul"), node, text, depth);
    case "OrderedList": {
      const mark = node.firstChild?.getChild("ListMark");
      const start = mark ? Number.parseInt(text.slice(mark.from, mark.to), 10) : 1;
      return children(element("ol", { start: start === 1 || Number.isNaN(start) ? null : start }), node, text, depth);
    }
    case "ListItem":
      return children(element("li", { dir: "auto" }), node, text, depth);
    case "Task": {
      const marker = node.getChild("TaskMarker");
      const done = marker !== null && /x/i.test(text.slice(marker.from, marker.to));
      const sign = element("span", { class: "task", role: "img", "aria-label": done ? "done" : "not done" }, done ? "\u2611" : "\u2610");
      return inlineInto(element("p", { dir: "auto" }, sign), node, text, depth);
    }
    case "HorizontalRule":
      return element("hr");
    case "Table":
      return table(node, text, depth);
    default:
      return literal("p", text.slice(node.from, node.to));
  }
}

function children(parent: HTMLElement, node: SyntaxNode, text: string, depth: number): HTMLElement {
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (!SIGNS.has(child.name)) parent.append(block(child, text, depth + 1));
  }
  return parent;
}

function literal(name: "p" | "span", text: string): HTMLElement {
  const made = element(name, { class: "literal", dir: "auto" });
  appendProse(made, text);
  return made;
}

/** The language and the content of a code block. */
export function codeOf(node: SyntaxNode, text: string): { info: string; code: string } {
  const info = node.getChild("CodeInfo");
  let code = "";
  for (const piece of node.getChildren("CodeText")) code += text.slice(piece.from, piece.to);
  return { info: info ? text.slice(info.from, info.to) : "", code };
}

function codeView(node: SyntaxNode, text: string): CodeView {
  const { info, code } = codeOf(node, text);
  return new CodeView(info, code);
}

function table(node: SyntaxNode, text: string, depth: number): HTMLElement {
  const body = element("tbody");
  const made = element("table", {}, body);
  for (let row = node.firstChild; row; row = row.nextSibling) {
    const isHead = row.name === "TableHeader";
    if (!isHead && row.name !== "TableRow") continue;
    const line = element("tr");
    for (const cell of cells(row)) {
      const place = isHead && cell ? element("th", { scope: "col", dir: "auto" }) : element("td", { dir: "auto" });
      line.append(cell ? inlineInto(place, cell, text, depth) : place);
    }
    if (isHead) body.before(element("thead", {}, line));
    else body.append(line);
  }
  return element("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, made);
}

/** The cells of a row; `null` for an empty cell. */
function cells(row: SyntaxNode): (SyntaxNode | null)[] {
  const found: (SyntaxNode | null)[] = [];
  let current: SyntaxNode | null = null;
  for (let child = row.firstChild; child; child = child.nextSibling) {
    if (child.name === "TableCell") current = child;
    else if (child.name === "TableDelimiter" && child.from > row.from) {
      found.push(current);
      current = null;
    }
  }
  if (current) found.push(current);
  return found;
}

function inlineInto<Made extends HTMLElement>(parent: Made, node: SyntaxNode, text: string, depth: number): Made {
  let end = node.from;
  let isFirst = true;
  const flush = (to: number) => {
    if (to <= end) return;
    const piece = text.slice(end, to);
    appendProse(parent, isFirst ? piece.trimStart() : piece);
    isFirst = false;
  };
  for (let child = node.firstChild; child; child = child.nextSibling) {
    flush(child.from);
    if (!SIGNS.has(child.name)) {
      parent.append(inline(child, text, depth + 1));
      isFirst = false;
    }
    end = child.to;
  }
  flush(node.to);
  return parent;
}

function inline(node: SyntaxNode, text: string, depth: number): Node {
  const whole = text.slice(node.from, node.to);
  if (depth > MAX_DEPTH) return literal("span", whole);
  switch (node.name) {
    case "Emphasis":
      return inlineInto(element("em"), node, text, depth);
    case "StrongEmphasis":
      return inlineInto(element("strong"), node, text, depth);
    case "Strikethrough":
      return inlineInto(element("s"), node, text, depth);
    case "InlineCode": {
      const made = element("code");
      const inner = whole.replace(/^`+|`+$/g, "").replace(/\n/g, " ");
      appendProse(made, /^ .*[^ ].* $/.test(inner) ? inner.slice(1, -1) : inner);
      return made;
    }
    case "Link":
    case "Image":
      return link(node, text, depth);
    case "Autolink":
      return webLink(whole.slice(1, -1), (made) => appendProse(made, whole.slice(1, -1)), false);
    case "URL":
      return webLink(whole, (made) => appendProse(made, whole), false);
    case "HardBreak":
      return element("br");
    case "Escape":
      return document.createTextNode(whole.slice(1));
    case "Entity":
      return literal("span", entity(whole));
    default:
      return literal("span", whole);
  }
}

function entity(written: string): string {
  const number = /^&#(?:x([0-9a-f]{1,6})|(\d{1,7}));$/i.exec(written);
  if (!number) return ENTITIES[written.slice(1, -1)] ?? written;
  const code = number[1] ? Number.parseInt(number[1], 16) : Number.parseInt(number[2] ?? "", 10);
  return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "\ufffd";
}

function link(node: SyntaxNode, text: string, depth: number): Node {
  const url = node.getChild("URL");
  const marks = node.getChildren("LinkMark");
  const close = marks[1];
  if (!url || !close) return literal("span", text.slice(node.from, node.to));
  const open = marks[0]?.to ?? node.from;
  const label = (made: HTMLElement) => {
    if (node.name === "Image") {
      // Never load remote images: an agent could use them to send data out.
      appendProse(made, `picture: ${text.slice(open, close.from) || "without a name"}`);
      return;
    }
    let end = open;
    for (let child = node.firstChild; child && child.from < close.from; child = child.nextSibling) {
      if (child.name === "LinkMark") continue;
      appendProse(made, text.slice(end, child.from));
      made.append(inline(child, text, depth + 1));
      end = child.to;
    }
    appendProse(made, text.slice(end, close.from));
  };
  return webLink(text.slice(url.from, url.to).replace(/^<|>$/g, ""), label, true);
}

/** A link, or its text and target if it is not allowed. */
function webLink(written: string, label: (made: HTMLElement) => void, showTarget: boolean): Node {
  const address = written.includes("@") && !/^[a-z][a-z0-9+.-]*:/i.test(written) ? `mailto:${written}` : written;
  const allowed = target(address);
  const made = element("span", { class: allowed ? null : "no-link", "data-testid": allowed ? null : "no-link" });
  if (!allowed) {
    label(made);
    if (showTarget) made.append(" ", element("span", { class: "target" }, `(${plain(written)})`));
    return made;
  }
  const anchor = element("a", { href: allowed.href, target: "_blank", rel: "noopener noreferrer", title: plain(allowed.href) });
  label(anchor);
  made.append(anchor);
  if (showTarget && anchor.textContent !== written) made.append(" ", element("span", { class: "target" }, `(${plain(allowed.shown)})`));
  return made;
}
