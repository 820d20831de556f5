import type { Host } from "../host/host.ts";
import type { Store, Tenure } from "../store/contract.ts";
import type { DefinitionCache } from "./definition-cache.ts";
import type { EngineObserver } from "./observer.ts";
import { type EngineNews, fairShare, readNews, type SeenEngine, unclaimed } from "./fair-share.ts";
import { Owner } from "./owner.ts";
import type { EngineSettings } from "./settings.ts";

/** How often the others are looked at, in parts of a renewal: while all is as it should be, and while it is not. */
const CALM_PARTS = 2;
const HURRY_PARTS = 8;
/** How many partitions are given back at a time: each is without an owner for a moment. */
const GIVEN_AT_A_TIME = 4;

/**
 * Which partitions this engine owns: takes free ones, renews them, gives up what it lost, and shares with the other
 * engines. Nothing is stolen: whoever has too many says so first, and then lets go.
 */
export class Tenures {
  private readonly store: Store;
  private readonly host: Host;
  private readonly settings: EngineSettings;
  private readonly engine: string;
  private readonly observer: EngineObserver;
  private readonly definitions: DefinitionCache;
  private readonly owned = new Map<number, Owner>();
  private taken = new AbortController();
  /** The highest sequence number the store has acknowledged to us, per partition and incarnation. */
  private readonly acknowledged = new Map<number, { incarnation: string; seq: number }>();
  private readonly farewell = new AbortController();
  private nudge = new AbortController();
  private told = { text: "", atMs: -Infinity };
  /** When it last knew who has what, and the others could know what it has. */
  private balancedAtMs = -Infinity;
  /** Since when the others could know that we are leaving. */
  private leavingSinceMs: number | null = null;

  private readonly repaired = (key: string, count: number): void => this.observer.repaired?.(key, count);

  constructor(
    store: Store,
    host: Host,
    settings: EngineSettings,
    engine: string,
    observer: EngineObserver,
    definitions: DefinitionCache,
  ) {
    this.store = store;
    this.host = host;
    this.settings = settings;
    this.engine = engine;
    this.observer = observer;
    this.definitions = definitions;
  }

  owners(): Owner[] {
    return [...this.owned.values()];
  }

  /** Whether it has what it should, or stands by for it: the store has answered it within the time of a lease. */
  get isCurrent(): boolean {
    return this.host.monotonicMs() - this.balancedAtMs < this.settings.leaseMs;
  }

  /** Aborted when giving everything back begins: nothing is worth waiting for any more. */
  get handingOver(): AbortSignal {
    return this.farewell.signal;
  }

  /** Waits until a partition is taken; for at most this long. */
  async untilTaken(waitMs: number): Promise<void> {
    await this.host.sleep(waitMs, this.taken.signal);
  }

  /** Renews and balances until it is told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    const { renewMs } = this.settings;
    let renewAtMs = -Infinity;
    const stop = (): void => {
      this.nudge.abort();
      this.taken.abort();
    };
    signal.addEventListener("abort", stop, { once: true });
    while (!signal.aborted) {
      let parts = CALM_PARTS;
      try {
        if (this.host.monotonicMs() >= renewAtMs) {
          renewAtMs = this.host.monotonicMs() + renewMs;
          await this.renewNow();
        }
        if (!(await this.balance(signal))) parts = HURRY_PARTS;
      } catch {
        // The store does not answer. The leases run out by themselves; the fence holds whatever we believe.
        parts = 1;
      }
      const untilRenewalMs = Math.max(0, renewAtMs - this.host.monotonicMs());
      await this.host.sleep(Math.min(untilRenewalMs, renewMs / parts), this.nudge.signal);
      if (!signal.aborted) this.nudge = new AbortController();
    }
  }

  /**
   * Lets the other engines have everything, if there are any: they are told, and have the time to notice before anything
   * is let go. Resolves once nothing is owned, or nobody wants it.
   */
  async leave(): Promise<void> {
    const { renewMs } = this.settings;
    if (this.store.capabilities.exclusive === true) return;
    const untilMs = this.host.monotonicMs() + 2 * renewMs;
    try {
      const others = async (): Promise<boolean> => {
        const seen = await this.seen();
        return seen.some(({ name, leaving }) => name !== this.engine && !leaving);
      };
      if (this.owned.size === 0 || !(await others())) return;
      this.leavingSinceMs ??= this.host.monotonicMs();
      this.nudge.abort();
      while (this.owned.size > 0 && this.host.monotonicMs() < untilMs) await this.host.sleep(renewMs / HURRY_PARTS);
    } catch {
      // The store does not answer: the leases run out.
    }
  }

