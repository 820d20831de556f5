import type { ExecutionState } from "../../core/execution/state.ts";
import { isJsonObject } from "../../json/json.ts";

/** How the name of the execution that a batch is ends. */
export const BATCH_NAME = " (batch)";

/** The only node of a batch, the map of its items. */
export const ITEMS = "items";

/** What a batch says of itself in its definition. */
export interface BatchOf {
  readonly workflow: string;
  readonly definition: string;
  readonly concurrency: number;
}

/** undefined of an execution that is no batch: any field that begins with x- may be a user's. */
export function batchOf({ parent, plan }: ExecutionState): BatchOf | undefined {
  const of = plan.workflow["x-millrace-batch"];
  if (parent !== null || !isJsonObject(of)) return undefined;
  const { workflow, definition, concurrency } = of;
  const isWhole = typeof workflow === "string" && typeof definition === "string" && typeof concurrency === "number";
  const { id, handler } = plan.nodes[0]!.spec;
  return isWhole && id === ITEMS && handler === "map" ? { workflow, definition, concurrency } : undefined;
}

/**
 * How a batch stands by its items; undefined of an execution that is none. As an execution it completes whatever becomes
 * of them.
 */
export function batchStatus(state: ExecutionState): string | undefined {
  if (batchOf(state) === undefined) return undefined;
  // Its only node is the map.
  const { total, failures } = state.maps.get(0) ?? { total: 0, failures: 0 };
  if (state.status !== "completed" || failures === 0) return state.status.toUpperCase();
  return failures === total ? "FAILED" : "PARTIAL";
}
