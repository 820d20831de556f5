/** How an engine behaves. Every bound is here; the store's own bounds are in its capabilities. */
export interface EngineSettings {
  /** How long a partition stays ours without a renewal. Short moves work quickly, and moves it without need. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** The longest an engine sleeps without looking: wake-ups are hints. */
  readonly idleMs: number;
  /** Events one decision may give; the rest follows by `advance`. */
  readonly maxEvents: number;
  /** Unsettled tasks per partition and queue; ready nodes beyond it wait in the owner. */
  readonly window: number;
  /** Entities in memory per partition; above it the ones idle longest leave. */
  readonly maxResidents: number;
  /** Entities in memory in all: partitions have equal shares, so that memory is bounded however many of them are ours. */
  readonly maxResidentsInAll: number;
  /** Snapshot after this many events, or more for a large state, so that loading costs what the state weighs. */
  readonly snapshotEvents: number;
  /** Of what lives for ever: after so many events it says all it is in one, and what was before goes. */
  readonly renewEvents: number;
  /** How far ahead the owner knows the wake times of entities that are not in memory. */
  readonly horizonMs: number;
  /** Entities that are woken in one batch. */
  readonly maxWakes: number;
  /**
   * How many entries a batch has that is sent while another is under way, where the store queues commits: each costs a sync of its own, and
   * what is smaller gathers until that one has ended.
   */
  readonly followEntries: number;
  /** How long an entity is kept after it has ended; null = for ever. */
  readonly retentionMs: number | null;
  /** How many entities are kept that have ended, where the store counts them; null = any number. */
  readonly keepEnded: number | null;
  /** How often it is proved of an entity in memory that everything in it that waits has something to wait for. */
  readonly sweepMs: number;
  /** How often a decision may throw before its entity is quarantined. */
  readonly maxTries: number;
  /** Check the whole state after every decision, not only what it touched. */
  readonly checkWhole: boolean;
  /** How journals are copied to an archive; null if there is none. */
  readonly shipping: ShippingSettings | null;
}

export interface ShippingSettings {
  readonly everyMs: number;
  /** What was committed within this time may still be lost by the store, and is not shipped. */
  readonly windowMs: number;
  /** How long what has ended stays in the store after it was shipped. */
  readonly keepMs: number;
}

export const DEFAULT_SETTINGS: EngineSettings = {
  leaseMs: 4_000,
  renewMs: 1_000,
  idleMs: 1_000,
  maxEvents: 256,
  window: 1_000,
  maxResidents: 10_000,
  maxResidentsInAll: 20_000,
  snapshotEvents: 1_000,
  renewEvents: 2_000,
  horizonMs: 60_000,
  maxWakes: 200,
  followEntries: 100,
  retentionMs: null,
  keepEnded: null,
  sweepMs: 600_000,
  maxTries: 3,
  checkWhole: false,
  shipping: null,
};

export const DEFAULT_SHIPPING: ShippingSettings = { everyMs: 1_000, windowMs: 0, keepMs: 600_000 };
