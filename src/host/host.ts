/**
 * All that the shells know of the machine they run on: time, randomness, waiting. Injected everywhere, so that the
 * simulator can run the production code in a world of its own, from one seed.
 */
export interface Host {
  /** The wall clock. It may jump; nothing but a store's own clock and what people read is made of it. */
  wallMs(): number;
  /** Never goes back; stands still while the machine sleeps. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when the signal is aborted; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Uniform in [0, 1). */
  random(): number;
  /** A new random name: 16 hex digits. */
  id(): string;
}
