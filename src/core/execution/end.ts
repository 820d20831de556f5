import { EDGE_ON } from "../../definition/graph.ts";
import type { Context } from "../machine.ts";
import type { Message } from "../message.ts";
import { entityKey } from "../entity.ts";
import type { EndStatus, ExecutionEnded } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** The verdict once every node has ended: CONTRACT section 4. */
export function verdict(state: ExecutionState): EndStatus {
  const unhandled = state.failed.find((node) => !isHandled(state, node));
  if (unhandled === undefined) return "completed";
  return state.completedCount > 0 ? "partial" : "failed";
}

export function naturalEnd(state: ExecutionState, context: Context): ExecutionEnded {
  const status = verdict(state);
  const first = state.failed.find((node) => !isHandled(state, node));
  const error = first === undefined ? undefined : state.runs[first]?.error;
  return {
    kind: "executionEnded",
    atMs: context.nowMs,
    status,
    reason: "done",
    ...(status !== "completed" && error && { error: { ...error, node: state.plan.graph.ids[first!]! } }),
  };
}

export function timedOut(context: Context, state: ExecutionState): ExecutionEnded {
  const seconds = state.plan.workflow.timeout_seconds;
  const message = `The workflow did not end within its timeout of ${seconds} s`;
  return {
    kind: "executionEnded",
    atMs: context.nowMs,
    status: "failed",
    reason: "timeout",
    error: { code: "WORKFLOW_TIMEOUT", message, retryable: false },
  };
}

/** A failure is handled if a dependant `on: failed` has completed. */
function isHandled(state: ExecutionState, node: number): boolean {
  const { graph } = state.plan;
  for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
    const edge = graph.childEdge[k]!;
    if (EDGE_ON[graph.edgeOn[edge]!] === "failed" && state.statusOf(graph.edgeChild[edge]!) === "completed")
      return true;
  }
  return false;
}

/** What the parent hears, in the commit of the end. */
export function endMail(state: ExecutionState, ended: ExecutionEnded): readonly Message[] {
  if (state.parent === null) return [];
  const child = entityKey("execution", state.id);
  return [
    {
      id: `childEnded:${child}:${state.generation}`,
      to: state.parent.entity,
      by: child,
      trace: state.trace,
      tenant: state.tenant,
      body: {
        kind: "childEnded",
        child,
        generation: state.generation,
        instance: state.parent.instance,
        status: ended.status,
      },
    },
  ];
}
