import type { Host } from "../host/host.ts";
import type { CommitOutcome, ReadRequest, Settlement, SettleOutcome } from "./contract.ts";

/** A result that an owner in this process was given, and whose commit is not there yet. */
export interface Handed {
  readonly settlement: Settlement;
  readonly sinceMs: number;
  readonly resolve: (outcome: SettleOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export interface HandOverOptions {
  readonly host: Host;
  /** Takes a result the long way: removes the task and appends the result to the inbox, in one step. */
  readonly settle: (results: readonly Settlement[]) => Promise<readonly SettleOutcome[]>;
  /** Lets those look who read from these partitions. */
  readonly wake: (partitions: ReadonlySet<number>) => void;
}

/** How long the commit of a result may take before it goes the long way: a task's lease lasts much longer. */
const PATIENCE_MS = 500;

/** So many results at once are a sign of load, and travel together the long way. */
const MOST_HANDED = 16;

/**
 * The short way of a result: where a worker and the owner who waits for it are in one process, the result need not go
 * through the store's inbox. The owner is given it, and the commit that consumes it removes the task as well. Until then
 * nothing has been said to anybody: the worker keeps the task, and if the process dies the lease runs out.
 *
 * Only completions, which an inbox takes whether or not the task is still out; and only while a read waits: whoever is
 * busy has more to read than one result, and workers should not wait for it. What is not committed soon, or by somebody
 * who is fenced, goes the long way. Then it may come twice, as any completion may, and the owner judges it.
 */
export class HandOver {
  readonly #options: HandOverOptions;
  /** How many reads wait, by partition. */
  readonly #readers = new Map<number, number>();
  readonly #handed = new Map<number, Set<Handed>>();
  readonly #closing = new AbortController();
  #isWatched = false;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** Reads, and takes results meanwhile. */
  async whileReading<Found>(requests: readonly ReadRequest[], read: () => Promise<Found>): Promise<Found> {
    this.#count(requests, 1);
    try {
      return await read();
    } finally {
      this.#count(requests, -1);
    }
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const awaited = results.length > MOST_HANDED ? [] : results.filter((result) => this.#isAwaited(result));
    if (awaited.length === 0) return this.#options.settle(results);
    const isHanded = new Set(awaited);
    const outcomes = new Map<Settlement, SettleOutcome>();
    const handing = awaited.map(async (result) => outcomes.set(result, await this.#hand(result)));
    this.#options.wake(new Set(awaited.map(({ partition }) => partition)));
    void this.#watch();
    const rest = results.filter((result) => !isHanded.has(result));
    const posting = rest.length === 0 ? [] : this.#options.settle(rest);
    const [posted] = await Promise.all([posting, ...handing]);
    for (const [i, result] of rest.entries()) outcomes.set(result, posted[i]!);
    return results.map((result) => outcomes.get(result)!);
  }

  /** What is to be read beyond `inFlight`, as far as the request has room. */
  given({ partition, limit, maxChars }: ReadRequest, inFlight: readonly Handed[]): readonly Handed[] {
    const given: Handed[] = [];
    let chars = 0;
    for (const one of this.#handed.get(partition) ?? []) {
      if (inFlight.includes(one)) continue;
      chars += one.settlement.text.length;
      if (given.length >= limit || (chars > maxChars && given.length > 0)) break;
      given.push(one);
    }
    return given;
  }

  /** The batch that consumes them has an outcome. One that is refused may come again, with the same memory or another. */
  decided(handed: readonly Handed[], outcome: CommitOutcome["kind"]): void {
    if (handed.length === 0 || outcome === "refused") return;
    const taken = handed.filter((one) => this.#forget(one));
    if (outcome === "fenced") void this.#post(taken);
    else for (const { resolve } of taken) resolve("settled");
  }

  /** Nothing is waited for any more: what is under way is neither settled nor refused. */
  close(): void {
    this.#closing.abort();
    for (const handed of this.#all()) {
      this.#forget(handed);
      handed.reject(new Error("the store was closed before the result was committed"));
    }
  }

  #isAwaited({ partition, outcome }: Settlement): boolean {
    return outcome === "completed" && !this.#closing.signal.aborted && this.#readers.has(partition);
  }

  #hand(settlement: Settlement): Promise<SettleOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<SettleOutcome>();
    const { partition } = settlement;
    let handed = this.#handed.get(partition);
    if (handed === undefined) this.#handed.set(partition, (handed = new Set()));
    handed.add({ settlement, sinceMs: this.#options.host.monotonicMs(), resolve, reject });
    return promise;
  }

  /** False if it was forgotten before. */
  #forget(one: Handed): boolean {
    const { partition } = one.settlement;
    const handed = this.#handed.get(partition);
    const isKnown = handed?.delete(one) ?? false;
    if (handed?.size === 0) this.#handed.delete(partition);
    return isKnown;
  }

  async #post(handed: readonly Handed[]): Promise<void> {
    if (handed.length === 0) return;
    try {
      const outcomes = await this.#options.settle(handed.map(({ settlement }) => settlement));
      for (const [i, { resolve }] of handed.entries()) resolve(outcomes[i]!);
    } catch (error) {
      for (const { reject } of handed) reject(error);
    }
  }

  /** One at a time looks after all of them. */
  async #watch(): Promise<void> {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const { host } = this.#options;
    while (this.#handed.size > 0) {
      await host.sleep(PATIENCE_MS / 2, this.#closing.signal);
      const dueMs = host.monotonicMs() - PATIENCE_MS;
      const late = this.#all().filter((one) => one.sinceMs <= dueMs && this.#forget(one));
      void this.#post(late);
    }
    this.#isWatched = false;
  }

  #all(): readonly Handed[] {
    return [...this.#handed.values()].flatMap((handed) => [...handed]);
  }

  #count(requests: readonly ReadRequest[], by: 1 | -1): void {
    for (const { partition } of requests) {
      const count = (this.#readers.get(partition) ?? 0) + by;
      if (count === 0) this.#readers.delete(partition);
      else this.#readers.set(partition, count);
    }
  }
}

/** As many as fit; the first is always given, since one too long for every reader would block its partition for ever. */
export function fitting({ limit, maxChars }: ReadRequest, texts: readonly string[]): readonly string[] {
  let chars = 0;
  const end = texts.findIndex((text, i) => (chars += text.length) > maxChars && i > 0);
  return texts.slice(0, Math.min(limit, end === -1 ? texts.length : end));
}
