// A block of code that is still being written: what is added goes to its end without looking at the whole again.

export interface OpenFence {
  /** Where the code begins in the text. */
  readonly start: number;
  readonly marker: string;
}

const OPENING = /^(`{3,}|~{3,})([^\n]*)\n/;

/** The fence that a block begins with, if it begins at the edge and its first line is whole. */
export function openingFence(block: string, offset: number): OpenFence | null {
  const match = OPENING.exec(block);
  if (!match || (match[1]?.startsWith("`") && match[2]?.includes("`"))) return null;
  return { start: offset + match[0].length, marker: match[1] ?? "" };
}

/** Whether there may be a closing fence in the lines that are touched by what was added after `from`. */
export function maybeClosed(text: string, { start, marker }: OpenFence, from: number): boolean {
  const lineStart = Math.max(start, text.lastIndexOf("\n", from - 1) + 1);
  const added = text.slice(lineStart);
  if (!added.includes(marker[0] ?? "`")) return false;
  const closing = new RegExp(`^ {0,3}\\${marker[0]}{${marker.length},}[ \\t]*$`, "m");
  return closing.test(added);
}
