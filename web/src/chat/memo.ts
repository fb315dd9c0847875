// Remembers what something was drawn from, so that it is drawn only when that has changed.

export class Memo {
  private last: readonly unknown[] | null = null;

  /** Whether any of these is not what it was the last time. */
  isNew(...now: readonly unknown[]): boolean {
    const { last } = this;
    if (last !== null && last.length === now.length && now.every((value, index) => Object.is(value, last[index]))) return false;
    this.last = now;
    return true;
  }
}
