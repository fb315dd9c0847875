// Keyboard shortcuts. Letters work outside of text fields, the others everywhere. Key repeat is ignored, except for stepping.

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
  /** In the chat no key decides a review, because it is not visible. */
  isChat(): boolean;
  toggleView(): void;
  focusMessageBox(): void;
  attach(): void;
  answer(option: number): void;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "radio" && target.type !== "checkbox";
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
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
    c: actions.toggleView,
    "?": actions.showKeys,
  };
  const inChat: Record<string, () => void> = {
    i: actions.focusMessageBox,
    e: actions.focusMessageBox,
    s: actions.attach,
    c: actions.toggleView,
    v: () => actions.panel("context"),
    g: () => actions.panel("agents"),
    d: () => actions.panel("doctor"),
    "?": actions.showKeys,
  };
  for (let number = 1; number <= 9; number++) inChat[String(number)] = () => actions.answer(number - 1);
  /** Alt shortcuts also work while typing. By key code, because Alt changes the letter on some keyboards. */
  const withAlt = (code: string): (() => void) | undefined => {
    if (code === "KeyC") return actions.toggleView;
    if (!actions.isChat()) return undefined;
    if (code === "KeyS") return actions.attach;
    const digit = /^Digit([1-9])$/.exec(code)?.[1];
    return digit === undefined ? undefined : () => actions.answer(Number(digit) - 1);
  };
  const everywhere: Record<string, (shift: boolean) => void> = {
    F7: (shift) => actions.step(shift ? -1 : 1),
    F8: (shift) => (shift ? actions.rejectHunk() : actions.acceptHunk()),
  };
  // Capture: before the editor handles them.
  const listen = (event: KeyboardEvent): void => {
    if (dialogIsOpen() || event.isComposing) return;
    const { key } = event;
    const command = event.ctrlKey || event.metaKey;
    let action: (() => void) | undefined;
    if (event.altKey && !command) action = withAlt(event.code);
    else if (actions.isChat()) {
      if (command || isTyping(event.target)) return;
      action = key === "Escape" ? actions.leave : inChat[key];
    } else if (command && key === "Enter") action = actions.acceptReview;
    else if (command || event.altKey) return;
    else if (everywhere[key]) action = () => everywhere[key]?.(event.shiftKey);
    else if (!isTyping(event.target)) action = key === "Escape" ? actions.leave : letters[key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat || action === letters["n"] || action === letters["p"] || key === "F7") action();
  };
  document.addEventListener("keydown", listen, { capture: true });
  // Bubble: after the editor, which uses Escape for its own panels.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !dialogIsOpen() && isTyping(event.target)) actions.leave();
  });
}
