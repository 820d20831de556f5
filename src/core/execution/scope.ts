import type { NodeView, Scope } from "../../expression/scope.ts";
import type { Json } from "../../json/json.ts";
import { type Context, type Need, needKey } from "../machine.ts";
import type { KeptValue } from "../value.ts";
import type { ExecutionState } from "./state.ts";

const NONE: NodeView = { kind: "none" };

/**
 * What the templates and the condition of a node see: the outputs and errors of nodes that have ended. Once it has been
 * dispatched, that is what had ended by then: the same task made again must be the same task.
 */
export function scopeOf(state: ExecutionState, reader: number, context: Pick<Context, "fetched">): Scope {
  const seen = state.runs[reader]?.seen ?? state.version;
  return {
    input: valueView(state.input, context),
    executionId: state.id,
    node: (id) => {
      const index = state.plan.graph.indexOf.get(id);
      return index === undefined ? undefined : nodeView(state, index, seen, context);
    },
  };
}

function nodeView(state: ExecutionState, index: number, seen: number, context: Pick<Context, "fetched">): NodeView {
  const run = state.runs[index];
  const status = state.statusOf(index);
  if (run === undefined || run.endedVersion === null || run.endedVersion > seen) return NONE;
  if (status === "completed" && run.output !== null) return valueView(run.output, context);
  if (status === "failed" && run.error !== null) return { kind: "error", error: run.error as unknown as Json };
  return NONE;
}

export function valueView(value: KeptValue, context: Pick<Context, "fetched">): NodeView {
  if ("json" in value) return { kind: "output", value: value.json };
  if ("past" in value) {
    const json = context.fetched(needKey(value));
    return json === undefined ? NONE : { kind: "output", value: json };
  }
  const json = context.fetched(value.blob.hash);
  return json === undefined ? { kind: "blob", ref: value.blob } : { kind: "blob", ref: value.blob, value: json };
}

/** Outputs this node may read that have left memory and were not fetched. They must be, before it can be resolved. */
export function pastNeeds(state: ExecutionState, index: number, context: Pick<Context, "fetched">): Need[] {
  const needs: Need[] = [];
  for (const read of state.plan.nodes[index]!.reads) {
    const output = state.runs[read]?.output;
    if (output && "past" in output && context.fetched(needKey(output)) === undefined) needs.push({ past: output.past });
  }
  return needs;
}
