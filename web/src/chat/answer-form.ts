// The form for a permission request: the options that the agent offers, and its questions.

import { element, replaceChildren } from "../dom";
import { plain } from "../format";
import { EXPIRED } from "./endings";
import type { Decision, PermissionOption, Question } from "./protocol";
import type { Approval } from "./transcript";

/** Answers right after a request appears are ignored: the key was meant for something else. In milliseconds. */
const ARM_DELAY = 400;

const isNo = (option: PermissionOption) => option.kind.startsWith("reject") || option.optionId === "cancel";

/** Whether the user said no. That is a decision, not an error. */
export function isRejected({ request, closed }: Approval): boolean {
  if (closed === null || closed === "expired") return false;
  // A daemon reports a rejection as a cancelled request.
  if (closed.optionId === null) return closed.own;
  const option = request.options.find(({ optionId }) => optionId === closed.optionId);
  return option !== undefined && isNo(option);
}

/** Questions and their answers. */
export type Answers = readonly (readonly [question: string, answer: string])[];

export class AnswerForm {
  readonly element: HTMLElement;
  private readonly buttons: HTMLButtonElement[];
  private readonly note = element("p", { class: "answer-note", role: "status", "data-testid": "answer-note" });
  private readonly questions: readonly QuestionField[];
  private armed = false;
  private sent = false;
  private isReachable = true;

  /** @param answer sends the decision and returns a problem, if any. */
  constructor(
    readonly approval: Approval,
    private readonly answer: (decision: Decision) => Promise<string | null>,
  ) {
    const { request } = approval;
    this.questions = request.questions.map((question, index) => new QuestionField(question, `${request.requestId}-${index}`));
    // The first option may allow more than this one call.
    const usual = request.options.findIndex(({ kind }) => kind === "allow_once");
    this.buttons = request.options.map((option, index) =>
      element(
        "button",
        {
          type: "button",
          class: index === usual ? "primary" : isNo(option) ? "danger" : "",
          "data-testid": "option",
          "data-option": option.optionId,
          "data-kind": option.kind,
          onclick: () => void this.choose(index),
        },
        plain(option.name),
        // The digit alone is typed into the message box while that has the focus; the styles show the one that works.
        index < 9 &&
          element(
            "kbd",
            { class: "option-key", "aria-hidden": "true" },
            element("span", { class: "key-alone" }, String(index + 1)),
            element("span", { class: "key-typing" }, `Alt ${index + 1}`),
          ),
      ),
    );
    this.element = element(
      "div",
      {
        class: "answer",
        role: "group",
        "aria-label": this.questions.length > 0 ? "Questions from the agent" : "Permission request",
        "data-testid": "approval",
        "data-request": request.requestId,
      },
      ...this.questions.map((question) => question.element),
      request.options.length === 0 && element("p", { class: "problem" }, "The agent offers no option that can be chosen here."),
      element("div", { class: "options" }, ...this.buttons),
      this.note,
    );
    this.update(approval);
    this.showArming();
    window.setTimeout(() => {
      this.armed = true;
      this.showArming();
    }, ARM_DELAY);
  }

  update({ votes }: Approval): void {
    if (votes) this.note.textContent = `${votes.received} of ${votes.received + votes.needed} required votes received.`;
  }

  /** Whether it was answered on this page. */
  get isSent(): boolean {
    return this.sent;
  }

  /** What was chosen here, for each question. */
  get answers(): Answers {
    return this.sent ? this.questions.map((question) => [question.question, question.value]) : [];
  }

  /** Whether an answer can reach the agent now. */
  setReachable(isReachable: boolean): void {
    if (isReachable === this.isReachable) return;
    this.isReachable = isReachable;
    this.note.textContent = isReachable ? "" : "You can answer when the connection is back.";
    this.showArming();
  }

  get hasFocus(): boolean {
    return this.element.contains(document.activeElement);
  }

  focus(): void {
    (this.element.querySelector<HTMLElement>("input, button") ?? this.element).focus();
  }

