// Visible marks for invisible characters, and for characters that change how others are shown.

import { nameOf, SPECIAL } from "../special-characters";

function isDirectional(code: number): boolean {
  return code === 0x061c || code === 0x200e || code === 0x200f || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

export function markFor(character: string): HTMLElement {
  const code = character.codePointAt(0) ?? 0;
  const mark = document.createElement("span");
  const name = nameOf(character);
  const kind = code === 0x0d ? "return" : isDirectional(code) ? "direction" : "control";
  mark.className = `special special-${kind}`;
  mark.textContent = name;
  mark.title = code === 0x0d ? "Carriage return (CR)" : `Invisible character ${name}`;
  mark.setAttribute("aria-label", code === 0x0d ? "carriage return" : `invisible character ${name}`);
  mark.setAttribute("role", "img");
  return mark;
}

/** Appends text, with marks for its special characters. */
export function appendVisibly(parent: Node, text: string): void {
  let end = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (match.index > end) parent.appendChild(document.createTextNode(text.slice(end, match.index)));
    parent.appendChild(markFor(match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) parent.appendChild(document.createTextNode(text.slice(end)));
}
