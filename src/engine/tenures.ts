import type { Host } from "../host/host.ts";
import type { Store, Tenure } from "../store/contract.ts";
import type { DefinitionCache } from "./definition-cache.ts";
import type { EngineObserver } from "./observer.ts";
import { Owner } from "./owner.ts";
import type { EngineSettings } from "./settings.ts";

/** How long a registration lasts, in renewals. */
const REGISTRATION_RENEWALS = 5;

/** Which partitions this engine owns: takes free ones, renews them, gives up what it lost. Nothing is stolen. */
export class Tenures {
  private readonly store: Store;
  private readonly host: Host;
  private readonly settings: EngineSettings;
  private readonly engine: string;
  private readonly observer: EngineObserver;
  private readonly definitions: DefinitionCache;
  private readonly owned = new Map<number, Owner>();
  /** The highest sequence number the store has acknowledged to us, per partition and incarnation. */
  private readonly acknowledged = new Map<number, { incarnation: string; seq: number }>();

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

  /** Renews and balances until it is told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.renewNow();
        await this.balance(signal);
      } catch {
        // The store does not answer. The leases run out by themselves; the fence holds whatever we believe.
      }
      await this.host.sleep(this.settings.renewMs, signal);
    }
  }

  async renewNow(): Promise<void> {
    const owners = this.owners();
    if (owners.length === 0) return;
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
   */
  async reacquire(owner: Owner): Promise<void> {
    this.stepDown(owner, "unknown outcome");
    try {
      const outcome = await this.store.partitions.reacquire(owner.fence, this.settings.leaseMs);
      if (outcome.kind === "acquired") this.take(outcome.tenure, false);
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
    for (const owner of this.owners()) {
      this.stepDown(owner, "stopped");
      try {
        await this.store.partitions.release(owner.fence);
      } catch {
        // The lease runs out.
      }
    }
  }

  private take(tenure: Tenure, predecessorDied: boolean = true): void {
    const known = this.acknowledged.get(tenure.partition);
    if (known?.incarnation === tenure.incarnation && tenure.seq < known.seq) {
      this.observer.storeWentBack?.(tenure.partition, known.seq, tenure.seq);
      // What we know of definitions may be all that is left of them.
      void this.definitions.putAll().catch(() => {});
    }
    this.definitions.doubt();
    this.acknowledged.set(tenure.partition, { incarnation: tenure.incarnation, seq: tenure.seq });
    const { capabilities } = this.store;
    this.owned.set(
      tenure.partition,
      new Owner(this.host, this.settings, capabilities, tenure, predecessorDied, this.repaired),
    );
  }

  /** Each live engine wants an equal share; above it, one partition is given back at a time. */
  private async balance(signal: AbortSignal): Promise<void> {
    const ttlMs = this.settings.renewMs * REGISTRATION_RENEWALS;
    await this.store.records.register({ process: this.engine, role: "engine", text: "{}" }, ttlMs);
    const alive = await this.store.records.registered();
    const engines = Math.max(1, alive.filter((process) => process.role === "engine").length);
    const { partitionCount } = this.store.capabilities;
    const share = Math.ceil(partitionCount / engines);
    if (this.owned.size > share) this.giveOne();
    const first = Math.floor(this.host.random() * partitionCount);
    for (let i = 0; i < partitionCount && this.owned.size < share && !signal.aborted; i++) {
      const partition = (first + i) % partitionCount;
      if (this.owned.has(partition)) continue;
      const outcome = await this.store.partitions.acquire(partition, this.engine, this.settings.leaseMs);
      if (outcome.kind === "acquired" && !this.owned.has(partition)) this.take(outcome.tenure);
    }
  }

  /** The work loop takes nothing more for it, waits for what is under way, and releases it. */
  private giveOne(): void {
    const owners = this.owners();
    if (!owners.some((owner) => owner.leaving)) owners[0]!.leaving = true;
  }

  async release(owner: Owner): Promise<void> {
    this.stepDown(owner, "balanced");
    await this.store.partitions.release(owner.fence);
  }
}