  async renewNow(): Promise<void> {
    const owners = this.owners();
    if (owners.length === 0) return;
    const { maxResidents, maxResidentsInAll } = this.settings;
    const sentAtMs = this.host.monotonicMs();
    // As of now: by the time of the answer more may have been acknowledged, which the answer cannot know.
    const acknowledged = owners.map((owner) => this.acknowledged.get(owner.partition)?.seq ?? 0);
    const outcome = await this.store.partitions.renew(
      owners.map((owner) => owner.fence),
      this.settings.leaseMs,
    );
    for (const [i, result] of outcome.partitions.entries()) {
      const owner = owners[i]!;
      if (!owner.valid) continue;
      if (result.kind === "lost") {
        this.stepDown(owner, "lost");
        continue;
      }
      owner.leaseUntilMs = sentAtMs + this.settings.leaseMs;
      owner.maxResidents = Math.min(maxResidents, Math.ceil(maxResidentsInAll / owners.length));
      if (owner.time.sync(outcome.storeTimeMs)) owner.moveDates();
      if (result.seq < acknowledged[i]!) await this.reacquire(owner);
    }
  }

  acknowledge(owner: Owner): void {
    this.acknowledged.set(owner.partition, { incarnation: owner.tenure.incarnation, seq: owner.seq });
  }

  /** Not ours any more: the memory is worth nothing, and nothing of it may come out. */
  stepDown(owner: Owner, why: string): void {
    owner.valid = false;
    if (this.owned.get(owner.partition) === owner) this.owned.delete(owner.partition);
    this.observer.steppedDown?.(owner.partition, why);
  }

  /**
   * We do not know what the store holds. Taking the partition anew shuts out whatever of ours is still on its way; only
   * then can the store be read. If that too brings no answer, the lease will tell.
   *
   * @param prepare given the new owner before anybody sees it
   */
  async reacquire(owner: Owner, prepare?: (fresh: Owner) => void): Promise<void> {
    this.stepDown(owner, "unknown outcome");
    try {
      const outcome = await this.store.partitions.reacquire(owner.fence, this.settings.leaseMs);
      if (outcome.kind === "acquired") this.take(outcome.tenure, false, prepare);
    } catch {
      // The balance will try to acquire it like any other.
    }
  }

  /** The same tenure with an empty memory, after a batch that was definitely not stored. */
  renewMemory(owner: Owner): void {
    owner.valid = false;
    if (this.owned.get(owner.partition) !== owner) return;
    const tenure = { ...owner.tenure, seq: owner.seq, lastTimeMs: owner.time.nowMs() };
    const storeTimeMs = owner.time.calendarMs();
    const fresh = new Owner(
      this.host,
      this.settings,
      this.store.capabilities,
      { ...tenure, storeTimeMs },
      false,
      this.repaired,
    );
    fresh.careful = owner.careful;
    fresh.leaseUntilMs = owner.leaseUntilMs;
    for (const [key, error] of owner.suspects) fresh.suspects.set(key, error);
    this.owned.set(owner.partition, fresh);
  }

  async releaseAll(): Promise<void> {
    // All at once: with a store that is away, each of them would wait for it.
    const releases = this.owners().map(async (owner) => {
      this.stepDown(owner, "stopped");
      // Else the lease runs out.
      await this.store.partitions.release(owner.fence).catch(() => undefined);
    });
    await Promise.all(releases);
    this.leavingSinceMs ??= this.host.monotonicMs();
    // Gone at once, instead of after a while.
    await this.tell(1).catch(() => undefined);
  }

