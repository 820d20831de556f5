import type { CommitBatch, CommitOutcome, Store } from "../store/contract.ts";

/** The same store; of each batch that is committed through it is told what became of it. */
export function tellingCommits(
  store: Store,
  tell: (batch: CommitBatch, outcome: CommitOutcome["kind"]) => void,
): Store {
  const { journal } = store;
  return {
    capabilities: store.capabilities,
    partitions: store.partitions,
    inbox: store.inbox,
    journal: {
      commit: async (batches) => {
        const outcomes = await journal.commit(batches);
        for (const [i, batch] of batches.entries()) tell(batch, outcomes[i]!.kind);
        return outcomes;
      },
      load: (requests) => journal.load(requests),
      due: (...args) => journal.due(...args),
      watch: (...args) => journal.watch(...args),
    },
    tasks: store.tasks,
    records: store.records,
    queries: store.queries,
    close: () => store.close(),
  };
}

/** A resend that finds itself applied was told by nobody: its first answer was lost. */
export function isApplied(outcome: CommitOutcome["kind"]): boolean {
  return outcome === "committed" || outcome === "alreadyApplied";
}
