import type { Context } from "../machine.ts";
import { decided, type ExecutionDecision } from "./decision.ts";
import { timedOut } from "./end.ts";
import type { ExecutionEvent, Wait } from "./events.ts";
import { afterFailure } from "./failure.ts";
import { attemptFailed } from "./messages/task-failed.ts";
import { reviewOutput } from "./nodes/review.ts";
import { decidedData, locksOf } from "./review-data.ts";
import { type ExecutionState, WORKFLOW_TIMER } from "./state.ts";

/** What has come due, by partition time and by the calendar. */
export function deadlines(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.deadlineAtMs !== null && context.deadlineMs >= state.deadlineAtMs) {
    return decided(state, context, [timedOut(context, state)]);
  }
  const timers = state.timers.due(context.nowMs, context.maxEvents);
  const dates = state.calendar.due(context.calendarMs, context.maxEvents);
  if (timers.length === 0 && dates.length === 0) return undefined;
  const due = timers.filter((unit) => unit !== WORKFLOW_TIMER);
  const events: ExecutionEvent[] = [];
  for (const unit of [...due, ...dates]) {
    if (events.length >= context.maxEvents) break;
    // What has just ended may be what this join has waited for: that is asked again first.
    if (state.statusOf(unit) === "pending" && events.some(({ kind }) => kind === "nodeCompleted")) break;
    // The end of a pause is nobody's loss; any other deadline waits until every result before it has been read.
    const isPatient = state.statusOf(unit) === "waiting" && isOwnPause(state.runs[unit]!.wait);
    const dueAtMs = state.runs[unit]!.dueAtMs;
    if (!isPatient && (dueAtMs ?? context.nowMs) > context.deadlineMs) continue;
    const more = deadline(state, unit, context);
    // Which failure was the first that nobody has handled is asked once all before it is decided.
    const isEnd = more.some(({ kind }) => kind === "executionEnded");
    if (isEnd && state.failed.length > 0 && events.length > 0) break;
    events.push(...more);
    if (more.some(isFinalFailure)) break;
  }
  return events.length === 0 ? undefined : decided(state, context, events);
}

/** A backoff, the time between two rounds, a timer: nobody could have ended it before. */
function isOwnPause(wait: Wait | null): boolean {
  return wait === null || wait.for === "timer";
}

/** The deadline of a unit has come: the end of a pause, or of our patience with somebody. */
function deadline(state: ExecutionState, unit: number, context: Context): readonly ExecutionEvent[] {
  const run = state.runs[unit]!;
  const { spec } = state.planOf(unit);
  const name = state.nameOf(unit);
  const ending = { attempt: run.attempt, delivery: run.delivery };
  switch (state.statusOf(unit)) {
    case "waiting":
      return waitOver(state, unit, context);
    case "queued": {
      const message = `No worker took it from queue ${spec.queue} within ${spec.queue_timeout_seconds} s`;
      const error = { code: "QUEUE_TIMEOUT", message, retryable: false };
      return attemptFailed(state, unit, { ...ending, deadline: "queue" }, error, context);
    }
    case "running": {
      const message = `The handler did not end within ${spec.timeout_seconds} s`;
      const error = { code: "TIMEOUT", message, retryable: true };
      return attemptFailed(state, unit, { ...ending, deadline: "run" }, error, context);
    }
    case "pending":
      if (spec.join_timeout_seconds === undefined || state.isItem(unit)) break;
      return joinTimedOut(state, unit, context);
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
  }
  throw new Error(`${name} is ${state.statusOf(unit)} and has a deadline`);
}

function waitOver(state: ExecutionState, unit: number, context: Context): readonly ExecutionEvent[] {
  const { wait, error } = state.runs[unit]!;
  const node = state.nameOf(unit);
  const atMs = context.nowMs;
  switch (wait?.for) {
    case undefined:
      return [{ kind: error === null ? "roundDue" : "retryDue", atMs, node }];
    case "timer":
      return [{ kind: "nodeCompleted", atMs, node, output: { json: null } }];
    case "signal": {
      const message = `The signal "${wait.signal}" did not come in time`;
      return failed(state, unit, "SIGNAL_TIMEOUT", message, context);
    }
    case "child": {
      const message = `The child execution ${wait.child.execution} did not report its end in time`;
      return failed(state, unit, "CHILD_FAILED", message, context);
    }
    case "review": {
      const { onDue, escalate, assignees = [] } = wait.review;
      if (escalate !== undefined) {
        const all = [...new Set([...assignees, ...escalate.assignees])];
        return [{ kind: "reviewEscalated", atMs, node, assignees: all }];
      }
      const due: ExecutionEvent = { kind: "reviewDue", atMs, node };
      if (onDue === "fail") {
        return [due, ...failed(state, unit, "REVIEW_EXPIRED", "Nobody decided the review in time", context)];
      }
      const data = decidedData(wait.review, onDue.decision, onDue.data ?? null, wait.first);
      if (data === undefined) {
        const message =
          "Nobody decided the review in time, and what the first person approved was too large to be kept";
        return [due, ...failed(state, unit, "REVIEW_EXPIRED", message, context)];
      }
      const said = reviewOutput(onDue.decision, data, "on_due", context);
      const output = { json: { ...said, ...locksOf(wait.review, data) } };
      return [due, { kind: "nodeCompleted", atMs, node, output }];
    }
  }
}

/** Not all parents have ended in the time that the join gives them. */
function joinTimedOut(state: ExecutionState, node: number, context: Context): readonly ExecutionEvent[] {
  const { graph } = state.plan;
  const missing: string[] = [];
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    if (state.edges[edge] === 0) missing.push(graph.ids[graph.edgeParent[edge]!]!);
  }
  const seconds = state.planOf(node).spec.join_timeout_seconds;
  const shown = missing.slice(0, 20).join(", ") + (missing.length > 20 ? ` and ${missing.length - 20} more` : "");
  const message = `Not all of its parents ended within ${seconds} s of the first; missing: ${shown}`;
  const error = { code: "JOIN_TIMEOUT", message, retryable: false, details: { missing } };
  const events: ExecutionEvent[] = [{ kind: "nodeFailed", atMs: context.nowMs, node: graph.ids[node]!, error }];
  return [...events, ...afterFailure(state, node, error, context)];
}

function failed(
  state: ExecutionState,
  unit: number,
  code: string,
  message: string,
  context: Context,
): readonly ExecutionEvent[] {
  const error = { code, message, retryable: false };
  return [
    { kind: "nodeFailed", atMs: context.nowMs, node: state.nameOf(unit), error },
    ...afterFailure(state, unit, error, context),
  ];
}

function isFinalFailure(event: ExecutionEvent): boolean {
  if (event.kind === "executionEnded" || event.kind === "nodeFailed") return true;
  return event.kind === "taskFailed" && event.retryAtMs === null;
}
