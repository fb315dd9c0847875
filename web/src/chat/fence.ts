// Code blocks that are still being streamed: added text is appended without parsing the whole block again.

export interface OpenFence {
  /** Where the code starts in the text. */
  readonly start: number;
  readonly marker: string;
}

const OPENING = /^(`{3,}|~{3,})([^\n]*)\n/;

/** The fence that opens a block, if it is not indented and its line is complete. */
export function openingFence(block: string, offset: number): OpenFence | null {
  const match = OPENING.exec(block);
  if (!match || (match[1]?.startsWith("`") && match[2]?.includes("`"))) return null;
  return { start: offset + match[0].length, marker: match[1] ?? "" };
}

/** Whether a line that changed after `from` may be a closing fence. */
export function maybeClosed(text: string, { start, marker }: OpenFence, from: number): boolean {
  const lineStart = Math.max(start, text.lastIndexOf("\n", from - 1) + 1);
  const added = text.slice(lineStart);
  if (!added.includes(marker[0] ?? "`")) return false;
  const closing = new RegExp(`^ {0,3}\\${marker[0]}{${marker.length},}[ \\t]*$`, "m");
  return closing.test(added);
}
