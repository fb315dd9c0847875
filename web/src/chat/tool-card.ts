// The card of a tool call: its status and files, and, collapsed, its diffs, input and output.

import { element, replaceChildren } from "../dom";
import { appendVisibly } from "../editor/special";
import { plain, splitPath } from "../format";
import type { Requester } from "../protocol";
import { AnswerForm, type Answers, isRejected, showOutcome } from "./answer-form";
import { type Difference, DiffView } from "./diff-view";
import { Memo } from "./memo";
import { withoutEscapes } from "./prose";
import type { ContentBlock, Decision, PendingReview, ToolCall } from "./protocol";
import { type Approval, type Item, STOPPED } from "./transcript";

type ToolItem = Item & { readonly kind: "tool" };

/** Longer output is truncated. */
const MAX_OUTPUT_CHARS = 200_000;

/** How the companion refuses a write whose review was rejected; agents put it into their own words. */
const REVIEW_REJECTED = "the user rejected this change";

/** What Qwen Code reports when a permission was denied or the turn stopped. A history has nothing else: no request, no answer. */
const CANCELED = "was canceled by the user";

const STATUS: Record<string, readonly [string, string]> = {
  pending: ["\u25cb", "pending"],
  in_progress: ["\u25d4", "running"],
  completed: ["\u2713", "done"],
  failed: ["\u2715", "failed"],
  [STOPPED]: ["\u2013", "not finished"],
  rejected: ["\u2013", "rejected"],
};

const KINDS: Record<string, string> = {
  read: "Read",
  edit: "Edit",
  delete: "Delete",
  move: "Move",
  search: "Search",
  execute: "Run",
  think: "Think",
  fetch: "Fetch",
  switch_mode: "Mode",
  other: "Tool",
};

export interface ToolCardSurroundings {
  readonly connection: Requester;
  folders(): readonly string[];
  answer(requestId: string, decision: Decision): Promise<string | null>;
  openReview(review: number): void;
}

export class ToolCard {
  readonly element: HTMLElement;
  form: AnswerForm | null = null;
  private readonly sign = element("span", { class: "sign" });
  private readonly kind = element("span", { class: "tool-kind" });
  private readonly title = element("span", { class: "tool-title" });
  private readonly locations = element("ul", { class: "locations", "aria-label": "Files" });
  private readonly diffs = element("div", { class: "diffs" });
  private readonly reviews = element("div", { class: "card-reviews", hidden: true });
  private readonly reviewsMemo = new Memo();
  private pending: readonly PendingReview[] = [];
  private readonly answerPlace = element("div", { class: "answer-place" });
  private readonly output = element("pre", { tabindex: "0", "aria-label": "Output" });
  private readonly outputFold = fold("Output", "tool-output", this.output);
  private readonly input = element("pre", { tabindex: "0", "aria-label": "Input" });
  private readonly inputFold = fold("Input", "tool-input", this.input);
  private readonly views: { readonly fold: HTMLDetailsElement; readonly diff: Difference; view: DiffView | null }[] = [];
  private shown: ToolItem | null = null;
  private answeredHere = false;
  private answers: Answers = [];
  private isReachable = true;

  constructor(
    item: ToolItem,
    private readonly around: ToolCardSurroundings,
  ) {
    this.element = element(
      "article",
      { class: "tool", "data-testid": "tool" },
      element("header", {}, this.sign, this.kind, this.title),
      this.locations,
      this.diffs,
      this.reviews,
      this.inputFold,
      this.outputFold,
      this.answerPlace,
    );
    this.update(item);
  }

  destroy(): void {
    for (const { view } of this.views) view?.destroy();
  }

  setReachable(isReachable: boolean): void {
    this.isReachable = isReachable;
    this.form?.setReachable(isReachable);
  }

