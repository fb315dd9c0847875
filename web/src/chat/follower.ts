// Follows the companion's log of the conversation by epoch and sequence number: no event is lost or applied twice.

import type { ChatEvent, ChatState } from "./protocol";
import { EMPTY, fold, foldAll, type Transcript } from "./transcript";

export class Follower {
  shown: Transcript = EMPTY;
  private epoch: string | null = null;
  private sequence = 0;
  /** Events that arrived while the state was being fetched. */
  private early: ChatEvent[] = [];
  private isFetching = false;

  /** The state is being fetched; events are held back until it arrives. */
  startFetch(): void {
    this.isFetching = true;
  }

  /** Fetching failed: the transcript stays, and the next event causes another fetch. */
  fetchFailed(): void {
    this.isFetching = false;
    this.early = [];
    this.epoch = null;
  }

  /** Applies the fetched state. `false` if the held events do not continue it and it must be fetched again. */
  applyState(state: ChatState): boolean {
    this.isFetching = false;
    this.epoch = state.epoch;
    this.sequence = state.sequence;
    this.shown = foldAll(EMPTY, state.events);
    const early = this.early;
    this.early = [];
    return early.every((event) => this.apply(event) !== "gap");
  }

  /** Applies an event. `gap` if earlier events are missing and the state must be fetched. */
  apply(event: ChatEvent): "applied" | "known" | "early" | "gap" {
    if (this.isFetching) {
      this.early.push(event);
      return "early";
    }
    if (event.epoch !== this.epoch) return "gap";
    if (event.sequence <= this.sequence) return "known";
    if (event.sequence !== this.sequence + 1) return "gap";
    this.sequence = event.sequence;
    this.shown = fold(this.shown, event.event);
    return "applied";
  }
}
