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

/**
 * Runs work that should end within a time, is asked to stop when it did not, and is left behind when it does not listen.
 * Work that kept the event loop busy beyond its time is late as well, though no timer could fire meanwhile. Never rejects.
 */
export async function underTimeLimit<Value>(
  work: () => Promise<Value> | Value,
  { host, softMs, hardMs, abort }: TimeLimit,
): Promise<Ending<Value>> {
  const startedAtMs = host.monotonicMs();
  const soft = new AbortController();
  const hard = new AbortController();
  const asked = (): void => soft.abort(ENDED);
  abort.signal.addEventListener("abort", asked, { once: true });

  let isLate = false;
  const ending = Promise.resolve()
    .then(work)
    .then(
      (value): Ending<Value> => ({ kind: "returned", value }),
      (error: unknown): Ending<Value> => ({ kind: "threw", error }),
    );
  const giveUp = async (): Promise<undefined> => {
    await host.sleep(softMs, soft.signal);
    if (hard.signal.aborted) return undefined;
    if (!soft.signal.aborted) {
      isLate = true;
      abort.abort();
    }
    await host.sleep(hardMs, hard.signal);
    return undefined;
  };
  const first = await Promise.race([ending, giveUp()]);
  abort.signal.removeEventListener("abort", asked);
  hard.abort(ENDED);
  soft.abort(ENDED);
  if (first === undefined) return { kind: "deaf", over: ending.then(() => undefined) };
  return isLate || host.monotonicMs() - startedAtMs > softMs ? { kind: "late" } : first;
}
