import { entityId, entityKind } from "../core/entity.ts";
import type { Journal, Store } from "../store/contract.ts";

/** The same store; whoever traces is told of each execution whose end is committed through it. */
export function traced(store: Store, ended: (execution: string) => void): Store {
  const { journal } = store;
  const told: Journal = {
    commit: async (batches) => {
      const outcomes = await journal.commit(batches);
      for (const [i, { records, restored }] of batches.entries()) {
        const { kind } = outcomes[i]!;
        if (kind !== "committed" && kind !== "alreadyApplied") continue;
        const known = new Set(restored);
        for (const { entity, text } of records) {
          // What only looks like it is an execution that is not over, of which nothing is told.
          const isEnd = text.includes('"executionEnded"') && entityKind(entity) === "execution";
          if (isEnd && !known.has(entity)) ended(entityId(entity));
        }
      }
      return outcomes;
    },
    load: (requests) => journal.load(requests),
    due: (...args) => journal.due(...args),
    watch: (...args) => journal.watch(...args),
  };
  return {
    capabilities: store.capabilities,
    partitions: store.partitions,
    inbox: store.inbox,
    journal: told,
    tasks: store.tasks,
    records: store.records,
    queries: store.queries,
    close: () => store.close(),
  };
}
