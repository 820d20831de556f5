import type { Host } from "../../host/host.ts";
import type { Store } from "../../store/contract.ts";
import { Lru } from "./lru.ts";

export interface IngressLimit {
  readonly limit: number;
  readonly windowSeconds: number;
}

export const DEFAULT_INGRESS: IngressLimit = { limit: 60, windowSeconds: 60 };

/** How many of one caller's requests fell into each second. */
type Seconds = Map<number, number>;

/** No worker has a colon in its name: a list of workers leaves these out. */
const NAME = "ingress:";
const SYNC_MS = 1_000;
const MAX_CALLERS = 10_000;
const MAX_TOLD = 500;

/**
 * A sliding window for requests that make work, shared by all processes that serve the API: each tells the others what
 * it has let in. It looks again when a second has passed or a twentieth of the limit was used up since, so that a fleet
 * exceeds the limit by no more than that for each of its processes.
 */
export class Ingress {
  readonly #store: Store;
  readonly #host: Host;
  readonly #process: string;
  readonly #limit: IngressLimit;
  readonly #own = new Lru<Seconds>(MAX_CALLERS);
  readonly #active = new Set<string>();
  #others = new Map<string, Seconds>();
  #syncedAtMs = -Infinity;
  #sinceSync = 0;

  constructor(store: Store, host: Host, limit: IngressLimit) {
    this.#store = store;
    this.#host = host;
    this.#process = NAME + host.id();
    this.#limit = limit;
  }

  /** Counts a request. Gives the seconds after which the caller may try again, if it may not now. */
  async take(caller: string): Promise<number | undefined> {
    const { limit, windowSeconds } = this.#limit;
    if (this.#isStale()) await this.#sync();
    const now = Math.floor(this.#host.wallMs() / 1000);
    const seconds = this.#own.get(caller) ?? new Map<number, number>();
    for (const second of seconds.keys()) if (!isWithin(second, now, windowSeconds)) seconds.delete(second);
    const others = this.#others.get(caller);
    const all = new Map(seconds);
    for (const [second, count] of others ?? []) {
      if (isWithin(second, now, windowSeconds)) all.set(second, (all.get(second) ?? 0) + count);
    }
    let used = 0;
    for (const count of all.values()) used += count;
    if (used >= limit) return waitFor(all, now, windowSeconds, used - limit + 1);
    seconds.set(now, (seconds.get(now) ?? 0) + 1);
    this.#own.set(caller, seconds, 1);
    this.#active.add(caller);
    this.#sinceSync++;
    return undefined;
  }

  #isStale(): boolean {
    if (this.#host.monotonicMs() - this.#syncedAtMs > SYNC_MS) return true;
    return this.#sinceSync >= Math.max(1, this.#limit.limit / 20);
  }

  /** A store that does not answer must not close the door: then each process counts for itself. */
  async #sync(): Promise<void> {
    this.#syncedAtMs = this.#host.monotonicMs();
    this.#sinceSync = 0;
    const { windowSeconds } = this.#limit;
    const now = Math.floor(this.#host.wallMs() / 1000);
    const told: Record<string, [number, number][]> = {};
    for (const caller of this.#active) {
      const seconds = [...(this.#own.get(caller) ?? [])].filter(([second]) => isWithin(second, now, windowSeconds));
      if (seconds.length === 0) this.#active.delete(caller);
      else if (Object.keys(told).length < MAX_TOLD) told[caller] = seconds;
    }
    try {
      const { records } = this.#store;
      const text = JSON.stringify(told);
      if (text !== "{}") await records.register({ process: this.#process, role: "worker", text }, windowSeconds * 1000);
      const others = new Map<string, Seconds>();
      for (const { process, text: theirs } of await records.registered()) {
        if (!process.startsWith(NAME) || process === this.#process) continue;
        for (const [caller, seconds] of Object.entries(JSON.parse(theirs) as typeof told)) add(others, caller, seconds);
      }
      this.#others = others;
    } catch {
      // The next request tries again.
    }
  }
}

/** Clocks of others may be ahead. What is further ahead than a window was counted before a clock was set back. */
function isWithin(second: number, now: number, windowSeconds: number): boolean {
  return Math.abs(now - second) < windowSeconds;
}

function add(all: Map<string, Seconds>, caller: string, seconds: readonly (readonly [number, number])[]): void {
  const known = all.get(caller) ?? new Map<number, number>();
  all.set(caller, known);
  for (const [second, count] of seconds) known.set(second, (known.get(second) ?? 0) + count);
}

/** Until as many have left the window as are too many. */
function waitFor(all: Seconds, now: number, windowSeconds: number, tooMany: number): number {
  let left = tooMany;
  for (const [second, count] of [...all].sort(([a], [b]) => a - b)) {
    left -= count;
    if (left <= 0) return Math.max(1, second + windowSeconds - now);
  }
  return windowSeconds;
}
