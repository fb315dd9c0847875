// Remembers the inputs of a drawing, to draw again only if one has changed.

export class Memo {
  private last: readonly unknown[] | null = null;

  /** Whether any value differs from the last call. */
  isNew(...now: readonly unknown[]): boolean {
    const { last } = this;
    if (last !== null && last.length === now.length && now.every((value, index) => Object.is(value, last[index]))) return false;
    this.last = now;
    return true;
  }
}
