import type { Host } from "../../host/host.ts";

interface Waiter {
  readonly keys: readonly string[];
  /** Answers false: the time is not up. */
  readonly woken: Promise<false>;
  readonly wake: () => void;
}

/** A reason of our own: making up an exception with its stack for every wait is dear. */
const DONE = "done";

/** Those who wait for something to appear in the store, by what they wait for, first come first. */
export class Waiters {
  readonly #host: Host;
  readonly #byKey = new Map<string, Set<Waiter>>();
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
    if (found !== undefined || waitMs <= 0 || this.#closed) return found;
    const timer = new AbortController();
    const timeUp = this.#host.sleep(waitMs, timer.signal).then(() => true);
    for (;;) {
      const waiter = this.#enter(keys);
      const isTimeUp = await Promise.race([waiter.woken, timeUp]);
      this.#leave(waiter);
      // A store that was closed hands out nothing: nobody may be there to take it.
      const found = this.#closed ? undefined : attempt();
      if (found === undefined && !isTimeUp && !this.#closed) continue;
      timer.abort(DONE);
      return found;
    }
  }

  /** One thing appeared that only one can have: waking all would only make them collide. */
  wakeOne(key: string): void {
    // Under load nobody waits, and this is asked for every task and every message.
    const waiter = this.#byKey.size === 0 ? undefined : this.#byKey.get(key)?.values().next().value;
    if (waiter === undefined) return;
    this.#leave(waiter);
    waiter.wake();
  }

  wakeAll(key: string): void {
    const waiters = this.#byKey.size === 0 ? undefined : this.#byKey.get(key);
    if (waiters !== undefined) for (const waiter of waiters) waiter.wake();
  }

  wakeEverybody(): void {
    for (const waiters of this.#byKey.values()) for (const waiter of waiters) waiter.wake();
  }

  close(): void {
    this.#closed = true;
    this.wakeEverybody();
  }

  #enter(keys: readonly string[]): Waiter {
    const { promise, resolve } = Promise.withResolvers<false>();
    const waiter: Waiter = { keys, woken: promise, wake: () => resolve(false) };
    for (const key of keys) {
      const waiters = this.#byKey.get(key);
      if (waiters === undefined) this.#byKey.set(key, new Set([waiter]));
      else waiters.add(waiter);
    }
    return waiter;
  }

  #leave(waiter: Waiter): void {
    for (const key of waiter.keys) {
      const waiters = this.#byKey.get(key);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#byKey.delete(key);
    }
  }
}
