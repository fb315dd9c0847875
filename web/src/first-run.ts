// What to do next when there is nothing to review.

import { element, replaceChildren } from "./dom";
import { count, plain } from "./format";

export interface FirstRunState {
  readonly folders: readonly string[];
  /** The number of connected agents. */
  readonly agents: number;
}

export class FirstRun {
  private readonly text = element("p", {});
  private readonly problem = element("p", { class: "problem", role: "status", "data-testid": "demo-problem" });
  private readonly button = element(
    "button",
    { type: "button", class: "primary", "data-testid": "demo", onclick: () => void this.start() },
    "Try a sample review",
  );

  /** @param demo opens the sample review. */
  constructor(
    private readonly place: HTMLElement,
    private readonly demo: () => Promise<void>,
  ) {
    replaceChildren(
      place,
      this.text,
      element(
        "p",
        {},
        "To try it without an agent, open a sample review here, or run ",
        element("code", {}, "alongside demo"),
        " in that folder.",
      ),
      this.button,
      this.problem,
    );
  }

  /** Shows it, or hides it without a state. */
  show(state: FirstRunState | null): void {
    this.place.hidden = state === null;
    if (!state) return;
    const folder = state.folders[0];
    const start =
      state.agents > 0
        ? [`${count(state.agents, "agent is", "agents are")} connected. Ask for a change to a file; it appears here.`]
        : [
            "Start an agent such as ",
            element("code", {}, "gemini"),
            ", ",
            element("code", {}, "qwen"),
            " or ",
            element("code", {}, "claude"),
            " in ",
            folder === undefined ? "your project" : element("code", {}, plain(folder)),
            ". Its changes appear here.",
          ];
    replaceChildren(this.text, ...start);
  }

  private async start(): Promise<void> {
    this.button.disabled = true;
    this.problem.textContent = "";
    try {
      await this.demo();
    } catch (error) {
      this.problem.textContent = `The sample review could not be opened: ${(error as Error).message}.`;
    } finally {
      this.button.disabled = false;
    }
  }
}
