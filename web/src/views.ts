// The two views, Reviews and Chat. The current one is in the address and in the local storage.

import { byId } from "./dom";

export type View = "reviews" | "chat";

const STORAGE_KEY = "alongside:view";

export class Views {
  private view: View = "reviews";
  private chatExists = false;

  constructor(private readonly changed: (view: View) => void) {
    window.addEventListener("hashchange", () => this.follow());
  }

  get current(): View {
    return this.view;
  }

  /** Older companions have no chat. */
  setChat(exists: boolean): void {
    this.chatExists = exists;
    byId("to-chat").hidden = !exists;
    this.follow();
  }

  go(view: View): void {
    // Through the address, so that the back button works.
    location.hash = view;
  }

  toggle(): void {
    if (this.chatExists) this.go(this.view === "chat" ? "reviews" : "chat");
  }

  private follow(): void {
    const named = location.hash.slice(1);
    const wanted = named === "chat" || named === "reviews" ? named : (localStorage.getItem(STORAGE_KEY) ?? "reviews");
    const view: View = wanted === "chat" && this.chatExists ? "chat" : "reviews";
    // Do not overwrite the saved view before it is known whether there is a chat.
    if (this.chatExists) localStorage.setItem(STORAGE_KEY, view);
    if (view === this.view) return;
    this.view = view;
    document.body.dataset["view"] = view;
    for (const name of ["reviews", "chat"] as const) {
      const link = byId(`to-${name}`);
      if (name === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.changed(view);
  }
}
