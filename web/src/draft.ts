// The text that a person edits, kept in step with the companion's (and so with every other page's).
//
// Three layers: what the companion is known to hold, what was sent and not answered, and what was not sent yet. What the
// editor shows is always the three on top of each other. A change from elsewhere goes in below, and ours are moved over it.
//
// Lines end with "\n" and nothing else. A "\r" stays in the text as a character, and so does a byte order mark: offsets
// here are the companion's offsets, and what nobody touches comes back byte for byte.

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
    /** What the companion holds at `version`. */
    public confirmed: Text,
  ) {}

  /** What the editor shows. */
  get text(): Text {
    const sent = this.sent ? this.sent.apply(this.confirmed) : this.confirmed;
    return this.unsent ? this.unsent.apply(sent) : sent;
  }

  /** Whether something that was typed is not known to have arrived. */
  get isAhead(): boolean {
    return this.sent !== null || this.unsent !== null;
  }

  get isWaiting(): boolean {
    return this.sent !== null;
  }

  /** The person typed. */
  edit(changes: ChangeSet): void {
    this.unsent = this.unsent ? this.unsent.compose(changes) : changes;
    if (this.unsent.empty) this.unsent = null;
  }

  /** What to send now, if anything; the answer must be reported before more is taken. */
  take(): { version: number; changes: WireChange[] } | null {
    if (this.sent || !this.unsent) return null;
    this.sent = this.unsent;
    this.unsent = null;
    return { version: this.version, changes: toWire(this.sent) };
  }

  /** What was sent arrived, and made this version. */
  arrived(version: number): void {
    if (!this.sent) return;
    this.confirmed = this.sent.apply(this.confirmed);
    this.sent = null;
    this.version = version;
  }

  /** What was sent was refused; it is sent again, with whatever came since. */
  refused(): void {
    if (!this.sent) return;
    this.unsent = this.unsent ? this.sent.compose(this.unsent) : this.sent;
    this.sent = null;
  }

  /** Somebody else changed the text. Answers the change to make in the editor. */
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
   * The connection was away, and this is what the companion holds now. Answers the change to make in the editor.
   *
   * Whether what was sent last arrived is not known; it did if that explains the companion's text better.
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

  /** Where a position of the companion's text is in the editor. */
  toView(position: number, side: -1 | 1): number {
    const sent = this.sent ? this.sent.mapPos(position, side) : position;
    return this.unsent ? this.unsent.mapPos(sent, side) : sent;
  }
}

/** The change that makes one text of another. */
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
