import type { Context } from "../../machine.ts";
import { GRAPH } from "../plan.ts";
import type { ExecutionState } from "../state.ts";
import { graphItem, workflowNode } from "./child.ts";
import { endNode } from "./end.ts";
import type { EngineNode, EngineResult } from "./engine-node.ts";
import { inputNode } from "./input.ts";
import { mapNode } from "./map.ts";
import { outputNode } from "./output.ts";
import { reviewNode } from "./review.ts";
import { routerNode } from "./router.ts";
import { waitNode } from "./wait.ts";

/** The nodes that need no worker, by handler. */
const ENGINE_NODES: Readonly<Record<string, EngineNode>> = {
  input: inputNode,
  output: outputNode,
  router: routerNode,
  map: mapNode,
  workflow: workflowNode,
  wait: waitNode,
  delay: waitNode,
  review: reviewNode,
  end: endNode,
  [GRAPH]: graphItem,
};

export function runEngineNode(state: ExecutionState, unit: number, context: Context): EngineResult {
  const { handler } = state.planOf(unit).spec;
  // A part of a large map is an execution, whatever its items run.
  if (state.isItem(unit) && state.mapOf(unit).chunked) return graphItem(state, unit, context);
  const run = ENGINE_NODES[handler];
  if (run !== undefined) return run(state, unit, context);
  const message = `This engine does not run ${handler} nodes`;
  return { kind: "failed", error: { code: "UNKNOWN_HANDLER", message, retryable: false } };
}