  /** The chat's pending reviews; those of this call's files can be opened from here. */
  setReviews(pending: readonly PendingReview[]): void {
    this.pending = pending;
    const { locations = [], content = [] } = this.shown?.call ?? {};
    const paths = new Set([...locations.map(({ path }) => path), ...content.flatMap((part) => (part.type === "diff" ? [part.path] : []))]);
    const own = pending.filter(({ path }) => paths.has(path));
    // A button that stays keeps the focus.
    if (!this.reviewsMemo.isNew(own.map(({ id }) => id).join())) return;
    this.reviews.hidden = own.length === 0;
    replaceChildren(
      this.reviews,
      ...own.map(({ id, path }) =>
        element(
          "button",
          { type: "button", class: "small", "data-testid": "open-review", "data-review": id, onclick: () => this.around.openReview(id) },
          `Review ${splitPath(path, this.around.folders()).name}`,
        ),
      ),
    );
  }

  update(item: ToolItem): void {
    if (item === this.shown) return;
    const { call, approval } = item;
    const before = this.shown;
    this.shown = item;
    const status = statusOf(item);
    const outcome = status === "rejected" ? rejectionOf(item) : null;
    const [sign, words] = STATUS[status] ?? ["\u25cb", status];
    const statusBefore = this.element.dataset["status"];
    this.element.dataset["status"] = status;
    this.element.dataset["call"] = call.id;
    this.element.setAttribute("aria-label", `${KINDS[call.kind] ?? "Tool"}: ${plain(call.title)}, ${plain(words)}`);
    replaceChildren(
      this.sign,
      element("span", { "aria-hidden": "true" }, sign),
      element("span", { class: "visually-hidden" }, plain(words)),
    );
    const asks = approval !== null && approval.request.questions.length > 0;
    this.kind.textContent = asks ? "Question" : (KINDS[call.kind] ?? (plain(call.kind) || "Tool"));
    this.title.textContent = plain(call.title || call.toolName || "Tool").slice(0, 2000);
    if (before?.call.locations !== call.locations) this.showPlaces(call);
    this.showDifferences(call, approval);
    if (before?.call.locations !== call.locations || before.call.content !== call.content) this.setReviews(this.pending);
    if (before?.call.content !== call.content || before.call.output !== call.output)
      show(this.outputFold, this.output, outcome ? "" : outputOf(call));
    // Show why it failed.
    if ((status === "failed") !== (statusBefore === "failed")) this.outputFold.open = status === "failed";
    if (before?.call.input !== call.input || asks) show(this.inputFold, this.input, asks ? "" : inputOf(call));
    this.showApproval(approval);
    if (outcome && !approval) replaceChildren(this.answerPlace, element("p", { class: "answered", "data-testid": "answered" }, outcome));
  }

  private showPlaces({ locations }: ToolCall): void {
    this.locations.hidden = locations.length === 0;
    replaceChildren(
      this.locations,
      ...locations.slice(0, 20).map(({ path, line }) => {
        const { folder, name } = splitPath(path, this.around.folders());
        return element(
          "li",
          { title: plain(path) },
          element("span", { class: "folder" }, folder),
          name,
          line === null || line === undefined ? "" : `:${line}`,
        );
      }),
      locations.length > 20 && element("li", {}, `and ${locations.length - 20} more`),
    );
  }

  private showDifferences(call: ToolCall, approval: Approval | null): void {
    const wanted = call.content.filter((content) => content.type === "diff");
    const asked = approval !== null && !approval.closed;
    for (let index = 0; index < Math.max(wanted.length, this.views.length); index++) {
      const diff = wanted[index];
      const known = this.views[index];
      if (known && diff && same(known.diff, diff)) {
        // Show the diff that a permission request is about.
        if (asked) known.fold.open = true;
        continue;
      }
      known?.view?.destroy();
      if (!diff) {
        known?.fold.remove();
        this.views.splice(index--, 1);
        continue;
      }
      const made = this.differenceFold(diff, asked || (known?.fold.open ?? false));
      if (known) known.fold.replaceWith(made.fold);
      else this.diffs.append(made.fold);
      this.views[index] = made;
    }
  }

