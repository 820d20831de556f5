/** Shared by all that are empty, and never written to. */
const NONE: number[] = [];

/**
 * The deadlines of one entity, earliest first. An entry is valid while its node still has exactly this deadline;
 * a node that moves on just gets another entry, and the old one is dropped when it comes to the top.
 *
 * An entity has two of them, and there are thousands in memory: so they share the function that tells a deadline.
 */
export class TimerHeap<Entity> {
  private times: number[] = NONE;
  private nodes: number[] = NONE;
  private readonly entity: Entity;
  private readonly dueMs: (entity: Entity, node: number) => number | null;

  constructor(entity: Entity, dueMs: (entity: Entity, node: number) => number | null) {
    this.entity = entity;
    this.dueMs = dueMs;
  }

  push(atMs: number, node: number): void {
    let i = this.times.length;
    // Not pushed to while it is short: a list that grows makes room for sixteen more, and most have two or three.
    const { times, nodes } = this;
    if (i === 0) {
      this.times = [atMs];
      this.nodes = [node];
    } else if (i === 1) {
      this.times = [times[0]!, atMs];
      this.nodes = [nodes[0]!, node];
    } else if (i === 2) {
      this.times = [times[0]!, times[1]!, atMs];
      this.nodes = [nodes[0]!, nodes[1]!, node];
    } else {
      times.push(atMs);
      nodes.push(node);
    }
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (this.times[parent]! <= atMs) break;
      this.swap(i, parent);
      i = parent;
    }
  }

  /** The earliest valid deadline. `settle` has to have been called since the last change. */
  peekMs(): number | null {
    return this.times[0] ?? null;
  }

  /** Drops what is not valid any more from the top, and everywhere once most of the heap is stale. */
  settle(validCount: number): void {
    if (this.times.length > 1024 && this.times.length > 4 * (validCount + 1)) this.rebuild();
    while (this.times.length > 0 && !this.isValid(this.nodes[0]!, this.times[0]!)) this.pop();
  }

  /** Nodes whose deadline has come, at most `limit`, in order of their deadlines. Takes nothing out. */
  due(nowMs: number, limit: number): readonly number[] {
    if (this.times.length === 0 || this.times[0]! > nowMs) return NONE;
    const found: { node: number; atMs: number }[] = [];
    const seen = new Set<number>();
    // Entries at or before `nowMs` form a connected piece at the top of the heap.
    const stack = [0];
    while (stack.length > 0) {
      const i = stack.pop()!;
      if (i >= this.times.length || this.times[i]! > nowMs) continue;
      const node = this.nodes[i]!;
      if (this.isValid(node, this.times[i]!) && !seen.has(node)) {
        seen.add(node);
        found.push({ node, atMs: this.times[i]! });
      }
      stack.push(2 * i + 1, 2 * i + 2);
    }
    found.sort((a, b) => a.atMs - b.atMs || a.node - b.node);
    return found.slice(0, limit).map((entry) => entry.node);
  }

  clear(): void {
    this.times = NONE;
    this.nodes = NONE;
  }

  private isValid(node: number, atMs: number): boolean {
    return this.dueMs(this.entity, node) === atMs;
  }

  private pop(): void {
    const last = this.times.length - 1;
    if (last === 0) return this.clear();
    this.swap(0, last);
    this.times.pop();
    this.nodes.pop();
    this.sink(0);
  }

  private sink(start: number): void {
    let i = start;
    for (;;) {
      const left = 2 * i + 1;
      const right = left + 1;
      let least = i;
      if (left < this.times.length && this.times[left]! < this.times[least]!) least = left;
      if (right < this.times.length && this.times[right]! < this.times[least]!) least = right;
      if (least === i) return;
      this.swap(i, least);
      i = least;
    }
  }

  private rebuild(): void {
    const { times, nodes } = this;
    this.clear();
    for (let i = 0; i < times.length; i++) if (this.isValid(nodes[i]!, times[i]!)) this.push(times[i]!, nodes[i]!);
  }

  private swap(a: number, b: number): void {
    const time = this.times[a]!;
    const node = this.nodes[a]!;
    this.times[a] = this.times[b]!;
    this.nodes[a] = this.nodes[b]!;
    this.times[b] = time;
    this.nodes[b] = node;
  }
}
