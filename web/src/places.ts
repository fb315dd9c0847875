// The two places of the page, reviews and chat: which one is shown is in the address, and remembered.

import { byId } from "./dom";

export type Place = "reviews" | "chat";

const KEPT = "alongside:place";

export class Places {
  private shown: Place = "reviews";
  private chatExists = false;

  /** @param changed is called when another place is shown. */
  constructor(private readonly changed: (place: Place) => void) {
    window.addEventListener("hashchange", () => this.follow());
  }

  get place(): Place {
    return this.shown;
  }

  /** There is a chat, or there is none: an older companion has none. */
  setChat(exists: boolean): void {
    this.chatExists = exists;
    byId("to-chat").hidden = !exists;
    this.follow();
  }

  go(place: Place): void {
    // The address tells, so that going back works.
    location.hash = place;
  }

  toggle(): void {
    if (this.chatExists) this.go(this.shown === "chat" ? "reviews" : "chat");
  }

  private follow(): void {
    const named = location.hash.slice(1);
    const wanted = named === "chat" || named === "reviews" ? named : (localStorage.getItem(KEPT) ?? "reviews");
    const place: Place = wanted === "chat" && this.chatExists ? "chat" : "reviews";
    // What was remembered is kept while the companion is not there to say whether it has a chat.
    if (this.chatExists) localStorage.setItem(KEPT, place);
    if (place === this.shown) return;
    this.shown = place;
    document.body.dataset["place"] = place;
    for (const name of ["reviews", "chat"] as const) {
      const link = byId(`to-${name}`);
      if (name === place) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.changed(place);
  }
}
