/** One thing that will happen. */
interface Planned {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  readonly actor: Actor | undefined;
}

/** Somebody to whom things happen: while it is stopped they wait, once it is dead they never do. */
export interface Actor {
  readonly alive: boolean;
  readonly pausedUntil: number;
}

/**
 * Simulated time. Things happen one after the other, each followed by everything that its promises set off; so a whole
 * cluster runs in one thread, and the same plan gives the same history.
 */
export class Timeline {
  now = 0;
  private readonly heap: Planned[] = [];
  private order = 0;

  /** Plans something; `actor` is whom it happens to. */
  after(ms: number, run: () => void, actor?: Actor): void {
    this.push({ at: this.now + Math.max(0, ms), order: this.order++, run, actor });
  }

  /** Lets the world go on until the time is up, or until `isDone` says so after one of its steps. */
  async runUntil(endAt: number, isDone: () => boolean = () => false): Promise<void> {
    while (this.heap.length > 0 && this.heap[0]!.at <= endAt) {
      const next = this.pop();
      if (next.actor !== undefined && !next.actor.alive) continue;
      if (next.actor !== undefined && next.actor.pausedUntil > next.at) {
        this.push({ ...next, at: next.actor.pausedUntil });
        continue;
      }
      this.now = Math.max(this.now, next.at);
      next.run();
      await settled();
      if (isDone()) return;
    }
    this.now = Math.max(this.now, endAt);
  }

  private push(item: Planned): void {
    const { heap } = this;
    let i = heap.length;
    heap.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(item, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = item;
  }

  private pop(): Planned {
    const { heap } = this;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return top;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.at !== b.at ? a.at < b.at : a.order < b.order;
}

/**
 * Everything that promises set off has run when a tick comes. A turn of the event loop would say the same, and cost more
 * than most steps.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
