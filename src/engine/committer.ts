import { partitionOf } from "../core/entity.ts";
import type { Host } from "../host/host.ts";
import type { CommitBatch, CommitOutcome, Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import type { BatchBuilder } from "./batch.ts";
import type { Blame } from "./blame.ts";
import type { Owner } from "./owner.ts";
import type { Orphan } from "./resident.ts";
import type { Tenures } from "./tenures.ts";

/** A batch, and whose it is. */
export interface Formed {
  readonly owner: Owner;
  readonly builder: BatchBuilder;
}

/** What came of a batch. Unknown: two tries with the same bytes have brought no answer, and why the second did not. */
type Sent = CommitOutcome | { readonly kind: "unknown"; readonly error: unknown };

/** How long to leave a store alone after it has failed. */
export const STORE_TROUBLE_MS = 200;

interface CommitterParts {
  readonly store: Store;
  readonly host: Host;
  readonly tenures: Tenures;
  readonly blame: Blame;
  readonly followEntries: number;
  readonly stopping: AbortSignal;
}

const ENDED = Promise.resolve();

/**
 * Sends batches to the store, and makes of its answers what they mean for their owners. One commit is under way at a time; two where the store
 * carries them out in the order in which they are sent, so that it need not wait for us in between.
 */
export class Committer {
  /** The commits under way, oldest first; none of them fails, and each ends after those before it. */
  private readonly underWay: Promise<void>[] = [];
  /** Whether the store has been given the last of them, and nothing but good was heard of it. */
  private mayBeFollowed = true;
  private readonly store: Store;
  private readonly host: Host;
  private readonly tenures: Tenures;
  private readonly blame: Blame;
  /** See `EngineSettings`. */
  private readonly followEntries: number;
  /** Aborted when the engine ends. */
  private readonly stopping: AbortSignal;

  constructor({ store, host, tenures, blame, followEntries, stopping }: CommitterParts) {
    this.store = store;
    this.host = host;
    this.tenures = tenures;
    this.blame = blame;
    this.followEntries = followEntries;
    this.stopping = stopping;
  }

  get isUnderWay(): boolean {
    return this.underWay.length > 0;
  }

  /** Resolves when all that is under way has ended. */
  get inFlight(): Promise<void> {
    return this.underWay.at(-1) ?? ENDED;
  }

  /** Resolves when what has been under way longest has ended. */
  get oldest(): Promise<void> {
    return this.underWay[0] ?? ENDED;
  }

  /** Resolves when these may begin. */
  async untilTurnOf(formed: readonly Formed[]): Promise<void> {
    while (this.underWay.length > 0 && !this.mayFollow(formed)) await this.oldest;
  }

  private mayFollow(formed: readonly Formed[]): boolean {
    if (this.store.capabilities.queuesCommits !== true || this.underWay.length > 1 || !this.mayBeFollowed) return false;
    return formed.every(({ owner, builder }) => {
      if (owner.careful || builder.entries < this.followEntries) return false;
      // Whatever begins now would stand behind them, and in memory for all that time.
      return builder.starts === 0 || !owner.hasNoRoom;
    });
  }

  /** To be called when it is their turn. */
  begin(formed: readonly Formed[]): void {
    const before = this.inFlight;
    this.mayBeFollowed = false;
    this.underWay.push(this.toItsEnd(formed, before));
  }

  /** One by itself, of an owner that has none under way: several may do that at a time, each before it forms its next batch. */
  async alone(one: Formed): Promise<void> {
    try {
      await this.commit([one]);
    } catch {
      this.distrust([one]);
    }
  }

  private async toItsEnd(formed: readonly Formed[], before: Promise<void>): Promise<void> {
    try {
      await this.commit(formed, before);
    } catch {
      this.distrust(formed);
    } finally {
      await before;
      void this.underWay.shift();
    }
  }

  /** Our own code failed in the middle of a commit: what is in memory may not be what is stored. */
  private distrust(formed: readonly Formed[]): void {
    for (const { owner } of formed) this.tenures.stepDown(owner, "failed commit");
  }

  /** Commits all partitions in one call, and settles whatever comes of it once that before it is settled. */
  private async commit(formed: readonly Formed[], before: Promise<void> = ENDED): Promise<void> {
    await this.renewExpired(formed);
    const ready: Formed[] = [];
    let areTaken = true;
    for (const one of formed) {
      if (!one.owner.valid) continue;
      if (await this.putBlobs(one, before)) ready.push(one);
      else areTaken = false;
    }
    const current = ready.filter(({ owner }) => owner.valid);
    if (current.length === 0) return areTaken ? undefined : this.leaveAlone();
    const batches = current.map(({ owner, builder }) => owner.seal(builder));
    const sent = this.send(batches);
    this.mayBeFollowed = true;
    const outcomes = await sent;
    if (!outcomes.every(isTaken)) this.mayBeFollowed = false;
    await before;
    for (const [i, { owner, builder }] of current.entries()) {
      await this.settle(owner, builder, outcomes[i]!);
    }
    areTaken &&= !outcomes.some(({ kind }) => kind === "refused");
    if (!areTaken) await this.leaveAlone();
  }

  /** What the store did not take is formed again at once, and would find it as it is. */
  private leaveAlone(): Promise<void> {
    return this.host.sleep(STORE_TROUBLE_MS, this.stopping);
  }

  /** Blobs are there before the commit that names them. */
  private async putBlobs({ owner, builder }: Formed, before: Promise<void>): Promise<boolean> {
    if (builder.blobs.length === 0) return true;
    try {
      await this.store.records.put(builder.blobs);
      return true;
    } catch (error) {
      // What is under way takes its number first: the memory that takes this one's place goes on behind it.
      await before;
      if (!owner.valid) return false;
      await this.blame.refusedValues(owner, builder, error);
      this.refuse(owner);
      return false;
    }
  }

  /** Longer without a renewal than a lease lasts: somebody else may own it by now, and we would not know. */
  private async renewExpired(formed: readonly Formed[]): Promise<void> {
    const nowMs = this.host.monotonicMs();
    const expired = formed.filter(({ owner }) => nowMs >= owner.leaseUntilMs);
    if (expired.length === 0) return;
    try {
      await this.tenures.renewNow();
    } catch {
      for (const { owner } of expired) if (owner.valid) await this.tenures.reacquire(owner);
    }
  }

  private async send(batches: readonly CommitBatch[]): Promise<readonly Sent[]> {
    try {
      return await this.store.journal.commit(batches);
    } catch (error) {
      // What is sent behind it now would be fenced, unless it was taken after all.
      this.mayBeFollowed = false;
      await this.leaveAlone();
      // No partition fails for a value of another: it is told apart by which one fails alone.
      const parts = error instanceof StoreError ? [batches] : batches.map((batch) => [batch]);
      return (await Promise.all(parts.map((part) => this.resend(part)))).flat();
    }
  }

  private async resend(batches: readonly CommitBatch[]): Promise<readonly Sent[]> {
    try {
      const outcomes = await this.store.journal.commit(batches);
      // That it is not taken now does not say that it was not taken before.
      return outcomes.map((outcome): Sent => (outcome.kind === "refused" ? refusedAgain(outcome.reason) : outcome));
    } catch (error) {
      await this.leaveAlone();
      // Of several that were sent together nobody knows whose value it is.
      const why = batches.length === 1 ? error : new StoreError("STORE_UNAVAILABLE", "it took none of several batches");
      return batches.map((): Sent => ({ kind: "unknown", error: why }));
    }
  }

  private async settle(owner: Owner, builder: BatchBuilder, outcome: Sent): Promise<void> {
    if (!owner.valid) return;
    switch (outcome.kind) {
      case "committed":
      case "alreadyApplied":
        owner.committed(builder);
        if (builder.orphans.length > 0) this.hurryOrphans(builder.orphans);
        this.blame.noteTaken(owner, builder);
        this.tenures.acknowledge(owner);
        return;
      case "fenced":
        // Where another of ours was on its way, that one may not have come to be, or may have come after: then it is still our partition.
        if (builder.isBehind || owner.underWay > 1) return this.tenures.reacquire(owner);
        return this.tenures.stepDown(owner, "fenced");
      case "refused":
        return this.refuse(owner);
      case "unknown":
        // Our own commit may still arrive. A new epoch and nonce shut it out; then the store says what is true.
        return this.tenures.reacquire(owner, (fresh) => {
          // Else a message that is always rejected would be tried first by every new owner.
          fresh.carefulItems = owner.carefulItems % 2;
          this.blame.doubt(fresh, builder, outcome.error);
        });
    }
  }

  /** Children go with their parent, as far as they are ours: any other owner notices when it looks for it. */
  private hurryOrphans(orphans: readonly Orphan[]): void {
    const { partitionCount } = this.store.capabilities;
    const owners = new Map(this.tenures.owners().map((owner) => [owner.partition, owner]));
    for (const { key, haste } of orphans) owners.get(partitionOf(key, partitionCount))?.retention.hurry([key], haste);
  }

  /** Definitely not stored: memory is ahead of the truth, and starts anew under the same tenure. */
  private refuse(owner: Owner): void {
    this.tenures.renewMemory(owner);
  }
}

function refusedAgain(reason: string): Sent {
  return { kind: "unknown", error: new StoreError("STORE_UNAVAILABLE", `it refused what was sent again: ${reason}`) };
}

function isTaken({ kind }: Sent): boolean {
  return kind === "committed" || kind === "alreadyApplied";
}
