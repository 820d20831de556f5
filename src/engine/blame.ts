import { DEFINITION_SCOPE } from "../core/entity.ts";
import type { Host } from "../host/host.ts";
import type { Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import type { BatchBuilder } from "./batch.ts";
import type { EngineObserver } from "./observer.ts";
import { DecisionFailed, type Owner } from "./owner.ts";
import type { EngineSettings } from "./settings.ts";

/** After so many commits in a row that the store has rejected, their owner is careful. */
const MAX_REJECTIONS = 3;
/** After so many who were blamed without anybody else being committed, it is not they who are the trouble. */
const MAX_BLAMED = 3;
/** So much of what the store says of a value is kept. */
const MAX_REASON_CHARS = 200;

/** Whose fault it is that something cannot be decided or stored: who that is goes into quarantine, and the others go on. */
export class Blame {
  private readonly store: Store;
  private readonly host: Host;
  private readonly settings: EngineSettings;
  private readonly observer: EngineObserver;
  /** How often the decision of an entity has thrown. */
  private readonly tries = new Map<string, number>();
  /** How many commits of a partition the store has rejected in a row, though it answers. */
  private readonly rejections = new Map<number, number>();
  /** Whom it was said of that the store rejects them and no others, since another was committed alone. */
  private readonly blamed = new Set<string>();

  constructor(store: Store, host: Host, settings: EngineSettings, observer: EngineObserver) {
    this.store = store;
    this.host = host;
    this.settings = settings;
    this.observer = observer;
  }

  /** A decision threw: after a few tries its entity is left alone, and the partition goes on. Answers whether it is now. */
  giveUp(owner: Owner, failure: DecisionFailed): boolean {
    const tries = (this.tries.get(failure.key) ?? 0) + 1;
    this.tries.set(failure.key, tries);
    if (tries < this.settings.maxTries) return false;
    this.tries.delete(failure.key);
    this.observer.quarantined?.(failure.key, failure);
    owner.suspects.set(failure.key, { code: "DECISION_FAILED", message: failure.message, retryable: false });
    owner.wakes.file(failure.key, owner.time.nowMs());
    return true;
  }

  /**
   * A store that takes anything but this has something against the value, whatever it says: one that is too large for the time
   * there is keeps nobody else waiting for ever. A lack of room is no fault of a value, though a smaller one may still fit.
   */
  async refusedValues(owner: Owner, builder: BatchBuilder, error: unknown): Promise<void> {
    if (error instanceof StoreError && error.code === "STORE_FULL") return;
    const keys = new Set(builder.blobs.map(({ scope }) => scope));
    // Definitions belong to nobody.
    keys.delete(DEFINITION_SCOPE);
    try {
      // New ones, as putting again what is there need not write anything. They go with their entity.
      await this.store.records.put([...keys].map((scope) => ({ scope, hash: this.host.id(), text: "null" })));
    } catch {
      return;
    }
    for (const key of keys) this.giveUp(owner, new DecisionFailed(key, error));
  }

  /**
   * The store has rejected a batch twice, and answers: there is a new tenure. One that says itself what ails it has nothing
   * against a value. Else its owner is careful after a few, so that each item is committed alone, between commits that the
   * store takes; and who cannot be committed then is left alone like one who cannot be decided. But only a few in a row: a
   * store that takes announcements and nothing else has something against everybody.
   */
  doubt(fresh: Owner, { item }: BatchBuilder, error: unknown): void {
    if (error instanceof StoreError) return;
    const rejections = (this.rejections.get(fresh.partition) ?? 0) + 1;
    this.rejections.set(fresh.partition, rejections);
    if (rejections >= MAX_REJECTIONS) fresh.careful = true;
    if (item === null || (this.blamed.size >= MAX_BLAMED && !this.blamed.has(item))) return;
    // It may quote the very value, and has to be stored.
    const reason = String(error)
      .replace(/[^ -~]/g, "?")
      .slice(0, MAX_REASON_CHARS);
    const failure = new DecisionFailed(item, `The store rejects its commits, and no others: ${reason}`);
    if (this.giveUp(fresh, failure)) this.blamed.add(item);
  }

  /** The store has taken a batch. */
  noteTaken(owner: Owner, builder: BatchBuilder): void {
    if (this.rejections.size > 0) this.trustAgain(owner, builder);
    if (this.tries.size > 0) for (const key of builder.touched()) this.tries.delete(key);
  }

  /** What a careful owner commits says nothing of the rest: that is known when all goes on together again. */
  private trustAgain({ partition }: Owner, { item, mustGoOut }: BatchBuilder): void {
    const isOfAll = item === null && !mustGoOut;
    if (isOfAll) this.rejections.delete(partition);
    if (isOfAll || (item !== null && !this.blamed.has(item))) this.blamed.clear();
  }
}
