// Invisible characters, and characters that change how others are shown. Each gets a visible mark with its name.

const NAMES: Record<number, string> = {
  0x00: "NUL",
  0x07: "BEL",
  0x08: "BS",
  0x0b: "VT",
  0x0c: "FF",
  0x0d: "CR",
  0x1b: "ESC",
  0x7f: "DEL",
  0x85: "NEL",
  0xad: "SHY",
  0x061c: "ALM",
  0x180e: "MVS",
  0x200b: "ZWSP",
  0x200c: "ZWNJ",
  0x200d: "ZWJ",
  0x200e: "LRM",
  0x200f: "RLM",
  0x2028: "LS",
  0x2029: "PS",
  0x202a: "LRE",
  0x202b: "RLE",
  0x202c: "PDF",
  0x202d: "LRO",
  0x202e: "RLO",
  0x2060: "WJ",
  0x2066: "LRI",
  0x2067: "RLI",
  0x2068: "FSI",
  0x2069: "PDI",
  0xfeff: "BOM",
};

/** Controls except tab and line feed; soft hyphen; zero-width, directional and separator characters; tags; annotations. */
export const SPECIAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points are matched
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffc]|\udb40[\udc00-\udc7f]/g;

export function isSpecial(character: string): boolean {
  SPECIAL.lastIndex = 0;
  return SPECIAL.test(character);
}

export function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

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
