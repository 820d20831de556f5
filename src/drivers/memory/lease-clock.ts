import type { Host } from "../../host/host.ts";

/**
 * The store's clock for leases: the wall clock, but never backwards. A wall clock that is set back an hour would make
 * every lease of a dead owner last an hour longer.
 */
export class LeaseClock {
  readonly #host: Host;
  #lastWallMs: number;
  #offsetMs = 0;

  constructor(host: Host) {
    this.#host = host;
    this.#lastWallMs = host.wallMs();
  }

  nowMs(): number {
    const wallMs = this.#host.wallMs();
    if (wallMs < this.#lastWallMs) this.#offsetMs += this.#lastWallMs - wallMs;
    this.#lastWallMs = wallMs;
    return wallMs + this.#offsetMs;
  }
}
