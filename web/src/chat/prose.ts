// Agent output as text, with marks for invisible and directional characters, as in reviews.

import { markFor } from "../editor/special";
import { SPECIAL } from "../special-characters";

/** Characters after which a joiner is legitimate: in emoji sequences and in scripts that need joiners. */
const BEFORE_JOINER =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points are matched
  /[\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}\ufe0f\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Malayalam}\p{Script=Kannada}\p{Script=Telugu}\p{Script=Sinhala}\p{M}]/u;

function isInnocent(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if ((code !== 0x200d && code !== 0x200c) || index + 1 >= text.length) return false;
  // The last code point of the last two code units.
  return BEFORE_JOINER.test(Array.from(text.slice(Math.max(0, index - 2), index)).at(-1) ?? "");
}

export function appendProse(parent: Node, text: string): void {
  let end = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (isInnocent(text, match.index)) continue;
    if (match.index > end) parent.appendChild(document.createTextNode(text.slice(end, match.index)));
    parent.appendChild(markFor(match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) parent.appendChild(document.createTextNode(text.slice(end)));
}

/** Removes terminal escape sequences. */
export function withoutEscapes(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are escape sequences
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r\n/g, "\n");
}
