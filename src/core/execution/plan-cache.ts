import type { Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { CompiledValue } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";

/** How the results of a node are kept for others. */
export interface PlanCache {
  readonly ttlMs: number;
  /** null: the handler and all that it is given. */
  readonly key: CompiledValue | null;
  /** Whose key it is: the same text on another node means another thing. */
  readonly name: string;
}

/** Definitions of an earlier release hold what was written there, looked at by nobody. */
export function planCache(
  { id, cache, repeat }: WorkflowNode,
  { name }: Workflow,
  nodeIds: { has(id: string): boolean },
): PlanCache | null {
  if (cache === undefined || repeat !== undefined || typeof cache.ttl_seconds !== "number") return null;
  const key = typeof cache.key === "string" ? compileValue(cache.key, { nodeIds }) : null;
  return { ttlMs: cache.ttl_seconds * 1000, key, name: `${name}/${id}` };
}
