import type { Host } from "../host/host.ts";

/** How work under a time limit ended. */
export type Ending<Value> =
  | { readonly kind: "returned"; readonly value: Value }
  | { readonly kind: "threw"; readonly error: unknown }
  /** After its time: what it returned or threw does not count. */
  | { readonly kind: "late" }
  /** It did not mind being asked to stop. `over` resolves when it ends after all, if ever. */
  | { readonly kind: "deaf"; readonly over: Promise<void> };

export interface TimeLimit {
  readonly host: Host;
  /** When the work is asked to stop, unless somebody asked before. */
  readonly softMs: number;
  /** How long after being asked it is given up. */
  readonly hardMs: number;
  /** How the work is asked. */
  readonly abort: AbortController;
}

/** A reason of our own: making up an exception with its stack for every task is dear. */
const ENDED = "ended";

/** How often the others have their turn before a timer is set. What is over by then, as most is, never needs one. */
const TURNS = 8;
const A_TURN = Promise.resolve();

/**
 * Runs work that should end within a time, is asked to stop when it did not, and is left behind when it does not listen.
 * Work that kept the event loop busy beyond its time is late as well, though no timer could fire meanwhile. What ends at
 * once is answered at once. Never throws or rejects.
 */
export function underTimeLimit<Value>(
  work: () => Promise<Value> | Value,
  limit: TimeLimit,
): Ending<Value> | Promise<Ending<Value>> {
  const startedAtMs = limit.host.monotonicMs();
  try {
    const value = work();
    if (isPromise(value)) return waitFor(value, startedAtMs, limit);
    return judge({ kind: "returned", value }, startedAtMs, limit);
  } catch (error) {
    return judge({ kind: "threw", error }, startedAtMs, limit);
  }
}

function judge<Value>(ending: Ending<Value>, startedAtMs: number, { host, softMs }: TimeLimit): Ending<Value> {
  return host.monotonicMs() - startedAtMs > softMs ? { kind: "late" } : ending;
}

async function waitFor<Value>(
  value: PromiseLike<Value>,
  startedAtMs: number,
  limit: TimeLimit,
): Promise<Ending<Value>> {
  let ended: Ending<Value> | undefined;
  const ending = Promise.resolve(value).then(
    (value): Ending<Value> => (ended = { kind: "returned", value }),
    (error: unknown): Ending<Value> => (ended = { kind: "threw", error }),
  );
  for (let turn = 0; turn < TURNS && ended === undefined; turn++) await A_TURN;
  if (ended !== undefined) return judge(ended, startedAtMs, limit);
  const watch = new Watch(limit, startedAtMs);
  const first = await Promise.race([ending, watch.givenUp()]);
  watch.end();
  if (first === undefined) return { kind: "deaf", over: ending.then(() => undefined) };
  return watch.isLate ? { kind: "late" } : judge(first, startedAtMs, limit);
}

/** Looks after work that takes its time. */
class Watch {
  isLate = false;
  readonly #limit: TimeLimit;
  readonly #startedAtMs: number;
  /** Ends the first wait: the work has ended, or somebody has asked it to. */
  readonly #soft = new AbortController();
  readonly #hard = new AbortController();
  readonly #asked = (): void => this.#soft.abort(ENDED);

  constructor(limit: TimeLimit, startedAtMs: number) {
    this.#limit = limit;
    this.#startedAtMs = startedAtMs;
    const { signal } = limit.abort;
    if (signal.aborted) this.#asked();
    else signal.addEventListener("abort", this.#asked, { once: true });
  }

  /** Resolves when the work was asked to stop and has not listened. */
  async givenUp(): Promise<undefined> {
    const { host, softMs, hardMs, abort } = this.#limit;
    await host.sleep(softMs - (host.monotonicMs() - this.#startedAtMs), this.#soft.signal);
    if (this.#hard.signal.aborted) return undefined;
    if (!this.#soft.signal.aborted) {
      this.isLate = true;
      abort.abort();
    }
    await host.sleep(hardMs, this.#hard.signal);
    return undefined;
  }

  end(): void {
    this.#limit.abort.signal.removeEventListener("abort", this.#asked);
    this.#hard.abort(ENDED);
    this.#soft.abort(ENDED);
  }
}

function isPromise<Value>(value: PromiseLike<Value> | Value): value is PromiseLike<Value> {
  return typeof (value as Partial<PromiseLike<Value>> | null | undefined)?.then === "function";
}
