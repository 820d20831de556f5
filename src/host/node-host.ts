import { randomBytes } from "node:crypto";
import type { Host } from "./host.ts";

/** `setTimeout` fires at once for anything longer: 2³¹ − 1 ms, about 24.8 days. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

const ID_BYTES = 8;
const IDS_AT_ONCE = 256;

/** The real machine. */
export const nodeHost: Host = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
  id,
  sleep,
};

/** Random bytes are drawn for many ids at once: each draw is a call into the system's library. */
let drawn = "";
let used = 0;

function id(): string {
  if (used === drawn.length) {
    drawn = randomBytes(ID_BYTES * IDS_AT_ONCE).toString("hex");
    used = 0;
  }
  used += ID_BYTES * 2;
  return drawn.slice(used - ID_BYTES * 2, used);
}

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
