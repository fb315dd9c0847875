// The completion list: commands after `/`, files after `@`.

import { announce, element, replaceChildren } from "../dom";
import { count, plain } from "../format";

export interface Suggestion {
  readonly insert: string;
  readonly label: string;
  readonly about: string;
}

/** The word being completed: `from` to the cursor. */
export interface Wanted {
  readonly kind: "command" | "file";
  readonly from: number;
  readonly to: number;
  readonly word: string;
}

const MAX_SUGGESTIONS = 50;

/** The word at the cursor, if it can be completed. */
export function wantedAt(text: string, cursor: number): Wanted | null {
  const before = text.slice(0, cursor);
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command) return { kind: "command", from: 0, to: cursor, word: command[1] ?? "" };
  const file = /(?:^|[\s(])@([^\s@]*)$/.exec(before);
  if (!file) return null;
  const word = file[1] ?? "";
  return { kind: "file", from: cursor - word.length - 1, to: cursor, word };
}

/** Matches, best first: a match at the start is better than one in the middle. */
export function matching(all: readonly Suggestion[], word: string): Suggestion[] {
  const wanted = word.toLowerCase();
  const rank = ({ label }: Suggestion) => {
    const name = label.toLowerCase();
    if (name.startsWith(wanted)) return 0;
    const last = name.slice(name.lastIndexOf("/") + 1);
    if (last.startsWith(wanted)) return 1;
    return name.includes(wanted) ? 2 : 3;
  };
  return all
    .map((suggestion, index) => ({ suggestion, index, rank: rank(suggestion) }))
    .filter(({ rank: found }) => found < 3)
    .sort((one, other) => one.rank - other.rank || one.index - other.index)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ suggestion }) => suggestion);
}

export class CompletionList {
  readonly element = element("ul", {
    class: "completion",
    id: "completion",
    role: "listbox",
    "aria-label": "Completions",
    "data-testid": "completion",
    hidden: true,
  });
  private shown: readonly Suggestion[] = [];
  private current = 0;

  constructor(
    private readonly field: HTMLTextAreaElement,
    private readonly chosen: (suggestion: Suggestion) => void,
  ) {}

  get isOpen(): boolean {
    return !this.element.hidden;
  }

  show(suggestions: readonly Suggestion[]): void {
    if (suggestions.length === 0) {
      this.close();
      return;
    }
    if (!this.isOpen) announce(`${count(suggestions.length, "completion")}; use the arrow keys and Enter.`);
    this.shown = suggestions;
    this.current = 0;
    this.element.hidden = false;
    replaceChildren(
      this.element,
      ...suggestions.map((suggestion, index) =>
        element(
          "li",
          {
            role: "option",
            id: `completion-${index}`,
            "data-testid": "completion-item",
            // On mousedown, before the field loses the focus.
            onmousedown: (event: MouseEvent) => {
              event.preventDefault();
              this.chosen(suggestion);
            },
          },
          element("span", { class: "name" }, plain(suggestion.label)),
          element("span", { class: "detail" }, plain(suggestion.about)),
        ),
      ),
    );
    this.mark();
  }

  close(): void {
    this.element.hidden = true;
    this.shown = [];
    this.field.removeAttribute("aria-activedescendant");
  }

  /** Returns whether the list handled the key. */
  key(event: KeyboardEvent): boolean {
    if (!this.isOpen || event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = this.shown[this.current];
    if (step !== undefined) {
      this.current = (this.current + step + this.shown.length) % this.shown.length;
      this.mark();
    } else if ((event.key === "Enter" && !event.shiftKey) || (event.key === "Tab" && !event.shiftKey)) {
      if (chosen) this.chosen(chosen);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private mark(): void {
    for (const [index, row] of [...this.element.children].entries()) row.setAttribute("aria-selected", String(index === this.current));
    this.field.setAttribute("aria-activedescendant", `completion-${this.current}`);
    this.element.children[this.current]?.scrollIntoView({ block: "nearest" });
  }
}
