import type { Host } from "../../host/host.ts";

interface Waiter {
  readonly keys: readonly string[];
  readonly untilMs: number;
  /** Whether the time is up. */
  readonly woken: Promise<boolean>;
  readonly wake: (isTimeUp: boolean) => void;
}

interface Timer {
  readonly atMs: number;
  readonly abort: AbortController;
}

/** A reason of our own: making up an exception with its stack is dear. */
const DONE = "done";
/** So many are looked through for a millisecond that the timer rests: with very many of them it would do nothing else. */
const LOOKS_PER_MS = 1_000;

/**
 * Those who wait for something to appear in the store, by what they wait for, first come first. One timer is enough for all
 * of them: nearly everybody is woken long before the time is up, and a timer for each, with what ends it, cost a quiet step
 * more than the waiting itself.
 */
export class Waiters {
  readonly #host: Host;
  readonly #byKey = new Map<string, Set<Waiter>>();
  readonly #all = new Set<Waiter>();
  /** Fires when the first time is up, or shortly after; who is gone by then leaves it running. */
  #timer: Timer | undefined;
  #closed = false;

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Attempts now, synchronously, and again after every wake-up, until there is something or the time is up. Somebody
   * else may have been faster than the one who was woken; so it just waits on.
   */
  async until<Found>(
    keys: readonly string[],
    waitMs: number,
    attempt: () => Found | undefined,
  ): Promise<Found | undefined> {
    const found = attempt();
    // Also of what is no number nobody waits: it would be the end of the timer for all.
    if (found !== undefined || !(waitMs > 0) || this.#closed) return found;
    const untilMs = this.#host.monotonicMs() + waitMs;
    for (;;) {
      const waiter = this.#enter(keys, untilMs);
      const isTimeUp = await waiter.woken;
      this.#leave(waiter);
      // A store that was closed hands out nothing: nobody may be there to take it.
      const found = this.#closed ? undefined : attempt();
      if (found !== undefined || isTimeUp || this.#closed) return found;
    }
  }

  /** One thing appeared that only one can have: waking all would only make them collide. */
  wakeOne(key: string): void {
    // Under load nobody waits, and this is asked for every task and every message.
    const waiter = this.#byKey.size === 0 ? undefined : this.#byKey.get(key)?.values().next().value;
    if (waiter === undefined) return;
    this.#leave(waiter);
    waiter.wake(false);
  }

  wakeAll(key: string): void {
    const waiters = this.#byKey.size === 0 ? undefined : this.#byKey.get(key);
    if (waiters !== undefined) for (const waiter of waiters) waiter.wake(false);
  }

  wakeEverybody(): void {
    for (const waiter of this.#all) waiter.wake(false);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.abort.abort(DONE);
    this.#timer = undefined;
    this.wakeEverybody();
  }

  #enter(keys: readonly string[], untilMs: number): Waiter {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter: Waiter = { keys, untilMs, woken: promise, wake: resolve };
    this.#all.add(waiter);
    if (this.#timer === undefined || untilMs < this.#timer.atMs) void this.#wakeAt(untilMs);
    for (const key of keys) {
      const waiters = this.#byKey.get(key);
      if (waiters === undefined) this.#byKey.set(key, new Set([waiter]));
      else waiters.add(waiter);
    }
    return waiter;
  }

  /** Wakes those whose time is up by then, and goes on for the others. */
  async #wakeAt(atMs: number): Promise<void> {
    this.#timer?.abort.abort(DONE);
    const timer: Timer = { atMs, abort: new AbortController() };
    this.#timer = timer;
    await this.#host.sleep(atMs - this.#host.monotonicMs(), timer.abort.signal);
    // Another is there since, which fires earlier.
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    // Of a sleep that ended a little early: it is the time all the same.
    const nowMs = Math.max(atMs, this.#host.monotonicMs());
    let nextMs = Infinity;
    for (const waiter of this.#all) {
      if (waiter.untilMs <= nowMs) waiter.wake(true);
      else nextMs = Math.min(nextMs, waiter.untilMs);
    }
    if (nextMs < Infinity) void this.#wakeAt(Math.max(nextMs, nowMs + this.#all.size / LOOKS_PER_MS));
  }

  #leave(waiter: Waiter): void {
    this.#all.delete(waiter);
    for (const key of waiter.keys) {
      const waiters = this.#byKey.get(key);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#byKey.delete(key);
    }
  }
}
