/** Room for so many tasks at a time, from these queues. */
export class Slots {
  readonly size: number;
  /** As they are whenever somebody looks. */
  readonly queues: () => readonly string[];
  #taken = 0;
  #freed: (() => void) | undefined;

  constructor(size: number, queues: () => readonly string[]) {
    this.size = size;
    this.queues = queues;
  }

  get free(): number {
    return this.size - this.#taken;
  }

  take(): void {
    this.#taken++;
  }

  give(): void {
    this.#taken--;
    this.wake();
  }

  /** Until a slot is free, or somebody says so. */
  wait(): Promise<void> {
    return new Promise((resolve) => (this.#freed = resolve));
  }

  wake(): void {
    this.#freed?.();
    this.#freed = undefined;
  }
}

/**
 * The slots that all queues share, and for each handler with a number of its own the slots of its queue: what is slow
 * there takes no room from the others, and they none from it.
 */
export function slotsOf(
  shared: number,
  own: ReadonlyMap<string, number>,
  queues: readonly string[],
): readonly [Slots, ...Slots[]] {
  const rest = (): readonly string[] => (own.size === 0 ? queues : queues.filter((queue) => !own.has(queue)));
  const separate = [...own].map(([queue, size]) => new Slots(size, () => (queues.includes(queue) ? [queue] : [])));
  return [new Slots(shared, rest), ...separate];
}
