import type { ExecutionState } from "../../core/execution/state.ts";
import { isJsonObject } from "../../json/json.ts";

/** How the name of the execution that a batch is ends. */
export const BATCH_NAME = " (batch)";

/**
 * How a batch stands by its items; undefined of an execution that is none. As an execution it completes whatever becomes
 * of them.
 */
export function batchStatus(state: ExecutionState): string | undefined {
  if (state.parent !== null || !isJsonObject(state.plan.workflow["x-millrace-batch"])) return undefined;
  // Its only node is the map.
  const { total, failures } = state.maps.get(0) ?? { total: 0, failures: 0 };
  if (state.status !== "completed" || failures === 0) return state.status.toUpperCase();
  return failures === total ? "FAILED" : "PARTIAL";
}