  /** Chooses an option by its index. */
  async choose(index: number): Promise<void> {
    const option = this.approval.request.options[index];
    if (!option || !this.armed || this.sent || !this.isReachable) return;
    let decision: Decision = { decision: "select", optionId: option.optionId };
    if (this.questions.length > 0 && !isNo(option)) {
      const missing = this.questions.find((question) => question.value === "");
      if (missing) {
        this.note.textContent = "Answer every question first.";
        missing.focus();
        return;
      }
      decision = { ...decision, answers: Object.fromEntries(this.questions.map((question) => [question.key, question.value])) };
    }
    this.sent = true;
    this.showArming();
    const problem = await this.answer(decision);
    if (problem === null) return;
    this.sent = false;
    this.showArming();
    this.note.textContent = problem;
  }

  private showArming(): void {
    this.element.dataset["armed"] = String(this.armed);
    for (const button of this.buttons) button.setAttribute("aria-disabled", String(!this.armed || this.sent || !this.isReachable));
  }
}

/** One question: its choices, and a field for another answer. */
class QuestionField {
  readonly element: HTMLElement;
  readonly key: string;
  readonly question: string;
  private readonly boxes: HTMLInputElement[];
  private readonly other: HTMLInputElement;

  constructor(question: Question, id: string) {
    this.key = question.answerKey;
    this.question = question.question;
    const type = question.multiple ? "checkbox" : "radio";
    this.boxes = question.choices.map((choice) => element("input", { type, name: `question-${id}`, value: choice.label }));
    this.other = element("input", {
      type: "text",
      class: "other",
      "data-testid": "question-other",
      "aria-label": question.choices.length > 0 ? "Other" : plain(question.question),
      placeholder: question.choices.length > 0 ? "Other\u2026" : "Your answer\u2026",
      // Either a choice or another answer.
      oninput: () => {
        if (!question.multiple && this.other.value.trim() !== "") for (const box of this.boxes) box.checked = false;
      },
    });
    for (const box of this.boxes) {
      box.addEventListener("change", () => {
        if (!question.multiple && box.checked) this.other.value = "";
      });
    }
    this.element = element(
      "fieldset",
      { class: "question", "data-testid": "chat-question" },
      element(
        "legend",
        {},
        question.header ? element("span", { class: "chip" }, plain(question.header)) : null,
        " ",
        plain(question.question),
      ),
      ...question.choices.map((choice, index) => {
        const label = element(
          "label",
          {},
          this.boxes[index],
          element(
            "span",
            {},
            element("span", {}, plain(choice.label)),
            choice.description ? element("span", { class: "detail" }, plain(choice.description)) : null,
          ),
        );
        return label;
      }),
      this.other,
    );
  }

  get value(): string {
    const chosen = this.boxes.filter((box) => box.checked).map((box) => box.value);
    const other = this.other.value.trim();
    return [...chosen, ...(other ? [other] : [])].join(", ");
  }

  focus(): void {
    (this.boxes[0] ?? this.other).focus();
  }
}

/** How an approval ended. `here` is whether it was answered on this page. */
export function outcomeOf({ request, closed }: Approval, here: boolean): string {
  if (!closed) return "";
  if (closed === "expired") return EXPIRED;
  const name = request.options.find((option) => option.optionId === closed.optionId)?.name ?? closed.optionId;
  if (here) return name ? `You chose: ${plain(name)}` : "You rejected this.";
  if (closed.own) return name ? `Answered on another page: ${plain(name)}` : "Rejected on another page.";
  return name ? `Answered elsewhere: ${plain(name)}` : "No longer open: it was answered elsewhere or cancelled.";
}

/** Replaces the form with the outcome. Questions stay, with their answers where these are known. */
export function showOutcome(place: HTMLElement, approval: Approval, here: boolean, answers: Answers): void {
  const known = new Map(answers);
  const rejected = isRejected(approval);
  replaceChildren(
    place,
    ...approval.request.questions.map(({ question }) =>
      element(
        "p",
        { class: "answered-question", "data-testid": "answered-question" },
        element("span", {}, plain(question)),
        " ",
        !rejected && known.has(question) && element("strong", {}, plain(known.get(question) ?? "")),
      ),
    ),
    element("p", { class: "answered", "data-testid": "answered", "data-here": String(here) }, outcomeOf(approval, here)),
  );
}
