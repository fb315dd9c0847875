// The editable text, kept in sync with the companion's and so with every other page's.
//
// Three layers: the text confirmed by the companion, changes sent but not acknowledged, and changes not yet sent. The editor
// shows all three combined. A change from elsewhere is applied to the confirmed text, and ours are rebased onto it.
//
// Only "\n" ends a line. A "\r" and a byte order mark are ordinary characters, so offsets here are the companion's offsets,
// and text that is not edited is returned byte for byte.

import { diff } from "@codemirror/merge";
import { ChangeSet, type ChangeSpec, Text } from "@codemirror/state";
import type { WireChange } from "./protocol";

export function toText(text: string): Text {
  return Text.of(text.split("\n"));
}

export function fromWire(changes: readonly WireChange[], length: number): ChangeSet {
  const specs: ChangeSpec[] = changes.map(({ from, to, insert }) => ({ from, to, insert: toText(insert) }));
  return ChangeSet.of(specs, length);
}

export function toWire(changes: ChangeSet): WireChange[] {
  const wire: WireChange[] = [];
  changes.iterChanges((from, to, _newFrom, _newTo, insert) => wire.push({ from, to, insert: insert.toString() }));
  return wire;
}

export class Draft {
  private sent: ChangeSet | null = null;
  private unsent: ChangeSet | null = null;

  constructor(
    public version: number,
    /** The companion's text at `version`. */
    public confirmed: Text,
  ) {}

  /** What the editor shows. */
  get text(): Text {
    const sent = this.sent ? this.sent.apply(this.confirmed) : this.confirmed;
    return this.unsent ? this.unsent.apply(sent) : sent;
  }

  /** Whether there are edits that the companion has not acknowledged. */
  get isAhead(): boolean {
    return this.sent !== null || this.unsent !== null;
  }

  get isWaiting(): boolean {
    return this.sent !== null;
  }

  edit(changes: ChangeSet): void {
    this.unsent = this.unsent ? this.unsent.compose(changes) : changes;
    if (this.unsent.empty) this.unsent = null;
  }

  /** The next batch to send, if any. Report its response before taking another. */
  take(): { version: number; changes: WireChange[] } | null {
    if (this.sent || !this.unsent) return null;
    this.sent = this.unsent;
    this.unsent = null;
    return { version: this.version, changes: toWire(this.sent) };
  }

  /** The companion applied the batch as this version. */
  arrived(version: number): void {
    if (!this.sent) return;
    this.confirmed = this.sent.apply(this.confirmed);
    this.sent = null;
    this.version = version;
  }

  /** The companion refused the batch; it is sent again together with later edits. */
  refused(): void {
    if (!this.sent) return;
    this.unsent = this.unsent ? this.sent.compose(this.unsent) : this.sent;
    this.sent = null;
  }

  /** Another client changed the text. Returns the change to make in the editor. */
  receive(version: number, changes: ChangeSet): ChangeSet {
    this.confirmed = changes.apply(this.confirmed);
    this.version = version;
    let moved = changes;
    for (const layer of ["sent", "unsent"] as const) {
      const ours = this[layer];
      if (!ours) continue;
      this[layer] = ours.map(moved);
      moved = moved.map(ours, true);
    }
    return moved;
  }

  /**
   * Rebases onto the companion's text after a reconnect. Returns the change to make in the editor.
   *
   * Whether the last batch arrived is unknown: assume so if the companion's text is closer to the text with it.
   */
  catchUp(version: number, text: string): ChangeSet {
    const now = toText(text);
    if (this.sent) {
      const withSent = this.sent.apply(this.confirmed);
      const arrived = difference(withSent, now);
      const didNot = difference(this.confirmed, now);
      if (size(arrived) < size(didNot)) this.arrived(version);
      else this.refused();
    }
    return this.receive(version, difference(this.confirmed, now));
  }

  /** Maps a position in the companion's text to the editor. */
  toView(position: number, side: -1 | 1): number {
    const sent = this.sent ? this.sent.mapPos(position, side) : position;
    return this.unsent ? this.unsent.mapPos(sent, side) : sent;
  }
}

function difference(before: Text, after: Text): ChangeSet {
  if (before.eq(after)) return ChangeSet.empty(before.length);
  const changes = diff(before.toString(), after.toString(), { scanLimit: 500, timeout: 200 });
  return ChangeSet.of(
    changes.map((change) => ({ from: change.fromA, to: change.toA, insert: after.slice(change.fromB, change.toB) })),
    before.length,
  );
}

function size(changes: ChangeSet): number {
  let total = 0;
  changes.iterChanges((fromA, toA, fromB, toB) => (total += toA - fromA + toB - fromB));
  return total;
}
