// The words that differ within a hunk.

import { Change, presentableDiff } from "@codemirror/merge";
import type { Text } from "@codemirror/state";
import type { PlacedHunk } from "./hunks";

/** Above this, marking words costs more than it shows. */
const MAX_COMPARED_CHARS = 20_000;
const MAX_CACHED = 400;

const cache = new Map<string, readonly Change[]>();

/** Changes from the base to the draft, relative to the start of each; none where they would only be noise. */
export function wordChanges(placed: PlacedHunk, base: Text, draft: Text): readonly Change[] {
  const { hunk } = placed;
  if (hunk.state === "rejected" || hunk.base.count === 0 || hunk.draft.count === 0) return [];
  const lengthBefore = placed.base.to - placed.base.from;
  const lengthAfter = placed.draft.to - placed.draft.from;
  if (lengthBefore + lengthAfter > MAX_COMPARED_CHARS) return [];
  const before = base.sliceString(placed.base.from, placed.base.to);
  const after = draft.sliceString(placed.draft.from, placed.draft.to);
  const key = `${before}\u0000${after}`;
  let changes = cache.get(key);
  if (!changes) {
    changes = wholeWords(presentableDiff(before, after, { scanLimit: 1000, timeout: 20 }), before, after);
    const changed = changes.reduce((sum, change) => sum + change.toA - change.fromA + change.toB - change.fromB, 0);
    if (changed > (before.length + after.length) * 0.75) changes = [];
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(key, changes);
  }
  return changes;
}

/** Letters, digits, combining marks and underscores. Halves of surrogate pairs too, so that no pair is split. */
const WORD = /[\p{L}\p{M}\p{N}\p{Cs}_]/u;

function isInsideWord(text: string, position: number): boolean {
  return WORD.test(text.charAt(position - 1)) && WORD.test(text.charAt(position));
}

/** Extends changes to the ends of the words that they touch, and joins those that then meet in one word. */
function wholeWords(changes: readonly Change[], before: string, after: string): Change[] {
  const isInside = (inBefore: number, inAfter: number) => isInsideWord(before, inBefore) || isInsideWord(after, inAfter);
  const result: Change[] = [];
  changes.forEach(({ fromA, toA, fromB, toB }, index) => {
    // The text between two changes is the same on both sides.
    const start = result.at(-1)?.toA ?? 0;
    while (fromA > start && isInside(fromA, fromB)) {
      fromA--;
      fromB--;
    }
    const end = changes[index + 1]?.fromA ?? before.length;
    while (toA < end && isInside(toA, toB)) {
      toA++;
      toB++;
    }
    const previous = result.at(-1);
    if (previous && previous.toA === fromA && isInside(fromA, fromB)) {
      result[result.length - 1] = new Change(previous.fromA, toA, previous.fromB, toB);
    } else {
      result.push(new Change(fromA, toA, fromB, toB));
    }
  });
  return result;
}
