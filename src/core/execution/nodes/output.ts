import { collectsParents } from "../plan.ts";
import { parentOutputs } from "../prepare.ts";
import { configOf, type EngineNode } from "./engine-node.ts";

/** The resolved config; without one, what the parents gave. */
export const outputNode: EngineNode = (state, unit, context) => {
  if (!collectsParents(state.planOf(unit).spec)) {
    const resolved = configOf(state, unit, context);
    return resolved.kind === "config" ? { kind: "completed", output: resolved.config } : resolved;
  }
  const collected = parentOutputs(state, unit, context);
  return collected.kind === "collected" ? { kind: "completed", output: collected.value } : collected;
};
