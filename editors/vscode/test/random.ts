// Deterministic random numbers and texts.

export type Random = (below: number) => number;

export function numbers(seed: number): Random {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/** Everything that an editor loses easily: line endings of all kinds, byte order marks, NUL, characters beyond the basic plane. */
const PIECES = ["a", "bc", "word ", "\n", "\r\n", "\r", "\n\n", "\ufeff", "\0", "\u{1f600}", "\u2028", "é"];

export function randomText(random: Random, pieces: number): string {
  let text = random(3) === 0 ? "\ufeff" : "";
  for (let left = random(pieces + 1); left > 0; left -= 1) text += PIECES[random(PIECES.length)];
  return text;
}
