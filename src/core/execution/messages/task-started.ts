import type { Context } from "../../machine.ts";
import type { TaskStarted } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import { timeoutMs } from "../prepare.ts";
import type { ExecutionState } from "../state.ts";
import { claim } from "./dispatch.ts";

/** Two heartbeats: how long the owner leaves the worker to enforce a timeout itself. */
export const GRACE_MS = 10_000;

/**
 * A handler is running. From its start the node's own timeout counts, instead of the wait in the queue.
 *
 * Moves the node `queued → running`. Only the delivery that is out counts: a zombie's report must not move the deadline.
 */
export function taskStarted(state: ExecutionState, body: TaskStarted, context: Context): ExecutionDecision {
  const claimed = claim(state, body.token);
  if (claimed.kind !== "current" || !claimed.newest || claimed.run.startedAtMs !== null) return NOTHING;
  const { run, token, unit } = claimed;
  const startedAtMs = startOf(run.queuedAtMs, context.nowMs, body.runningMs);
  return decided(state, context, [
    {
      kind: "taskStarted",
      atMs: context.nowMs,
      node: state.nameOf(unit),
      attempt: token.attempt,
      delivery: token.delivery,
      startedAtMs,
      runDeadlineAtMs: startedAtMs + timeoutMs(state, unit, startedAtMs) + GRACE_MS,
    },
  ]);
}

/** A worker tells how long it has been running, not when it began: its clock may be any. */
export function startOf(queuedAtMs: number | null, nowMs: number, runningMs: number): number {
  return Math.max(queuedAtMs ?? 0, nowMs - Math.max(0, runningMs));
}
