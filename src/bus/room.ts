import type { Host } from "../host/host.ts";
import type { Queries } from "../store/contract.ts";

export interface RoomParts {
  readonly queries: Pick<Queries, "counts">;
  readonly host: Host;
  /** So many tasks of a queue are out at a time. */
  readonly window: number;
}

/** What was counted is believed for so long; of a queue that is full, for less. */
const LOOK_MS = 1_000;
const FULL_LOOK_MS = 200;

/** How many tasks of each queue may still go out. One look into the store is for all queues. */
export class Room {
  readonly #parts: RoomParts;
  #leasedOf: Readonly<Record<string, number>> = {};
  #lookedAtMs = -Infinity;
  #looking: Promise<void> | undefined;
  /** What was taken since it was counted. */
  readonly #taken = new Map<string, number>();

  constructor(parts: RoomParts) {
    this.#parts = parts;
  }

  async of(queue: string): Promise<number> {
    const ageMs = this.#parts.host.monotonicMs() - this.#lookedAtMs;
    if (ageMs >= LOOK_MS || (this.#left(queue) <= 0 && ageMs >= FULL_LOOK_MS)) {
      this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
      await this.#looking;
    }
    return Math.max(0, this.#left(queue));
  }

  take(queue: string, tasks: number): void {
    this.#taken.set(queue, (this.#taken.get(queue) ?? 0) + tasks);
  }

  #left(queue: string): number {
    return this.#parts.window - (this.#leasedOf[queue] ?? 0) - (this.#taken.get(queue) ?? 0);
  }

  /** What is taken meanwhile may be counted or not: until the next look it is taken for both. */
  async #look(): Promise<void> {
    const { queries, host } = this.#parts;
    const askedAtMs = host.monotonicMs();
    const before = new Map(this.#taken);
    const { leasedOf = {} } = await queries.counts();
    this.#leasedOf = leasedOf;
    this.#lookedAtMs = askedAtMs;
    for (const [queue, tasks] of before) this.#taken.set(queue, this.#taken.get(queue)! - tasks);
  }
}
