// A document as VS Code has it: no byte order mark, lines without their endings, edits by line and character.

import type { Position, Replacement } from "../src/text";
import type { Random } from "./random";
import { randomText } from "./random";

export class Document {
  lines: string[];
  version = 1;

  constructor(content: string) {
    this.lines = content.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  }

  get text(): string {
    return this.lines.join("\n");
  }

  apply({ start, end, text }: Replacement): void {
    const first = this.lines[start.line] as string;
    const last = this.lines[end.line] as string;
    const middle = (first.slice(0, start.character) + text + last.slice(end.character)).split(/\r\n|\r|\n/);
    this.lines.splice(start.line, end.line - start.line + 1, ...middle);
    this.version += 1;
  }

  randomPosition(random: Random): Position {
    const line = random(this.lines.length);
    return { line, character: random((this.lines[line] as string).length + 1) };
  }

  randomEdit(random: Random): Replacement {
    const one = this.randomPosition(random);
    // Mostly small: large deletions leave nothing to test.
    const other = random(4) === 0 ? this.randomPosition(random) : one;
    const [start, end] = isBefore(other, one) ? [other, one] : [one, other];
    return { start, end, text: random(4) === 0 ? "" : randomText(random, 3) };
  }
}

function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character < other.character);
}
