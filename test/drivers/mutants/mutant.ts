import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { CommitBatch, CommitOutcome, Fence, Journal, Store } from "../../../src/store/contract.ts";

/** A memory driver with one mistake that somebody could make. */
export interface Mutant {
  readonly name: string;
  readonly wrap: (store: MemoryStore) => Store;
}

/** Says which roles are other than they should be; the rest is the driver's own. */
export function mutant(name: string, bend: (store: MemoryStore) => Partial<Store>): Mutant {
  return {
    name,
    wrap: (store) => {
      const { capabilities, partitions, inbox, journal, tasks, records, queries } = store;
      const close = (): Promise<void> => store.close();
      return { capabilities, partitions, inbox, journal, tasks, records, queries, close, ...bend(store) };
    },
  };
}

/** A role with some of its methods changed. Not by inheritance: the driver's roles have private fields. */
export function bent<Role extends object>(role: Role, changes: Partial<Role>): Role {
  return new Proxy(role, {
    get: (target, key) => {
      const changed: unknown = Reflect.get(changes, key);
      if (changed !== undefined) return changed;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A mutant that commits something else than it was given. */
export function onBatch(name: string, change: (batch: CommitBatch, store: MemoryStore) => CommitBatch): Mutant {
  return mutant(name, (store) => ({
    journal: bent<Journal>(store.journal, {
      commit: (batches) => store.journal.commit(batches.map((batch) => change(batch, store))),
    }),
  }));
}

/** A mutant that does something with a batch besides or after committing it. */
export function afterBatch(
  name: string,
  act: (batch: CommitBatch, outcome: CommitOutcome, store: MemoryStore) => unknown,
): Mutant {
  return mutant(name, (store) => ({
    journal: bent<Journal>(store.journal, {
      commit: async (batches) => {
        const outcomes = await store.journal.commit(batches);
        for (const [i, batch] of batches.entries()) await act(batch, outcomes[i]!, store);
        return outcomes;
      },
    }),
  }));
}

/** A mutant that looks at only a part of who holds a partition, in everything that asks. */
export function onFence(name: string, change: (fence: Fence, store: MemoryStore) => Fence): Mutant {
  return mutant(name, (store) => {
    const bend = (fence: Fence): Fence => change(fence, store);
    return {
      partitions: bent(store.partitions, {
        reacquire: (fence, leaseMs) => store.partitions.reacquire(bend(fence), leaseMs),
        renew: (fences, leaseMs) => store.partitions.renew(fences.map(bend), leaseMs),
        release: (fence) => store.partitions.release(bend(fence)),
      }),
      journal: bent<Journal>(store.journal, {
        commit: (batches) => store.journal.commit(batches.map((batch) => ({ ...batch, fence: bend(batch.fence) }))),
      }),
    };
  });
}

/** Another turn of the event loop, in which somebody else can get between two steps. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
