import { entityId, entityKind } from "../core/entity.ts";
import type { Store } from "../store/contract.ts";
import { isApplied, tellingCommits } from "./telling-commits.ts";

/** The same store; whoever traces is told of each execution whose end is committed through it. */
export function traced(store: Store, ended: (execution: string) => void): Store {
  return tellingCommits(store, ({ records, restored }, outcome) => {
    if (!isApplied(outcome)) return;
    const known = new Set(restored);
    for (const { entity, text } of records) {
      // What only looks like it is an execution that is not over, of which nothing is told.
      const isEnd = text.includes('"executionEnded"') && entityKind(entity) === "execution";
      if (isEnd && !known.has(entity)) ended(entityId(entity));
    }
  });
}
