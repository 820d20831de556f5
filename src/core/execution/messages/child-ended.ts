import type { Json } from "../../../json/json.ts";
import { entityKey } from "../../entity.ts";
import type { Context } from "../../machine.ts";
import type { ChildEnded, ErrorValue } from "../../message.ts";
import { MAX_COLLECTED_BYTES, NULL_VALUE } from "../../value.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { ChildCall, ExecutionEvent } from "../events.ts";
import { afterFailure } from "../failure.ts";
import { MAP_FAILED } from "../letters.ts";
import { failFastCause } from "../reopen.ts";
import type { ExecutionState } from "../state.ts";
import { openFailed } from "./retry.ts";

/**
 * A child execution is over. Only the answer to our last call counts: an earlier one may still be on its way.
 *
 * Moves the node `waiting → completed | failed`, or the execution `failed | partial → running`.
 */
export function childEnded(state: ExecutionState, body: ChildEnded, context: Context): ExecutionDecision {
  const unit = state.unitOf(body.instance);
  if (unit === undefined) return NOTHING;
  if (state.isEnded) return repairedChild(state, unit, body, context);
  const wait = state.runs[unit]?.wait;
  if (!state.children.has(unit) || wait?.for !== "child" || !isOurs(wait.child, body)) return NOTHING;
  const node = state.nameOf(unit);
  const atMs = context.nowMs;
  const { tooLargeBytes } = body;
  if (body.status === "completed" && tooLargeBytes === undefined) {
    const output = body.output ?? NULL_VALUE;
    const failures = body.failures === undefined ? {} : { failures: body.failures };
    return decided(state, context, [{ kind: "nodeCompleted", atMs, node, output, ...failures }]);
  }
  const error = tooLargeBytes === undefined ? childFailed(wait.child, body) : outputTooLarge(wait.child, tooLargeBytes);
  const isByItems = body.failures !== undefined && body.error?.code === MAP_FAILED;
  const failures = isByItems ? { failures: body.failures } : {};
  const events: ExecutionEvent[] = [{ kind: "nodeFailed", atMs, node, error, ...failures }];
  return decided(state, context, [...events, ...afterFailure(state, unit, error, context)]);
}

function childFailed({ execution }: ChildCall, { status, error }: ChildEnded): ErrorValue {
  const why = error === undefined ? "" : `: ${error.message}`;
  return {
    code: "CHILD_FAILED",
    message: `The child execution ${execution} ended ${status.toUpperCase()}${why}`,
    retryable: false,
    details: {
      execution_id: execution,
      status: status.toUpperCase(),
      ...(error !== undefined && { error: shownError(error) }),
    },
  };
}

function outputTooLarge({ execution }: ChildCall, bytes: number): ErrorValue {
  const message = `The output of the child execution ${execution} is ${bytes} bytes; ${MAX_COLLECTED_BYTES} are allowed`;
  return { code: "OUTPUT_TOO_LARGE", message, retryable: false, details: { execution_id: execution } };
}

/** As whoever reads the details knows it of an execution. */
function shownError({ node, ...error }: NonNullable<ChildEnded["error"]>): Json {
  return { ...error, ...(node !== undefined && { node_id: node }) };
}

function isOurs(child: ChildCall | null | undefined, body: ChildEnded): boolean {
  if (!child) return false;
  return body.child === entityKey("execution", child.execution) && (body.call ?? 1) === child.call;
}

/**
 * A child whose failure was the end of us has completed after all: somebody has run it again, or replayed what it left.
 * Then we go on with what depends on it; the node calls the child once more, and is answered at once.
 */
function repairedChild(state: ExecutionState, unit: number, body: ChildEnded, context: Context): ExecutionDecision {
  const isWhole = body.status === "completed" && (body.failures ?? 0) === 0 && body.tooLargeBytes === undefined;
  if (!isWhole || !isOurs(state.runs[unit]?.child, body)) return NOTHING;
  const node = state.isItem(unit) ? state.mapOf(unit).node : unit;
  if (state.statusOf(node) !== "failed" || !hasFailedBy(state, unit, body.child)) return NOTHING;
  const { status, reason } = state.end!;
  const isItsEnd = reason === "done" || failFastCause(state) === state.nameOf(node);
  if (!isItsEnd || (status !== "failed" && status !== "partial")) return NOTHING;
  const opened = { ...openFailed(state, context), scope: "letters" as const, instances: [state.nameOf(unit)] };
  return decided(state, context, [opened]);
}

/** It failed because the child did; or, of a part of a large map, some of its items did. */
function hasFailedBy(state: ExecutionState, unit: number, child: string): boolean {
  const { error, failures } = state.runs[unit]!;
  if (state.statusOf(unit) === "completed") return failures > 0;
  const details = error?.code === "CHILD_FAILED" ? (error.details as { execution_id?: string } | undefined) : undefined;
  return details?.execution_id !== undefined && child === entityKey("execution", details.execution_id);
}
