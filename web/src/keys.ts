// Keys. Letters work while nothing is being typed; the rest works everywhere. A key that is held down counts once.

import { dialogIsOpen } from "./dialogs";

export interface Actions {
  acceptReview(): void;
  rejectReview(): void;
  acceptHunk(): void;
  rejectHunk(): void;
  step(by: 1 | -1): void;
  edit(): void;
  leave(): void;
  toggleLayout(): void;
  unfold(): void;
  nextReview(by: 1 | -1): void;
  focusList(): void;
  panel(name: "context" | "agents" | "doctor"): void;
  showKeys(): void;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

export function listenToKeys(actions: Actions): void {
  const letters: Record<string, () => void> = {
    A: actions.acceptReview,
    R: actions.rejectReview,
    a: actions.acceptHunk,
    r: actions.rejectHunk,
    n: () => actions.step(1),
    p: () => actions.step(-1),
    e: actions.edit,
    s: actions.toggleLayout,
    u: actions.unfold,
    j: () => actions.nextReview(1),
    k: () => actions.nextReview(-1),
    l: actions.focusList,
    v: () => actions.panel("context"),
    g: () => actions.panel("agents"),
    d: () => actions.panel("doctor"),
    "?": actions.showKeys,
  };
  const everywhere: Record<string, (shift: boolean) => void> = {
    F7: (shift) => actions.step(shift ? -1 : 1),
    F8: (shift) => (shift ? actions.rejectHunk() : actions.acceptHunk()),
  };
  // Before the editor sees them.
  const listen = (event: KeyboardEvent): void => {
    if (dialogIsOpen() || event.isComposing) return;
    const { key } = event;
    const command = event.ctrlKey || event.metaKey;
    let action: (() => void) | undefined;
    if (command && key === "Enter") action = actions.acceptReview;
    else if (command || event.altKey) return;
    else if (everywhere[key]) action = () => everywhere[key]?.(event.shiftKey);
    else if (!isTyping(event.target)) action = key === "Escape" ? actions.leave : letters[key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat || action === letters["n"] || action === letters["p"] || key === "F7") action();
  };
  document.addEventListener("keydown", listen, { capture: true });
  // After the editor, which uses Escape for its own panels.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !dialogIsOpen() && isTyping(event.target)) actions.leave();
  });
}
