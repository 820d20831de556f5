import type { Context } from "../../machine.ts";
import type { ErrorValue, TaskFailed } from "../../message.ts";
import { closing } from "../asks.ts";
import { backoffMs } from "../backoff.ts";
import { decided, type ExecutionDecision } from "../decision.ts";
import type { ExecutionEvent, TaskFailedEvent } from "../events.ts";
import { afterFailure } from "../failure.ts";
import type { ExecutionState } from "../state.ts";
import { claim } from "./dispatch.ts";
import { ignoredResult } from "./ignored-result.ts";
import { startOf } from "./task-started.ts";

/**
 * A task attempt failed: schedule another, or give the node up.
 *
 * Moves the node `queued | running → waiting | failed`. Only the newest delivery may end the attempt: a zombie that
 * fails late must not end what another worker is doing.
 */
export function taskFailed(state: ExecutionState, body: TaskFailed, context: Context): ExecutionDecision {
  const claimed = claim(state, body.token);
  if (claimed.kind !== "current") return ignoredResult(state, body.token, claimed.kind, context);
  if (!claimed.newest) return ignoredResult(state, body.token, "stale", context);
  const { unit, token } = claimed;
  const ending = { attempt: token.attempt, delivery: token.delivery };
  const events = attemptFailed(state, unit, ending, body.error, context, body);
  return decided(state, context, events, { reply: { ok: { accepted: true } } });
}

/** The end of an attempt, whoever ended it: another one after the backoff if it may, else the node has failed. */
export function attemptFailed(
  state: ExecutionState,
  unit: number,
  ending: Pick<TaskFailedEvent, "attempt" | "delivery" | "deadline">,
  error: ErrorValue,
  context: Context,
  {
    retryAfterMs = 0,
    closeForMs,
    usage,
    runningMs,
  }: Partial<Pick<TaskFailed, "retryAfterMs" | "closeForMs" | "usage" | "runningMs">> = {},
): readonly ExecutionEvent[] {
  const plan = state.planOf(unit);
  const { spec, gates } = plan;
  const failed = {
    kind: "taskFailed" as const,
    atMs: context.nowMs,
    node: state.nameOf(unit),
    ...ending,
    error,
    ...(runningMs !== undefined && {
      startedAtMs: startOf(state.run(unit).queuedAtMs, context.nowMs, runningMs),
    }),
    ...closing(plan, retryAfterMs, closeForMs),
    ...(usage !== undefined && { usage }),
    ...(gates.length > 0 && runningMs !== undefined && { ranMs: runningMs }),
  };
  const attemptsLeft = spec.retry.max_attempts - ending.attempt;
  if (error.retryable && attemptsLeft > 0) {
    const retryAtMs = context.nowMs + backoffMs(spec.retry, ending.attempt, context.random(), retryAfterMs);
    return [{ ...failed, retryAtMs }];
  }
  return [{ ...failed, retryAtMs: null }, ...afterFailure(state, unit, error, context)];
}
