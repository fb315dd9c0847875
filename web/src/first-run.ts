// What to do next when there is nothing to review.

import { element, replaceChildren } from "./dom";
import { count, plain } from "./format";

export interface FirstRun {
  readonly folders: readonly string[];
  /** The number of connected agents. */
  readonly agents: number;
}

export function showFirstRun(place: HTMLElement, { folders, agents }: FirstRun): void {
  const folder = folders[0];
  const start =
    agents > 0
      ? [`${count(agents, "agent is", "agents are")} connected. Ask for a change to a file; it appears here.`]
      : [
          "Start ",
          element("code", {}, "gemini"),
          " or ",
          element("code", {}, "qwen"),
          " in ",
          folder === undefined ? "your project" : element("code", {}, plain(folder)),
          ". Its changes appear here.",
        ];
  replaceChildren(
    place,
    element("p", {}, ...start),
    element("p", {}, "To try it without an agent, run ", element("code", {}, "alongside demo"), " in that folder."),
  );
}
