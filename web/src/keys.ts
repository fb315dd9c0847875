// Keyboard shortcuts. Letters work outside of text fields, the others everywhere. Key repeat is ignored, except for stepping.

import { dialogIsOpen } from "./dialogs";

/** What shortcuts do in a chat. */
export interface ChatActions {
  leave(): void;
  focusMessageBox(): void;
  attach(): void;
  answer(option: number): void;
}

export interface Actions extends ChatActions {
  acceptReview(): void;
  rejectReview(): void;
  acceptHunk(): void;
  rejectHunk(): void;
  step(by: 1 | -1): void;
  edit(): void;
  toggleLayout(): void;
  unfold(): void;
  nextReview(by: 1 | -1): void;
  focusList(): void;
  panel(name: "context" | "agents" | "doctor"): void;
  showKeys(): void;
  /** In the chat no key decides a review, because it is not visible. */
  isChat(): boolean;
  toggleView(): void;
}

type Shortcut = (() => void) | undefined;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "radio" && target.type !== "checkbox";
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

function chatLetters({ focusMessageBox, attach, answer }: ChatActions): Record<string, () => void> {
  const letters: Record<string, () => void> = { i: focusMessageBox, e: focusMessageBox, s: attach };
  for (let number = 1; number <= 9; number++) letters[String(number)] = () => answer(number - 1);
  return letters;
}

/** Alt shortcuts also work while typing. By key code, because Alt changes the letter on some keyboards. */
function chatAlt(code: string, { attach, answer }: ChatActions): Shortcut {
  if (code === "KeyS") return attach;
  const digit = /^Digit([1-9])$/.exec(code)?.[1];
  return digit === undefined ? undefined : () => answer(Number(digit) - 1);
}

function isCommand(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey;
}

/** The shortcuts of a chat that is alone in its window. */
export function listenToChatKeys(actions: ChatActions): void {
  const letters = chatLetters(actions);
  listen(
    (event) => {
      if (event.altKey && !isCommand(event)) return chatAlt(event.code, actions);
      if (isCommand(event) || isTyping(event.target)) return undefined;
      return event.key === "Escape" ? actions.leave : letters[event.key];
    },
    () => false,
    actions.leave,
  );
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
    ...chatLetters(actions),
    c: actions.toggleView,
    v: () => actions.panel("context"),
    g: () => actions.panel("agents"),
    d: () => actions.panel("doctor"),
    "?": actions.showKeys,
  };
  const withAlt = (code: string): Shortcut => {
    if (code === "KeyC") return actions.toggleView;
    return actions.isChat() ? chatAlt(code, actions) : undefined;
  };
  const everywhere: Record<string, (shift: boolean) => void> = {
    F7: (shift) => actions.step(shift ? -1 : 1),
    F8: (shift) => (shift ? actions.rejectHunk() : actions.acceptHunk()),
  };
  const find = (event: KeyboardEvent): Shortcut => {
    const { key } = event;
    const command = isCommand(event);
    if (event.altKey && !command) return withAlt(event.code);
    if (actions.isChat()) {
      if (command || isTyping(event.target)) return undefined;
      return key === "Escape" ? actions.leave : inChat[key];
    }
    if (command && key === "Enter") return actions.acceptReview;
    if (command) return undefined;
    if (everywhere[key]) return () => everywhere[key]?.(event.shiftKey);
    if (isTyping(event.target)) return undefined;
    return key === "Escape" ? actions.leave : letters[key];
  };
  const mayRepeat = (key: string, action: Shortcut) => action === letters["n"] || action === letters["p"] || key === "F7";
  listen(find, mayRepeat, actions.leave);
}

function listen(find: (event: KeyboardEvent) => Shortcut, mayRepeat: (key: string, action: Shortcut) => boolean, leave: () => void): void {
  // Capture: before the editor handles them.
  const handle = (event: KeyboardEvent): void => {
    if (dialogIsOpen() || event.isComposing) return;
    const action = find(event);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat || mayRepeat(event.key, action)) action();
  };
  document.addEventListener("keydown", handle, { capture: true });
  // Bubble: after the editor, which uses Escape for its own panels.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !dialogIsOpen() && isTyping(event.target)) leave();
  });
}
