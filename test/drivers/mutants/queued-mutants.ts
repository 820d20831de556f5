import { idsOf } from "../../../src/drivers/memory/inbox.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { CommitBatch, Inbox, Journal } from "../../../src/store/contract.ts";
import { forced } from "./commit-mutants.ts";
import { bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";

function alone(batch: CommitBatch): CommitBatch {
  const { behind: _, ...rest } = batch;
  return rest;
}

const onEach = (
  name: string,
  commit: (store: MemoryStore, batch: CommitBatch) => ReturnType<Journal["commit"]>,
): Mutant =>
  mutant(name, (store) => ({
    journal: bent<Journal>(store.journal, {
      commit: async (batches) => (await Promise.all(batches.map((batch) => commit(store, batch)))).flat(),
    }),
  }));

export const queuedMutants: readonly Mutant[] = [
  onBatch("a batch may follow any other", alone),
  onEach("a batch follows whoever holds the partition", (store, batch) =>
    store.journal.commit([batch.behind === undefined ? batch : forced(store, alone(batch))]),
  ),
  onEach("a batch overtakes the one that it was sent behind", async (store, batch) => {
    if (batch.behind === undefined) await pause();
    return store.journal.commit([batch]);
  }),
  onEach("an answer overtakes the one before it", async (store, batch) => {
    const outcomes = await store.journal.commit([batch]);
    if (batch.behind === undefined) await pause();
    return outcomes;
  }),
  onEach("what was sent behind another is not known again", async (store, batch) => {
    const outcomes = await store.journal.commit([batch]);
    const isOther = batch.behind !== undefined && outcomes[0]!.kind === "alreadyApplied";
    return isOther ? [{ kind: "fenced" }] : outcomes;
  }),
  mutant("a position forgets behind which it was read", (store) => ({
    inbox: bent<Inbox>(store.inbox, {
      read: async (requests, waitMs) =>
        (await store.inbox.read(requests, waitMs)).map((result) => {
          const value = { ids: idsOf(result.position), before: [] };
          return { ...result, position: { ...result.position, value } };
        }),
    }),
  })),
  onBatch("a commit consumes also what its position was read behind", (batch) => {
    if (batch.consumed === null) return batch;
    const { ids, before } = batch.consumed.value as {
      readonly ids: readonly number[];
      readonly before: readonly number[];
    };
    return { ...batch, consumed: { ...batch.consumed, value: { ids: [...before, ...ids], before: [] } } };
  }),
];
