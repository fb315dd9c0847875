// The words that differ inside of a changed part.

import { type Change, presentableDiff } from "@codemirror/merge";
import type { Text } from "@codemirror/state";
import type { PlacedHunk } from "./hunks";

/** Beyond this, marking words costs more than it shows. */
const LONGEST = 20_000;
const MOST_KNOWN = 400;

const known = new Map<string, readonly Change[]>();

/** The changes from the base to the draft, relative to the beginning of each; none where they would only be noise. */
export function wordChanges(placed: PlacedHunk, base: Text, draft: Text): readonly Change[] {
  const { hunk } = placed;
  if (hunk.state === "rejected" || hunk.base.count === 0 || hunk.draft.count === 0) return [];
  const lengthBefore = placed.base.to - placed.base.from;
  const lengthAfter = placed.draft.to - placed.draft.from;
  if (lengthBefore + lengthAfter > LONGEST) return [];
  const before = base.sliceString(placed.base.from, placed.base.to);
  const after = draft.sliceString(placed.draft.from, placed.draft.to);
  const key = `${before}\u0000${after}`;
  let changes = known.get(key);
  if (!changes) {
    changes = presentableDiff(before, after, { scanLimit: 1000, timeout: 20 });
    const changed = changes.reduce((sum, change) => sum + change.toA - change.fromA + change.toB - change.fromB, 0);
    if (changed > (before.length + after.length) * 0.75) changes = [];
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, changes);
  }
  return changes;
}
