// The drawer at the side: shows one panel at a time.

import { type Child, element, replaceChildren } from "./dom";

type Content = Child | readonly Child[];

export interface Panel {
  readonly name: string;
  readonly title: string;
  fill(): Promise<Content> | Content;
}

export class Drawer {
  private panel: Panel | null = null;
  private before: Element | null = null;
  private readonly content = element("div");
  private readonly title = element("h2", { id: "drawer-title", tabindex: "-1" });
  private readonly drawer = element(
    "aside",
    { id: "drawer", class: "drawer", "aria-labelledby": "drawer-title", "data-testid": "drawer", hidden: true },
    element(
      "header",
      {},
      this.title,
      element(
        "button",
        { type: "button", class: "quiet icon", "data-testid": "drawer-close", "aria-label": "Close", onclick: () => this.close() },
        "\u2715",
      ),
    ),
    this.content,
  );

  /** @param changed is called when another panel is shown, or none. */
  constructor(
    place: HTMLElement,
    private readonly changed: () => void = () => undefined,
  ) {
    place.append(this.drawer);
  }

  /** The name of the open panel. */
  get shown(): string | null {
    return this.panel?.name ?? null;
  }

  get isOpen(): boolean {
    return this.panel !== null;
  }

  toggle(panel: Panel): void {
    if (this.shown === panel.name) this.close();
    else this.open(panel);
  }

  close(): void {
    if (!this.panel) return;
    const hadFocus = this.drawer.contains(document.activeElement);
    this.panel = null;
    this.drawer.hidden = true;
    this.changed();
    if (hadFocus && this.before instanceof HTMLElement) this.before.focus();
  }

  /** Fills the panel again if it is open; without a name, the open one. */
  async refresh(name?: string): Promise<void> {
    const { panel } = this;
    if (!panel || (name !== undefined && panel.name !== name)) return;
    try {
      const content = await panel.fill();
      if (this.panel === panel) this.show(panel.name, content);
    } catch (error) {
      if (this.panel === panel) replaceChildren(this.content, element("p", { class: "problem" }, (error as Error).message));
    }
  }

  /** Shows this in the panel if it is open. */
  show(name: string, content: Content): void {
    if (this.shown === name) replaceChildren(this.content, ...[content].flat());
  }

  private open(panel: Panel): void {
    if (!this.panel) this.before = document.activeElement;
    this.panel = panel;
    this.drawer.hidden = false;
    this.drawer.dataset["panel"] = panel.name;
    this.title.textContent = panel.title;
    replaceChildren(this.content, element("p", { class: "faint" }, "Loading\u2026"));
    this.changed();
    this.title.focus();
    void this.refresh();
  }
}
