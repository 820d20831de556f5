import type { Host } from "../../host/host.ts";
import { Refusal } from "../service/refusal.ts";

/** Wrong keys from one address within a minute before it is told to wait. */
const MAX_FAILURES = 30;
const FAILURE_WINDOW_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** Whoever tries one key after the other is slowed down. */
export class WrongKeys {
  readonly #host: Host;
  readonly #failures = new Map<string, { count: number; sinceMs: number }>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Throws if it was one too many. */
  count(address: string): void {
    const nowMs = this.#host.monotonicMs();
    if (this.#failures.size > MAX_ADDRESSES) this.#failures.clear();
    const before = this.#failures.get(address);
    const failures =
      before === undefined || nowMs - before.sinceMs > FAILURE_WINDOW_MS ? { count: 0, sinceMs: nowMs } : before;
    failures.count++;
    this.#failures.set(address, failures);
    if (failures.count <= MAX_FAILURES) return;
    const retryAfterSeconds = Math.max(1, (failures.sinceMs + FAILURE_WINDOW_MS - nowMs) / 1000);
    throw new Refusal("RATE_LIMITED", { reason: "Too many wrong keys from this address" }, { retryAfterSeconds });
  }
}
