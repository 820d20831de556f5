import { randomBytes } from "node:crypto";
import type { Host } from "./host.ts";

/** `setTimeout` fires at once for anything longer: 2³¹ − 1 ms, about 24.8 days. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** The real machine. */
export const nodeHost: Host = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
  id: () => randomBytes(8).toString("hex"),
  sleep,
};

/** Waits in pieces that `setTimeout` can hold. */
async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let leftMs = ms;
  while (leftMs > 0 && signal?.aborted !== true) {
    const pieceMs = Math.min(leftMs, LONGEST_TIMEOUT_MS);
    await once(pieceMs, signal);
    leftMs -= pieceMs;
  }
}

function once(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
