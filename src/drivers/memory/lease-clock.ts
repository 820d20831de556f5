import type { Host } from "../../host/host.ts";

/** Whoever runs looks once a second, for leases that ran out: between two looks further apart it stood still. */
const LONGEST_STEP_MS = 3_000;

/**
 * The store's clock for leases. It begins at the wall clock, and goes on by how long things take: a wall clock that is
 * set would end the leases of the living, or make those of the dead last. While this process or its machine stands still
 * nobody can renew a lease, so that time does not count.
 */
export class LeaseClock {
  readonly #host: Host;
  readonly #aheadMs: number;
  #lookedAtMs: number;
  #nowMs: number;

  constructor(host: Host) {
    this.#host = host;
    this.#lookedAtMs = host.monotonicMs();
    this.#nowMs = host.wallMs();
    this.#aheadMs = this.#nowMs - this.#lookedAtMs;
  }

  nowMs(): number {
    const atMs = this.#host.monotonicMs();
    this.#nowMs += Math.min(atMs - this.#lookedAtMs, LONGEST_STEP_MS);
    this.#lookedAtMs = atMs;
    return this.#nowMs;
  }

  /** The same with standstills counted, for what is kept for a time and is nobody's lease. */
  steadyMs(): number {
    return this.#aheadMs + this.#host.monotonicMs();
  }
}
