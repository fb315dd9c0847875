// Invisible characters, and characters that change how others are shown, with their names.

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

function isSpecial(character: string): boolean {
  SPECIAL.lastIndex = 0;
  return SPECIAL.test(character);
}

export function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Prevents spoofed names: invisible and directional characters are replaced by their names. */
export function plain(text: string): string {
  let result = "";
  for (const character of text) result += isSpecial(character) ? `\u2039${nameOf(character)}\u203a` : character;
  return result;
}
