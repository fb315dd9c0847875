// Sends the draft's changes to the companion and applies the companion's, one request at a time.

import { ChangeSet } from "@codemirror/state";
import { type Draft, fromWire } from "./draft";
import type { Edited, Hunk, HunkAction, HunkChange, Requester, ReviewTexts } from "./protocol";

/** Typing is sent in batches instead of key by key. In milliseconds. */
const BATCH = 40;
/** How long to wait for an expected notification before fetching the whole text, in milliseconds. */
const NOTIFICATION_TIMEOUT = 1500;

export interface DraftListener {
  /**
   * Apply these changes (possibly empty) to the editor. The hunks have ranges in the companion's text. Hunks outside of
   * `change` are unchanged or have moved; without `change`, any may have changed.
   */
  changed(changes: ChangeSet, hunks: readonly Hunk[], change?: HunkChange): void;
  /** Whether there are edits that have not reached the companion. */
  ahead(isAhead: boolean): void;
  failed(error: Error): void;
}

export class DraftLink {
  private readonly held: Edited[] = [];
  // Editors have no `window`.
  private timer: ReturnType<typeof setTimeout> | undefined;
  private overdue: ReturnType<typeof setTimeout> | undefined;
  private flushing: Promise<void> | null = null;
  private over = false;
  /** The draft version of the hunks. */
  private version: number;

  constructor(
    private readonly connection: Requester,
    private readonly review: number,
    readonly draft: Draft,
    private hunks: readonly Hunk[],
    private readonly listener: DraftListener,
  ) {
    this.version = draft.version;
  }

  /** Stops sending: the review is closed. */
  close(): void {
    this.over = true;
    clearTimeout(this.timer);
    clearTimeout(this.overdue);
  }

  /** The user typed. */
  edit(changes: ChangeSet): void {
    this.draft.edit(changes);
    this.listener.ahead(this.draft.isAhead);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush().catch(() => undefined), BATCH);
  }

  /** Sends pending edits; resolves when the companion has them. */
  flush(): Promise<void> {
    this.flushing ??= this.send().finally(() => (this.flushing = null));
    return this.flushing;
  }

  async decideHunk(hunk: Hunk["id"], decision: HunkAction): Promise<void> {
    await this.flush();
    const { version } = await this.connection.request("review/hunk", {
      review: this.review,
      hunk,
      decision,
    });
    this.expect(version);
  }

  /** The draft changed, possibly by our own edit. */
  edited(note: Edited): void {
    // While a response is outstanding, this may be our own change or one before it.
    if (this.draft.isWaiting) this.held.push(note);
    else this.receive(note);
  }

  /** Updates to the companion's state, after a reconnect or a missed notification. */
  catchUp(now: ReviewTexts): void {
    this.held.length = 0;
    clearTimeout(this.overdue);
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
        const { version } = await this.connection.request("review/change", {
          review: this.review,
          ...batch,
        });
        this.draft.arrived(version);
        this.release();
        this.expect(version);
      } catch (error) {
        const kind = (error as { readonly kind?: string }).kind;
        if (kind === "stale") {
          const version = this.draft.version;
          this.draft.refused();
          this.release();
          if (this.draft.version === version) await this.refetch();
          continue;
        }
        // Offline: whether it arrived is determined after the reconnect.
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

  /** Fetches the text unless the notification for this version arrives soon. */
  private expect(version: number): void {
    clearTimeout(this.overdue);
    if (this.draft.version >= version) return;
    this.overdue = setTimeout(() => {
      if (this.draft.version < version) void this.refetch();
    }, NOTIFICATION_TIMEOUT);
  }

  private async refetch(): Promise<void> {
    const now = await this.connection.request("review/get", { review: this.review });
    if (!this.over) this.catchUp(now);
  }
}

function changeHunks(hunks: readonly Hunk[], { at, removed, now, shift }: HunkChange): Hunk[] {
  const below = hunks.slice(at + removed);
  const move = (hunk: Hunk): Hunk => ({ ...hunk, draft: { ...hunk.draft, start: hunk.draft.start + shift } });
  return [...hunks.slice(0, at), ...now, ...(shift === 0 ? below : below.map(move))];
}
