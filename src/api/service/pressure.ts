import type { Host } from "../../host/host.ts";
import type { Counts, Registration, Store } from "../../store/contract.ts";
import { serving } from "./handler-directory.ts";
import { Refusal } from "./refusal.ts";
import { type Soon, soon } from "./soon.ts";

/** Beyond these, new work is refused; what was accepted goes on. */
export interface HighWater {
  /** How long a task may wait in a queue that somebody serves; 0 = for ever. */
  readonly queueAgeMs: number;
  /** Of what the store may hold, from 0 to 1. */
  readonly fill: number;
  /** Of what this process may use, from 0 to 1. */
  readonly memory: number;
}

/** Why new work is refused. */
export interface Closed {
  readonly by: "queue_age" | "store" | "memory";
  readonly sentence: string;
}

export interface PressureParts {
  readonly store: Store;
  readonly host: Host;
  readonly highWater?: HighWater;
  /** The part of its memory that this process uses. */
  readonly memory?: () => number;
}

const DEFAULT_HIGH_WATER: HighWater = { queueAgeMs: 3_600_000, fill: 0.75, memory: 0.9 };

/** How long a look at the store is good for. */
const FRESH_MS = 1_000;
const RETRY_AFTER_SECONDS = 5;

/** Whether there is room for new work, in the store, in the queues and in this process. */
export class Pressure {
  readonly #store: Store;
  readonly #host: Host;
  readonly #highWater: HighWater;
  readonly #memory: () => number;
  #closed: Closed | undefined;
  #lookedAtMs = -Infinity;
  #looking: Promise<void> | undefined;

  constructor({ store, host, highWater = DEFAULT_HIGH_WATER, memory = () => 0 }: PressureParts) {
    this.#store = store;
    this.#host = host;
    this.#highWater = highWater;
    this.#memory = memory;
  }

  /** Refuses new work while there is too much of it. */
  check(): Soon<void> {
    return soon(this.closed(), refuse);
  }

  /** What stands in the way of new work; undefined if nothing does. */
  closed(): Soon<Closed | undefined> {
    const used = this.#memory();
    if (used > this.#highWater.memory) {
      return { by: "memory", sentence: `this process uses ${percent(used)} of its memory` };
    }
    if (this.#host.monotonicMs() - this.#lookedAtMs > FRESH_MS) {
      this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
      // Only the first request waits: a store that is slow to count must not slow down everybody.
      if (this.#lookedAtMs === -Infinity) return this.#looking.then(() => this.#closed);
    }
    return this.#closed;
  }

  async #look(): Promise<void> {
    try {
      const [counts, registrations] = await Promise.all([
        this.#store.queries.counts(),
        this.#store.records.registered(),
      ]);
      this.#closed = closedBy(counts, registrations, this.#highWater);
    } catch {
      // A store that does not answer refuses by itself.
      this.#closed = undefined;
    }
    this.#lookedAtMs = this.#host.monotonicMs();
  }
}

function refuse(closed: Closed | undefined): void {
  if (closed === undefined) return;
  const code = closed.by === "store" ? "STORE_FULL" : "OVERLOADED";
  const detail = `New work is refused: ${closed.sentence}. Try again a little later.`;
  throw new Refusal(code, {}, { detail, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** A queue that nobody serves says nothing about how much can be done. */
export function closedBy(
  counts: Counts,
  registrations: readonly Registration[],
  { queueAgeMs, fill }: HighWater,
): Closed | undefined {
  if (counts.isFull === true) return { by: "store", sentence: "the store has no room left" };
  if (counts.fill !== undefined && counts.fill > fill) {
    return { by: "store", sentence: `the store is ${percent(counts.fill)} full` };
  }
  if (queueAgeMs === 0) return undefined;
  const served = serving(registrations);
  for (const [queue, atMs] of Object.entries(counts.oldestAtMs ?? {})) {
    const ageMs = counts.storeTimeMs - atMs;
    if (ageMs <= queueAgeMs || !served.has(queue)) continue;
    return { by: "queue_age", sentence: `a task waits in queue "${queue}" for ${Math.round(ageMs / 1_000)} s` };
  }
  return undefined;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}
