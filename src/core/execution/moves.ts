import type { ExecutionEventKind } from "./events.ts";

/** A node's state as it is stored. CANCELLED is not among them: a closing event cancels what is open, all at once. */
export const NODE_STATUSES = ["pending", "queued", "running", "waiting", "completed", "failed", "skipped"] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

export const EXECUTION_STATUSES = ["new", "pending", "running", "completed", "partial", "failed", "cancelled"] as const;
export type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

export type Move<Status extends string> = readonly [from: Status, event: ExecutionEventKind, to: Status, why: string];

/** Every legal move of a node. `evolve` refuses any other; docs/states.md is drawn from it. */
export const NODE_MOVES = [
  ["pending", "taskDispatched", "queued", "its parents are done"],
  ["pending", "nodeCompleted", "completed", "the engine ran it"],
  ["pending", "nodeFailed", "failed", "a template or condition failed"],
  ["pending", "nodeSkipped", "skipped", "condition, route or a failed parent"],
  ["queued", "taskStarted", "running", "a worker is at it"],
  ["queued", "taskCompleted", "completed", "done before anybody reported the start"],
  ["queued", "taskFailed", "waiting", "retryable, and attempts are left"],
  ["queued", "taskFailed", "failed", "not retryable, or the last attempt"],
  ["queued", "deliveryLost", "queued", "same attempt, next delivery"],
  ["queued", "taskDispatched", "queued", "the next delivery went out"],
  ["queued", "nodeFailed", "failed", "its input can no longer be made"],
  ["running", "taskStarted", "running", "another delivery of the attempt reports"],
  ["running", "taskCompleted", "completed", "done"],
  ["running", "taskFailed", "waiting", "retryable, and attempts are left"],
  ["running", "taskFailed", "failed", "not retryable, or the last attempt"],
  ["running", "deliveryLost", "queued", "same attempt, next delivery"],
  ["waiting", "retryDue", "pending", "the backoff is over"],
] as const satisfies readonly Move<NodeStatus>[];

/** Every legal move of an execution. A terminal state is final within its generation. */
export const EXECUTION_MOVES = [
  ["new", "accepted", "pending", "the definition and input are durable"],
  ["pending", "started", "running", "triggered"],
  ["pending", "executionEnded", "cancelled", "cancelled before it ran"],
  ["running", "executionEnded", "completed", "every node ended, no failure unhandled"],
  ["running", "executionEnded", "partial", "some nodes failed, some completed"],
  ["running", "executionEnded", "failed", "fail_fast, workflow timeout, or nothing completed"],
  ["running", "executionEnded", "cancelled", "somebody cancelled it"],
] as const satisfies readonly Move<ExecutionStatus>[];

const LEGAL: ReadonlySet<string> = new Set(
  [...NODE_MOVES.map((move) => ["node", ...move]), ...EXECUTION_MOVES.map((move) => ["execution", ...move])].map(
    ([of, from, event, to]) => `${of} ${from} ${event} ${to}`,
  ),
);

/** Our own bug, caught before it is stored: an event that no table allows here. */
export class IllegalMove extends Error {
  override readonly name = "IllegalMove";
}

export function assertMove(
  of: "node" | "execution",
  from: NodeStatus | ExecutionStatus,
  event: ExecutionEventKind,
  to: NodeStatus | ExecutionStatus,
  id: string,
): void {
  if (!LEGAL.has(`${of} ${from} ${event} ${to}`)) {
    throw new IllegalMove(`${of} ${id}: no move from ${from} to ${to} by ${event}`);
  }
}
