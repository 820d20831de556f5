import assert from "node:assert/strict";
import type { CommitBatch, CommitOutcome, Fence, Store, Tenure } from "../contract.ts";
import { LONG_MS } from "./harness.ts";

export type BatchParts = Partial<Omit<CommitBatch, "fence" | "id">>;

/** An owner of one partition as the engine is one: it commits one batch after the other and counts them. */
export class Owner {
  readonly tenure: Tenure;
  readonly #store: Store;
  #seq: number;
  #batches = 0;

  constructor(store: Store, tenure: Tenure) {
    this.#store = store;
    this.tenure = tenure;
    this.#seq = tenure.seq;
  }

  get fence(): Fence {
    const { partition, incarnation, epoch, nonce } = this.tenure;
    return { partition, incarnation, epoch, nonce, seq: this.#seq };
  }

  /** The next batch. Building another one before this is committed gives another id for the same number. */
  batch(parts: BatchParts = {}): CommitBatch {
    return {
      fence: this.fence,
      id: `${this.tenure.nonce}-${++this.#batches}`,
      timeMs: this.tenure.lastTimeMs + this.#batches,
      consumed: null,
      records: [],
      headers: [],
      wakes: [],
      snapshots: [],
      tasks: [],
      revoke: [],
      mail: [],
      replies: [],
      discard: [],
      deadLetters: [],
      purge: [],
      suspect: null,
      ...parts,
    };
  }

  /** What is sent while `before` is under way. */
  behind(before: CommitBatch, parts: BatchParts = {}): CommitBatch {
    const batch = this.batch(parts);
    return { ...batch, fence: { ...batch.fence, seq: before.fence.seq + 1 }, behind: before.id };
  }

  async commit(parts: BatchParts = {}): Promise<void> {
    assert.deepEqual(await this.send(this.batch(parts)), { kind: "committed" });
    this.#seq += 1;
  }

  async send(batch: CommitBatch): Promise<CommitOutcome> {
    const [outcome, ...others] = await this.#store.journal.commit([batch]);
    assert.ok(outcome !== undefined && others.length === 0, "one outcome for one batch");
    return outcome;
  }
}

export async function acquire(store: Store, partition = 0, leaseMs = LONG_MS, name = "owner"): Promise<Owner> {
  const outcome = await store.partitions.acquire(partition, name, leaseMs);
  assert.equal(outcome.kind, "acquired");
  return new Owner(store, outcome.kind === "acquired" ? outcome.tenure : assert.fail());
}

export async function reacquire(store: Store, owner: Owner, leaseMs = LONG_MS): Promise<Owner> {
  const outcome = await store.partitions.reacquire(owner.fence, leaseMs);
  assert.equal(outcome.kind, "acquired");
  return new Owner(store, outcome.kind === "acquired" ? outcome.tenure : assert.fail());
}

export async function assertHeld(store: Store, by: string, partition = 0): Promise<void> {
  const outcome = await store.partitions.acquire(partition, "somebody else", LONG_MS);
  assert.equal(outcome.kind, "held");
  if (outcome.kind === "held") assert.equal(outcome.by, by);
}
