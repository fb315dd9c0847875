// Calls an action once per burst of events, by key.

export class Debounce {
  private readonly timers = new Map<string, NodeJS.Timeout>();

  /** Calls `action` after the delay, unless it is already about to be. */
  soon(key: string, milliseconds: number, action: () => void): void {
    if (this.timers.has(key)) return;
    const timer = setTimeout(() => {
      this.timers.delete(key);
      action();
    }, milliseconds);
    this.timers.set(key, timer);
  }

  /** Drops the actions that are due. */
  dispose(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }
}
