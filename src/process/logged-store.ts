import { eventsOf, showEvent } from "../api/service/event-view.ts";
import { entityId, entityKind } from "../core/entity.ts";
import type { CommitBatch, Journal, Store } from "../store/contract.ts";
import { brief, type Log } from "./log.ts";
import { transitionOf } from "./transitions.ts";

/** The same store; what is committed through it stands in the log, one line for each change of a node or execution. */
export function logged(store: Store, log: Log): Store {
  if (!log.isLevelEnabled("info")) return store;
  const { journal } = store;
  const told: Journal = {
    commit: async (batches) => {
      const outcomes = await journal.commit(batches);
      for (const [i, batch] of batches.entries()) {
        const { kind } = outcomes[i]!;
        // A resend that finds itself applied was told by nobody: its first answer was lost.
        if (kind === "committed" || kind === "alreadyApplied") tell(batch, log);
        else log.warn({ partition: batch.fence.partition, outcome: kind }, "commit not applied");
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

function tell(batch: CommitBatch, log: Log): void {
  const known = new Set(batch.restored);
  for (const record of batch.records) {
    if (entityKind(record.entity) !== "execution" || known.has(record.entity)) continue;
    const execution = entityId(record.entity);
    for (const [seq, event] of eventsOf([record], 0)) {
      const transition = transitionOf(showEvent(seq, event, execution));
      if (transition === undefined) continue;
      const { node, status, at, error, ...more } = transition;
      const code = error === undefined ? {} : { error: { code: error.code, message: brief(error.message) } };
      const line = {
        execution_id: execution,
        ...(node !== undefined && { node_id: node }),
        status,
        seq,
        at,
        ...more,
        ...code,
      };
      log.info(line, node === undefined ? "execution" : "node");
    }
  }
}
