// The list of pending changes, by agent. Updates reuse the rows, so nothing jumps and the focus stays.

import { element } from "./dom";
import { age, agentLabel, count, plain, splitPath } from "./format";
import type { ReviewSummary } from "./protocol";

export interface ListListener {
  open(review: number): void;
  acceptAll(session: string): void;
  rejectAll(session: string): void;
}

interface Row {
  readonly element: HTMLLIElement;
  readonly button: HTMLButtonElement;
  readonly size: HTMLElement;
  readonly age: HTMLElement;
  readonly state: HTMLElement;
  opened: number;
}

interface Group {
  readonly element: HTMLElement;
  readonly list: HTMLUListElement;
  readonly count: HTMLElement;
  readonly name: string;
}

export class ListView {
  private readonly groups = new Map<string, Group>();
  private readonly rows = new Map<number, Row>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly empty: HTMLElement,
    private readonly listener: ListListener,
  ) {
    window.setInterval(() => this.showAges(), 5000);
  }

  show(reviews: readonly ReviewSummary[], open: number | null, folders: readonly string[]): void {
    const ids = new Set(reviews.map((review) => review.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      // Keep the focus in the list.
      if (row.element.contains(document.activeElement)) this.focusBeside(row);
      row.element.remove();
      this.rows.delete(id);
    }
    for (const review of reviews) {
      const group = this.group(review);
      const row = this.row(review, group, folders);
      row.button.setAttribute("aria-current", String(review.id === open));
      row.size.replaceChildren(
        element("span", { class: "plus" }, `+${review.size.added.toLocaleString("en")}`),
        " ",
        element("span", { class: "minus" }, `\u2212${review.size.removed.toLocaleString("en")}`),
      );
      const conflicts = review.conflicts ?? 0;
      const state = conflicts > 0 ? "conflict" : review.edited ? "edited" : review.newFile ? "new" : "";
      row.state.textContent = state;
      row.state.dataset["state"] = state;
    }
    for (const [session, group] of this.groups) {
      const number = reviews.filter((review) => review.session === session).length;
      group.count.textContent = String(number);
      group.element.dataset["count"] = String(number);
      if (number > 0) continue;
      group.element.remove();
      this.groups.delete(session);
    }
    this.empty.hidden = reviews.length > 0;
    this.showAges();
  }

  focus(review: number | null): void {
    const row = review === null ? undefined : this.rows.get(review);
    (row ?? this.rows.values().next().value)?.button.focus();
  }

  private focusBeside(row: Row): void {
    const buttons = [...this.parent.querySelectorAll<HTMLButtonElement>(".row")];
    const index = buttons.indexOf(row.button);
    (buttons[index + 1] ?? buttons[index - 1])?.focus();
  }

  private group(review: ReviewSummary): Group {
    const known = this.groups.get(review.session);
    if (known) return known;
    const name = plain(agentLabel(review.agent, review.agentVersion));
    const number = element("span", { class: "badge" });
    const list = element("ul", { class: "rows" });
    const all = (testId: string, text: string, label: string, action: () => void) =>
      element(
        "button",
        { type: "button", class: "quiet small", "data-testid": testId, "aria-label": label, title: label, onclick: action },
        text,
      );
    const made = element(
      "section",
      { class: "group", "data-testid": "agent-group", "data-session": review.session, "aria-label": `Changes by ${name}` },
      element(
        "header",
        {},
        element("h3", {}, name),
        number,
        element(
          "div",
          { class: "group-actions" },
          all("accept-all", "Accept all", `Accept all changes by ${name}`, () => this.listener.acceptAll(review.session)),
          all("reject-all", "Reject all", `Reject all changes by ${name}`, () => this.listener.rejectAll(review.session)),
        ),
      ),
      list,
    );
    const group = { element: made, list, count: number, name };
    this.groups.set(review.session, group);
    this.parent.append(made);
    return group;
  }

  private row(review: ReviewSummary, group: Group, folders: readonly string[]): Row {
    const known = this.rows.get(review.id);
    if (known) return known;
    const { folder, name } = splitPath(review.path, folders);
    const size = element("span", { class: "size" });
    const waits = element("span", { class: "age" });
    const state = element("span", { class: "row-state" });
    const button = element(
      "button",
      {
        type: "button",
        class: "row",
        "data-testid": "review-row",
        "data-review": review.id,
        title: plain(review.path),
        onclick: () => this.listener.open(review.id),
      },
      element("span", { class: "row-name" }, name),
      state,
      waits,
      element("span", { class: "row-folder" }, folder || "\u00a0"),
      size,
    );
    const made = { element: element("li", {}, button), button, size, age: waits, state, opened: review.opened };
    this.rows.set(review.id, made);
    group.list.append(made.element);
    return made;
  }

  private showAges(): void {
    for (const row of this.rows.values()) {
      const text = age(row.opened);
      if (row.age.textContent !== text) row.age.textContent = text;
    }
  }
}

/** The confirmation before all changes by an agent are decided. */
export function allQuestion(
  reviews: readonly ReviewSummary[],
  verb: "Accept" | "Reject",
): { title: string; sentence: string; yes: string } {
  const names = reviews.slice(0, 5).map((review) => splitPath(review.path, []).name);
  const rest = reviews.length - names.length;
  const list = names.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  const changes = count(reviews.length, "change");
  return {
    title: `${verb} ${changes} by ${plain(reviews[0] ? agentLabel(reviews[0].agent, reviews[0].agentVersion) : "")}?`,
    sentence: `${list}. ${verb === "Accept" ? "Each is accepted as shown, including your edits." : "Nothing will be written."}`,
    yes: `${verb} ${changes}`,
  };
}
