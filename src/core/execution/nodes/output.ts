import { collectsParents } from "../plan.ts";
import { parentOutputs } from "../prepare.ts";
import { missingValues } from "../scope.ts";
import { configOf, type EngineNode } from "./engine-node.ts";

/** The resolved config; without one, what the parents gave. */
export const outputNode: EngineNode = (state, unit, context) => {
  if (!collectsParents(state.planOf(unit).spec)) {
    const resolved = configOf(state, unit, context);
    return resolved.kind === "config" ? { kind: "completed", output: resolved.config } : resolved;
  }
  const missing = missingValues(state, unit, context);
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const collected = parentOutputs(state, unit, context);
  return collected.kind === "collected" ? { kind: "completed", output: collected.value } : collected;
};
