// Carries a draft's changes to the companion and the companion's to the draft, one request at a time.

import { ChangeSet } from "@codemirror/state";
import type { Connection } from "./connection";
import { type Draft, fromWire } from "./draft";
import { type Edited, type Hunk, type HunkChange, Refusal, type ReviewTexts } from "./protocol";

/** Typing is sent in small batches: soon enough to feel live, late enough not to send every key by itself. */
const BATCH = 40;
/** How long to wait for notifications that must be on their way before asking for the whole text. */
const PATIENCE = 1500;

export interface DraftListener {
  /**
   * Make this change in the editor (it may be empty); the parts are these now, with ranges in the companion's text. All but
   * those of `change` are the same as before, or have moved; without it all may be others.
   */
  changed(changes: ChangeSet, hunks: readonly Hunk[], change?: HunkChange): void;
  /** Whether something that was typed has not arrived yet. */
  ahead(isAhead: boolean): void;
  failed(error: Error): void;
}

export class DraftLink {
  private readonly held: Edited[] = [];
  private timer = 0;
  private patience = 0;
  private flushing: Promise<void> | null = null;
  private over = false;
  /** The version of the draft that the parts are of. */
  private version: number;

  constructor(
    private readonly connection: Connection,
    private readonly review: number,
    readonly draft: Draft,
    private hunks: readonly Hunk[],
    private readonly listener: DraftListener,
  ) {
    this.version = draft.version;
  }

  /** The review is over: nothing is sent any more. */
  close(): void {
    this.over = true;
    window.clearTimeout(this.timer);
    window.clearTimeout(this.patience);
  }

  /** The person typed. */
  edit(changes: ChangeSet): void {
    this.draft.edit(changes);
    this.listener.ahead(this.draft.isAhead);
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.flush().catch(() => undefined), BATCH);
  }

  /** Sends all that was typed, and is done when it has arrived. */
  flush(): Promise<void> {
    this.flushing ??= this.send().finally(() => (this.flushing = null));
    return this.flushing;
  }

  async decideHunk(hunk: Hunk["id"], decision: "accept" | "reject"): Promise<void> {
    await this.flush();
    const { version } = await this.connection.request<{ version: number }>("review/hunk", {
      review: this.review,
      hunk,
      decision,
    });
    this.expect(version);
  }

  /** A notification that the text changed, ours included. */
  edited(note: Edited): void {
    // While an answer is awaited it is not known whether this is our own change or one that came before it.
    if (this.draft.isWaiting) this.held.push(note);
    else this.receive(note);
  }

  /** The connection is back, or something was missed: this is what the companion holds now. */
  catchUp(now: ReviewTexts): void {
    this.held.length = 0;
    window.clearTimeout(this.patience);
    const changes = this.draft.catchUp(now.version, now.draft);
    this.hunks = now.hunks;
    this.version = now.version;
    this.listener.changed(changes, now.hunks);
    this.listener.ahead(this.draft.isAhead);
    void this.flush().catch(() => undefined);
  }

  private async send(): Promise<void> {
    for (;;) {
      const batch = this.over ? null : this.draft.take();
      if (!batch) return;
      try {
        const { version } = await this.connection.request<{ version: number }>("review/change", {
          review: this.review,
          ...batch,
        });
        this.draft.arrived(version);
        this.release();
        this.expect(version);
      } catch (error) {
        const kind = error instanceof Refusal ? error.kind : "";
        if (kind === "stale") {
          const version = this.draft.version;
          this.draft.refused();
          this.release();
          if (this.draft.version === version) await this.refetch();
          continue;
        }
        // While offline, whether it arrived is found out on the way back.
        if (kind !== "offline") {
          this.draft.refused();
          this.listener.failed(error as Error);
        }
        throw error;
      } finally {
        this.listener.ahead(this.draft.isAhead);
      }
    }
  }

  private release(): void {
    for (const note of this.held.splice(0)) this.receive(note);
  }

  private receive(note: Edited): void {
    if (this.over || note.version <= this.version) return;
    if (note.version > this.version + 1 || note.version > this.draft.version + 1) {
      void this.refetch();
      return;
    }
    const isNew = note.version === this.draft.version + 1;
    const changes = isNew
      ? this.draft.receive(note.version, fromWire(note.changes, this.draft.confirmed.length))
      : ChangeSet.empty(this.draft.text.length);
    this.hunks = changeHunks(this.hunks, note.hunks);
    this.version = note.version;
    this.listener.changed(changes, this.hunks, note.hunks);
  }

  /** A version that the companion has told of must show up here soon. */
  private expect(version: number): void {
    window.clearTimeout(this.patience);
    if (this.draft.version >= version) return;
    this.patience = window.setTimeout(() => {
      if (this.draft.version < version) void this.refetch();
    }, PATIENCE);
  }

  private async refetch(): Promise<void> {
    const now = await this.connection.request<ReviewTexts>("review/get", { review: this.review });
    if (!this.over) this.catchUp(now);
  }
}

/** The parts after a change of some of them. */
function changeHunks(hunks: readonly Hunk[], { at, removed, now, shift }: HunkChange): Hunk[] {
  const below = hunks.slice(at + removed);
  const move = (hunk: Hunk): Hunk => ({ ...hunk, draft: { ...hunk.draft, start: hunk.draft.start + shift } });
  return [...hunks.slice(0, at), ...now, ...(shift === 0 ? below : below.map(move))];
}
