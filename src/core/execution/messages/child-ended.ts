import type { Context } from "../../machine.ts";
import type { ChildEnded } from "../../message.ts";
import { NULL_VALUE } from "../../value.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { ExecutionEvent } from "../events.ts";
import { afterFailure } from "../failure.ts";
import type { ExecutionState } from "../state.ts";

/**
 * A child execution is over. Only the answer to our last call counts: an earlier one may still be on its way.
 *
 * Moves the node `waiting → completed | failed`.
 */
export function childEnded(state: ExecutionState, body: ChildEnded, context: Context): ExecutionDecision {
  const unit = state.unitOf(body.instance);
  const wait = unit === undefined ? null : state.runs[unit]?.wait;
  if (unit === undefined || state.isEnded || !state.children.has(unit) || wait?.for !== "child") return NOTHING;
  const isOurs = body.child === `execution/${wait.child.execution}` && (body.call ?? 1) === wait.child.call;
  if (!isOurs) return NOTHING;
  const node = state.nameOf(unit);
  const atMs = context.nowMs;
  if (body.status === "completed") {
    const output = body.output ?? NULL_VALUE;
    const failures = body.failures === undefined ? {} : { failures: body.failures };
    return decided(state, context, [{ kind: "nodeCompleted", atMs, node, output, ...failures }]);
  }
  const why = body.error === undefined ? "" : `: ${body.error.message}`;
  const error = {
    code: "CHILD_FAILED",
    message: `The child execution ${wait.child.execution} ended ${body.status.toUpperCase()}${why}`,
    retryable: false,
    details: {
      execution_id: wait.child.execution,
      status: body.status.toUpperCase(),
      ...(body.error !== undefined && { error: body.error as never }),
    },
  };
  const events: ExecutionEvent[] = [{ kind: "nodeFailed", atMs, node, error }];
  return decided(state, context, [...events, ...afterFailure(state, unit, error, context)]);
}
