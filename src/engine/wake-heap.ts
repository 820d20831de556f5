/** When entities want to be looked at, earliest first. An early look costs little, a late one is a stuck execution. */
export class WakeHeap {
  private readonly entries: { atMs: number; key: string }[] = [];
  /** The earliest time filed per entity; any other entry of it is stale. */
  private readonly filed = new Map<string, number>();

  /** Files a wake; one that is already filed for an earlier time stands. */
  file(key: string, atMs: number): void {
    const before = this.filed.get(key);
    if (before !== undefined && before <= atMs) return;
    this.filed.set(key, atMs);
    this.push({ atMs, key });
  }

  /** Nobody wants to be looked at under this name any more. */
  drop(key: string): void {
    this.filed.delete(key);
    if (this.entries.length > 1024 && this.entries.length > 2 * this.filed.size) this.compact();
  }

  private compact(): void {
    const live = this.entries.filter((entry) => this.filed.get(entry.key) === entry.atMs);
    this.entries.length = 0;
    for (const entry of live) this.push(entry);
  }

  nextMs(): number | null {
    this.dropStale();
    return this.entries[0]?.atMs ?? null;
  }

  /** Takes out what is due, at most `limit` of it. */
  takeDue(nowMs: number, limit: number): string[] {
    const due: string[] = [];
    while (due.length < limit) {
      this.dropStale();
      const top = this.entries[0];
      if (top === undefined || top.atMs > nowMs) break;
      this.pop();
      this.filed.delete(top.key);
      due.push(top.key);
    }
    return due;
  }

  private dropStale(): void {
    while (this.entries.length > 0 && this.filed.get(this.entries[0]!.key) !== this.entries[0]!.atMs) this.pop();
  }

  private push(entry: { atMs: number; key: string }): void {
    const { entries } = this;
    let i = entries.length;
    entries.push(entry);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (entries[parent]!.atMs <= entry.atMs) break;
      entries[i] = entries[parent]!;
      i = parent;
    }
    entries[i] = entry;
  }

  private pop(): void {
    const { entries } = this;
    const last = entries.pop()!;
    if (entries.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && entries[child + 1]!.atMs < entries[child]!.atMs) child++;
      if (entries[child]!.atMs >= last.atMs) break;
      entries[i] = entries[child]!;
      i = child;
    }
    entries[i] = last;
  }
}
