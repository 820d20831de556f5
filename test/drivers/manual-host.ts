import type { Host } from "../../src/host/host.ts";

/** A machine whose time moves when a test says so. */
export interface ManualHost extends Host {
  advance(ms: number): Promise<void>;
  /** Somebody sets the wall clock back, or ahead if this is negative; how long things take does not change. */
  setWallBack(ms: number): void;
}

export function createManualHost(): ManualHost {
  let nowMs = 1_700_000_000_000;
  let wallOffsetMs = 0;
  let ids = 0;
  const sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>();
  return {
    wallMs: () => nowMs + wallOffsetMs,
    monotonicMs: () => nowMs,
    random: () => 0.5,
    id: () => (++ids).toString(16).padStart(16, "0"),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = {
          atMs: nowMs + ms,
          wake: () => {
            sleepers.delete(sleeper);
            resolve();
          },
        };
        if (signal?.aborted === true) resolve();
        else sleepers.add(sleeper);
        signal?.addEventListener("abort", sleeper.wake, { once: true });
      }),
    setWallBack: (ms) => {
      wallOffsetMs -= ms;
    },
    advance: async (ms) => {
      // What was woken before has its turn first, then the clock moves, then what became due has its turn.
      await settled();
      nowMs += ms;
      for (const sleeper of [...sleepers].sort((a, b) => a.atMs - b.atMs)) if (sleeper.atMs <= nowMs) sleeper.wake();
      await settled();
    },
  };
}

/** All promises that can go on have gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
