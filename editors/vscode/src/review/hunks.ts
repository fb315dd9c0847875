// What can be done with a hunk, in words.

import type { Hunk, HunkAction, HunkState } from "../protocol";

export interface Choice {
  readonly title: string;
  readonly decision: HunkAction;
}

const ACCEPT: Choice = { title: "Accept hunk", decision: "accept" };
const REJECT: Choice = { title: "Reject hunk", decision: "reject" };
const CHOICES: Record<HunkState, readonly Choice[]> = {
  accepted: [REJECT],
  rejected: [ACCEPT],
  edited: [ACCEPT, REJECT],
  conflict: [
    { title: "Keep mine", decision: "keep" },
    { title: "Use the agent\u2019s version", decision: "accept" },
    { title: "Use the file\u2019s version", decision: "reject" },
  ],
};

export function choices({ state, yours }: Hunk): readonly Choice[] {
  return yours && state !== "conflict" ? [{ title: "Undo your edit", decision: "reject" }] : CHOICES[state];
}

export function stateLabel({ state, yours }: Hunk): string {
  if (state === "conflict") return "Conflict: the file also changed here";
  if (yours) return "Your edit";
  return `${state[0]?.toUpperCase()}${state.slice(1)}`;
}