  private differenceFold(diff: Difference, open: boolean) {
    const place = element("div");
    const made: { fold: HTMLDetailsElement; diff: Difference; view: DiffView | null } = {
      fold: fold(
        `${diff.oldText === null ? "New file" : "Change"}: ${splitPath(diff.path, this.around.folders()).name}`,
        "tool-diff",
        place,
      ),
      diff,
      view: null,
    };
    const load = () => {
      if (!made.fold.open || made.view) return;
      made.view = new DiffView(this.around.connection, diff);
      place.append(made.view.element);
    };
    made.fold.addEventListener("toggle", load);
    made.fold.open = open;
    load();
    return made;
  }

  private showApproval(approval: Approval | null): void {
    this.element.dataset["approval"] = approval ? (approval.closed ? "closed" : "open") : "none";
    if (!approval) {
      // A history has replaced the conversation.
      this.form = null;
      replaceChildren(this.answerPlace);
      return;
    }
    if (approval.closed) {
      const hadFocus = this.form?.hasFocus ?? false;
      this.answeredHere ||= (this.form?.isSent ?? false) && approval.closed !== "expired" && approval.closed.own;
      if (this.form && this.answeredHere) this.answers = this.form.answers;
      this.form = null;
      showOutcome(this.answerPlace, approval, this.answeredHere, this.answers);
      // The focused element is gone; keep the focus here.
      if (hadFocus) {
        this.element.tabIndex = -1;
        this.element.focus({ preventScroll: true });
      }
      return;
    }
    if (this.form?.approval.request.requestId === approval.request.requestId) {
      this.form.update(approval);
      return;
    }
    const { requestId } = approval.request;
    this.answeredHere = false;
    this.answers = [];
    this.form = new AnswerForm(approval, (decision) => this.around.answer(requestId, decision));
    this.form.setReachable(this.isReachable);
    replaceChildren(this.answerPlace, this.form.element);
  }
}

function same(one: Difference, other: Difference): boolean {
  return one === other || (one.path === other.path && one.oldText === other.oldText && one.newText === other.newText);
}

function fold(title: string, testId: string, content: HTMLElement): HTMLDetailsElement {
  return element("details", { "data-testid": testId }, element("summary", {}, title), content);
}

function show(place: HTMLDetailsElement, content: HTMLElement, text: string): void {
  place.hidden = text === "";
  content.replaceChildren();
  appendVisibly(
    content,
    text.length > MAX_OUTPUT_CHARS
      ? `${text.slice(0, MAX_OUTPUT_CHARS)}\n\u2026 ${(text.length - MAX_OUTPUT_CHARS).toLocaleString("en")} more characters`
      : text,
  );
}

function toText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "string") return value;
  const text = JSON.stringify(value, null, 2);
  return text === "{}" || text === "[]" ? "" : text;
}

function blockText(block: ContentBlock): string {
  return "text" in block && typeof block.text === "string" ? block.text : toText(block);
}

/** Agents report everything that did not happen as failed. What the user rejected, or what was cancelled, is not an error. */
function statusOf(item: ToolItem): string {
  const { call, approval } = item;
  if (call.status === "completed") return call.status;
  if (approval && isRejected(approval)) return "rejected";
  if (call.status !== "failed") return call.status;
  if (rejectionOf(item)) return "rejected";
  const closed = approval?.closed;
  return closed === "expired" || closed?.optionId === null ? STOPPED : call.status;
}

/** A sentence about a call that an agent reports as failed because the user did not want it. */
function rejectionOf({ call, approval }: ToolItem): string | null {
  const output = outputOf(call);
  if (output.includes(REVIEW_REJECTED)) return "You rejected this change.";
  return !approval && output.includes(CANCELED) ? "You rejected or stopped this." : null;
}

function outputOf({ content, output }: ToolCall): string {
  const texts = content
    .map((piece) => (piece.type === "content" ? blockText(piece.content) : piece.type === "other" ? toText(piece.value) : ""))
    .filter((text) => text !== "");
  // Both usually have the same text; `content` is meant for users.
  return withoutEscapes(texts.length > 0 ? texts.join("\n") : toText(output));
}

function inputOf({ input, kind, content }: ToolCall): string {
  if (typeof input === "object" && input !== null && "command" in input && typeof input.command === "string") return input.command;
  // The diff already shows it.
  if (kind === "edit" && content.some((piece) => piece.type === "diff")) return "";
  return toText(input);
}
