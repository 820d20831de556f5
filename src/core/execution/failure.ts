import type { DlqPolicy } from "../../definition/workflow.ts";
import type { Context, DeadLetterDraft } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import type { ExecutionEnded, ExecutionEvent } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/**
 * What follows at once when a node fails for good. Under `fail_fast` the execution ends in the same commit, unless a
 * dependant `on: failed | done` catches the failure; otherwise the join rules of the dependants say what comes.
 */
export function afterFailure(
  state: ExecutionState,
  index: number,
  error: ErrorValue,
  context: Context,
): readonly ExecutionEvent[] {
  const { id, spec, caught } = state.plan.nodes[index]!;
  if (spec.on_error !== "fail_fast" || caught) return [];
  const ended: ExecutionEnded = {
    kind: "executionEnded",
    atMs: context.nowMs,
    status: "failed",
    reason: "fail_fast",
    error: { ...error, node: id },
  };
  return [ended];
}

/** The dead letter of a node that failed by its own fault; undefined if the policy wants none of this class. */
export function deadLetterOf(
  state: ExecutionState,
  index: number,
  error: ErrorValue,
  context: Context,
): DeadLetterDraft | undefined {
  const { id, spec } = state.plan.nodes[index]!;
  const kind = error.retryable ? "exhausted" : "poison";
  if (!DLQ_TAKES[spec.dlq].includes(kind)) return undefined;
  const run = state.runs[index];
  return {
    id: `${state.id}:${state.generation}:${id}`,
    class: kind,
    queue: spec.queue,
    text: JSON.stringify({
      execution_id: state.id,
      generation: state.generation,
      node_id: id,
      handler: spec.handler,
      attempts: run?.attempt ?? 0,
      error,
      rejected_at_ms: context.nowMs,
    }),
  };
}

const DLQ_TAKES: Readonly<Record<DlqPolicy, readonly ("poison" | "exhausted")[]>> = {
  all: ["poison", "exhausted"],
  non_retryable: ["poison"],
  exhausted: ["exhausted"],
  none: [],
};
