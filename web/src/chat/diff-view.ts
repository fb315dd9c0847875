// The diff of a tool call, shown as in a review, without decisions.

import { element } from "../dom";
import { Draft, toText } from "../draft";
import { plain } from "../format";
import { Panes } from "../panes";
import type { Requester, ReviewTexts } from "../protocol";

export interface Difference {
  readonly path: string;
  readonly oldText: string | null;
  readonly newText: string;
}

export class DiffView {
  readonly element = element("div", { class: "diff", "data-testid": "diff" });
  private panes: Panes | null = null;

  constructor(
    private readonly connection: Requester,
    private readonly shown: Difference,
  ) {
    this.element.append(element("p", { class: "faint" }, "Loading\u2026"));
    void this.load();
  }

  destroy(): void {
    this.panes?.destroy();
    this.panes = null;
  }

  isOf({ path, oldText, newText }: Difference): boolean {
    return path === this.shown.path && oldText === this.shown.oldText && newText === this.shown.newText;
  }

  private async load(): Promise<void> {
    const base = this.shown.oldText ?? "";
    const proposal = this.shown.newText;
    try {
      const { hunks } = await this.connection.request("diff", { base, proposal });
      const texts: ReviewTexts = {
        id: 0,
        path: this.shown.path,
        agent: "",
        session: "",
        revision: 1,
        version: 1,
        opened: 0,
        newFile: this.shown.oldText === null,
        edited: false,
        size: { added: 0, removed: 0 },
        base,
        proposal,
        draft: proposal,
        hunks,
        notes: [],
        conflicts: 0,
        takesReason: false,
      };
      const panes = new Panes(texts, new Draft(1, toText(proposal)), "unified", {
        edited: () => undefined,
        decide: () => undefined,
        moved: () => undefined,
      });
      panes.setReadOnly(`${plain(this.shown.path)} after the change`);
      // Scrollable, so it must be focusable.
      panes.element.setAttribute("tabindex", "0");
      panes.element.setAttribute("role", "group");
      panes.element.setAttribute("aria-label", `Diff of ${plain(this.shown.path)}`);
      this.panes = panes;
      this.element.replaceChildren(hunks.length > 0 ? panes.element : element("p", { class: "faint" }, "No changes."));
    } catch (error) {
      this.element.replaceChildren(element("p", { class: "problem" }, `Cannot show the diff: ${(error as Error).message}`));
    }
  }
}
