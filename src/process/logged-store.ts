import { eventsOf, showEvent } from "../api/service/event-view.ts";
import { entityId, entityKind } from "../core/entity.ts";
import type { CommitBatch, Store } from "../store/contract.ts";
import { brief, type Log } from "./log.ts";
import { isApplied, tellingCommits } from "./telling-commits.ts";
import { transitionOf } from "./transitions.ts";

/** The same store; what is committed through it stands in the log, one line for each change of a node or execution. */
export function logged(store: Store, log: Log): Store {
  if (!log.isLevelEnabled("info")) return store;
  return tellingCommits(store, (batch, outcome) => {
    if (isApplied(outcome)) tell(batch, log);
    else log.warn({ partition: batch.fence.partition, outcome }, "commit not applied");
  });
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
