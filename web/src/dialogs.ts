// Confirmations and the list of shortcuts, as native dialogs, which trap and restore the focus.

import { element } from "./dom";

function show(dialog: HTMLDialogElement): void {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
}

/** Shortcuts are off while a dialog is open. */
export function dialogIsOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

/** `false` on Escape and Cancel. */
export function confirmation(title: string, sentence: string, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-labelledby": "question-title", "data-testid": "question" });
    const close = (answer: string) => () => dialog.close(answer);
    dialog.append(
      element("h2", { id: "question-title" }, title),
      element("p", {}, sentence),
      element(
        "div",
        { class: "dialog-buttons" },
        element(
          "button",
          { type: "button", class: "quiet", "data-testid": "question-no", autofocus: true, onclick: close("no") },
          "Cancel",
        ),
        element("button", { type: "button", class: "primary", "data-testid": "question-yes", onclick: close("yes") }, yes),
      ),
    );
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
    show(dialog);
  });
}

/** Asks for a line of text; `null` if cancelled. */
export function askText(title: string, label: string, value: string, yes: string): Promise<string | null> {
  return new Promise((resolve) => {
    const field = element("input", {
      type: "text",
      value,
      "aria-label": label,
      autofocus: true,
      maxlength: 200,
      "data-testid": "question-text",
    });
    const dialog = element(
      "dialog",
      { "aria-labelledby": "question-title", "data-testid": "question" },
      element("h2", { id: "question-title" }, title),
      field,
      element(
        "div",
        { class: "dialog-buttons" },
        element("button", { type: "button", class: "quiet", "data-testid": "question-no", onclick: () => dialog.close("no") }, "Cancel"),
        element("button", { type: "button", class: "primary", "data-testid": "question-yes", onclick: () => dialog.close("yes") }, yes),
      ),
    );
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      // Otherwise the button that gets the focus next would receive the key too.
      event.preventDefault();
      dialog.close("yes");
    });
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? field.value.trim() : null));
    show(dialog);
    field.select();
  });
}

const KEYS: readonly [string, readonly [string, string][]][] = [
  [
    "This change",
    [
      ["A", "Accept the change"],
      ["R", "Reject the change"],
      ["e", "Edit the draft"],
      ["Esc", "Leave the editor"],
      ["s", "Toggle side-by-side and unified"],
      ["u", "Show all unchanged lines"],
    ],
  ],
  [
    "Hunks",
    [
      ["n  p", "Next / previous hunk"],
      ["a", "Accept the hunk"],
      ["r", "Reject the hunk"],
    ],
  ],
  [
    "All changes",
    [
      ["j  k", "Next / previous change"],
      ["l", "Go to the list"],
      ["c  Alt C", "Switch between chat and reviews"],
      ["v", "What agents see"],
      ["g", "Agents"],
      ["d", "Doctor"],
      ["?", "Keyboard shortcuts"],
    ],
  ],
  [
    "While editing",
    [
      ["F7  Shift F7", "Next / previous hunk"],
      ["F8  Shift F8", "Accept / reject the hunk"],
      ["Ctrl Enter", "Accept the change"],
      ["Ctrl F", "Find"],
      ["Ctrl Z", "Undo"],
    ],
  ],
  [
    "Chat",
    [
      ["i", "Go to the message box"],
      ["Enter  Shift Enter", "Send / new line"],
      ["Esc", "Cancel the turn / leave the message box"],
      ["Alt S", "Attach the editor selection"],
      ["1  Alt 1", "Choose the first option, and so on"],
      ["/  @", "Commands / files"],
    ],
  ],
];

export function showKeys(): void {
  if (dialogIsOpen()) return;
  const keys = (text: string) =>
    text.split(/ {2}/).flatMap((combination, index) => [index > 0 ? " " : "", element("kbd", {}, combination.replace(" ", "+"))]);
  const dialog = element("dialog", { class: "keys", "aria-labelledby": "keys-title", "data-testid": "keys" });
  dialog.append(
    element("h2", { id: "keys-title" }, "Keyboard shortcuts"),
    element(
      "div",
      { class: "key-groups" },
      ...KEYS.map(([title, rows]) =>
        element(
          "section",
          {},
          element("h3", {}, title),
          element(
            "dl",
            {},
            ...rows.map(([key, meaning]) => element("div", {}, element("dt", {}, ...keys(key)), element("dd", {}, meaning))),
          ),
        ),
      ),
    ),
    element(
      "div",
      { class: "dialog-buttons" },
      element("button", { type: "button", class: "quiet", autofocus: true, onclick: () => dialog.close() }, "Close"),
    ),
  );
  show(dialog);
}
