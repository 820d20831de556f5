import type { RetryPolicy } from "../../definition/workflow.ts";

/** A server may ask for a longer wait than ours, but not for one that outlives everybody's patience. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * How long to wait after attempt n has failed: min(max, base · exp^(n−1)) · (1 + U(0, jitter)), or what the server
 * asked for if that is longer.
 *
 * @param random uniform in [0, 1)
 */
export function backoffMs(retry: RetryPolicy, attempt: number, random: number, retryAfterMs = 0): number {
  const raw = retry.base_delay_seconds * Math.pow(retry.exponential_base, attempt - 1);
  const capped = Math.min(retry.max_delay_seconds, raw);
  const ownMs = Math.round(capped * 1000 * (1 + random * retry.jitter));
  return Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
