// Follows the companion's log of the conversation by epoch and number: no word is lost, and none is taken twice.

import type { AgentEvent, ChatEvent, ChatState } from "./protocol";
import { EMPTY, fold, foldAll, type Transcript } from "./transcript";

export class Follower {
  shown: Transcript = EMPTY;
  private epoch: string | null = null;
  private sequence = 0;
  /** What came while the whole was asked for. */
  private early: ChatEvent[] = [];
  private asking = false;

  /** The whole is being asked for: from now on, news wait for it. */
  ask(): void {
    this.asking = true;
  }

  /** Asking failed; what is shown stays, and the next attempt asks for everything. */
  failed(): void {
    this.asking = false;
    this.early = [];
    this.epoch = null;
  }

  /** Takes the whole. `false` if what came meanwhile does not fit: then it must be asked for again. */
  whole(state: ChatState): boolean {
    this.asking = false;
    this.epoch = state.epoch;
    this.sequence = state.sequence;
    this.shown = foldAll(EMPTY, state.events);
    const early = this.early;
    this.early = [];
    return early.every((news) => this.take(news) !== "gap");
  }

  /** Takes news. `gap` if something is missing before it: then the whole must be asked for. */
  take(news: ChatEvent): "taken" | "known" | "early" | "gap" {
    if (this.asking) {
      this.early.push(news);
      return "early";
    }
    if (news.epoch !== this.epoch) return "gap";
    if (news.sequence <= this.sequence) return "known";
    if (news.sequence !== this.sequence + 1) return "gap";
    this.sequence = news.sequence;
    this.shown = this.next(news.event);
    return "taken";
  }

  private next(event: AgentEvent): Transcript {
    return fold(this.shown, event);
  }
}
