import type { Host } from "../host/host.ts";

/** A difference that the way to the store and back explains. */
const CLOCK_NOISE_MS = 500;

/**
 * The time of one partition: where its last commit or the store's clock stood when we took it, plus what has passed
 * since by our monotonic clock. It never goes back, whatever wall clocks do, and every event carries it.
 */
export class PartitionTime {
  private readonly host: Host;
  private readonly baseMs: number;
  private readonly baseMonotonicMs: number;
  private calendarOffsetMs: number;

  constructor(host: Host, lastTimeMs: number, storeTimeMs: number) {
    this.host = host;
    this.baseMs = Math.max(lastTimeMs, storeTimeMs);
    this.baseMonotonicMs = host.monotonicMs();
    this.calendarOffsetMs = storeTimeMs - this.baseMs;
  }

  nowMs(): number {
    return Math.floor(this.baseMs + (this.host.monotonicMs() - this.baseMonotonicMs));
  }

  /** The store's clock as of now: what calendar moments are judged by. */
  calendarMs(): number {
    return this.nowMs() + this.calendarOffsetMs;
  }

  /** Every renewal brings the store's clock. Tells whether it was set, or ours has slept: dates come at another time. */
  sync(storeTimeMs: number): boolean {
    const before = this.calendarOffsetMs;
    this.calendarOffsetMs = storeTimeMs - this.nowMs();
    return Math.abs(this.calendarOffsetMs - before) > CLOCK_NOISE_MS;
  }

  /** How far the two have drifted apart; above a few seconds somebody should know. */
  get driftMs(): number {
    return this.calendarOffsetMs;
  }
}