  private take(tenure: Tenure, predecessorDied: boolean = true, prepare?: (fresh: Owner) => void): void {
    const known = this.acknowledged.get(tenure.partition);
    if (known?.incarnation === tenure.incarnation && tenure.seq < known.seq) {
      this.observer.storeWentBack?.(tenure.partition, known.seq, tenure.seq);
      // What we know of definitions may be all that is left of them.
      void this.definitions.putAll().catch(() => {});
    }
    this.acknowledged.set(tenure.partition, { incarnation: tenure.incarnation, seq: tenure.seq });
    const { capabilities } = this.store;
    const fresh = new Owner(this.host, this.settings, capabilities, tenure, predecessorDied, this.repaired);
    prepare?.(fresh);
    this.owned.set(tenure.partition, fresh);
    this.taken.abort();
    this.taken = new AbortController();
  }

  /** Takes what is missing and gives back what is too much. Says whether this engine has its share. */
  private async balance(signal: AbortSignal): Promise<boolean> {
    const { partitionCount } = this.store.capabilities;
    await this.tell(this.settings.leaseMs);
    const engines = await this.seen();
    const share = fairShare(this.engine, engines, partitionCount);
    if (this.owned.size > share) this.give(this.owned.size - share);
    const missing = share - this.owned.size;
    if (missing > 0 && this.leavingSinceMs === null)
      await this.acquireSome(share, unclaimed(engines, partitionCount), signal);
    await this.tell(this.settings.leaseMs);
    this.balancedAtMs = this.host.monotonicMs();
    return this.kept().length === share;
  }

  private async acquireSome(share: number, free: readonly number[], signal: AbortSignal): Promise<void> {
    // What is ours is renewed in time, however many there are to take.
    const untilMs = this.host.monotonicMs() + this.settings.renewMs;
    // Not all from the same end: two that are looking for some would always want the same.
    const first = Math.floor(this.host.random() * free.length);
    for (const i of free.keys()) {
      const partition = free[(first + i) % free.length]!;
      if (signal.aborted || this.owned.size >= share || this.host.monotonicMs() >= untilMs) return;
      const outcome = await this.store.partitions.acquire(partition, this.engine, this.settings.leaseMs);
      if (outcome.kind === "acquired" && !this.owned.has(partition)) this.take(outcome.tenure);
    }
  }

  /** All engines that are alive, this one included, as they see themselves. */
  private async seen(): Promise<readonly SeenEngine[]> {
    const registrations = await this.store.records.registered();
    const others = registrations.filter(({ role, process }) => role === "engine" && process !== this.engine);
    return [
      ...others.map(({ process, text }) => ({ name: process, ...readNews(text) })),
      { name: this.engine, ...this.news() },
    ];
  }

  /** Says that this engine lives and what it has; again when that has changed, or the others might forget it. */
  private async tell(ttlMs: number): Promise<void> {
    const text = JSON.stringify(this.news());
    const nowMs = this.host.monotonicMs();
    if (text === this.told.text && nowMs - this.told.atMs < this.settings.renewMs && ttlMs > 1) return;
    await this.store.records.register({ process: this.engine, role: "engine", text }, ttlMs);
    this.told = { text, atMs: nowMs };
  }

  private news(): EngineNews {
    return { partitions: this.kept().map(({ partition }) => partition), leaving: this.leavingSinceMs !== null };
  }

  /** What is about to be given back is not ours any more as far as the others are concerned: they may try to take it. */
  private kept(): Owner[] {
    return this.owners().filter(({ leaving }) => !leaving);
  }

  /** The work loop takes nothing more for them, waits for what is under way, and releases them. */
  private give(tooMany: number): void {
    const owners = this.owners();
    const going = owners.filter(({ leaving }) => leaving).length;
    if (this.leavingSinceMs === null) {
      const more = Math.min(tooMany, GIVEN_AT_A_TIME) - going;
      for (const owner of this.kept().slice(0, Math.max(0, more))) owner.leaving = true;
      return;
    }
    const knownMs = this.host.monotonicMs() - this.leavingSinceMs;
    if (knownMs < this.settings.renewMs / CALM_PARTS) return;
    for (const owner of owners) owner.leaving = true;
    this.farewell.abort();
  }

  async release(owner: Owner): Promise<void> {
    this.stepDown(owner, "balanced");
    await this.store.partitions.release(owner.fence);
  }
}
