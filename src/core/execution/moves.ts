import type { ExecutionEventKind } from "./events.ts";

/**
 * A node's state as it is stored. A closing event cancels what is open, all at once and without a word about each; only
 * a new generation writes down which of them stay cancelled.
 */
export const NODE_STATUSES = [
  "pending",
  "queued",
  "running",
  "waiting",
  "completed",
  "failed",
  "skipped",
  "cancelled",
] as const;
export type NodeStatus = (typeof NODE_STATUSES)[number];

export const EXECUTION_STATUSES = [
  "new",
  "pending",
  "running",
  "paused",
  "completed",
  "partial",
  "failed",
  "cancelled",
] as const;
export type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

export type Move<Status extends string> = readonly [from: Status, event: ExecutionEventKind, to: Status, why: string];

/** Every legal move of a node. `evolve` refuses any other; docs/states.md is drawn from it. */
export const NODE_MOVES = [
  ["pending", "taskDispatched", "queued", "its parents are done"],
  ["pending", "nodeCompleted", "completed", "the engine ran it"],
  ["pending", "nodeFailed", "failed", "a template or condition failed, or the join's time was up"],
  ["pending", "nodeWaiting", "waiting", "for a moment, a signal, a person or a child"],
  ["pending", "mapOpened", "running", "its items are known"],
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
  ["running", "nodeCompleted", "completed", "every item of the map has ended"],
  ["running", "nodeFailed", "failed", "too many items of the map have failed"],
  ["waiting", "retryDue", "pending", "the backoff is over"],
  ["waiting", "nodeCompleted", "completed", "what it waited for has come"],
  ["waiting", "nodeFailed", "failed", "what it waited for did not come, or came to nothing"],
  ["queued", "taskCompleted", "waiting", "a round is done, and has to be judged"],
  ["running", "taskCompleted", "waiting", "a round is done, and has to be judged"],
  ["waiting", "roundEnded", "waiting", "another round"],
  ["waiting", "roundEnded", "completed", "the last round"],
  ["waiting", "roundDue", "pending", "time for the next round"],
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
  ["running", "paused", "paused", "nothing new starts"],
  ["paused", "resumed", "running", "it goes on"],
  ["paused", "executionEnded", "completed", "nothing was left to start"],
  ["paused", "executionEnded", "partial", "nothing was left to start"],
  ["paused", "executionEnded", "failed", "a failure or its timeout came while it was paused"],
  ["paused", "executionEnded", "cancelled", "somebody cancelled it"],
  ["completed", "generationOpened", "running", "a part runs again"],
  ["partial", "generationOpened", "running", "what failed runs again"],
  ["failed", "generationOpened", "running", "what failed runs again"],
  ["cancelled", "generationOpened", "running", "what was cancelled runs again"],
] as const satisfies readonly Move<ExecutionStatus>[];

/** By event: for each status that one may be in, by its place in the list, those that it may go to, a bit for each. */
type Legal = ReadonlyMap<ExecutionEventKind, readonly number[]>;

const STATUSES: Readonly<Record<"node" | "execution", readonly string[]>> = {
  node: NODE_STATUSES,
  execution: EXECUTION_STATUSES,
};
const LEGAL: Readonly<Record<"node" | "execution", Legal>> = {
  node: legal(NODE_STATUSES, NODE_MOVES),
  execution: legal(EXECUTION_STATUSES, EXECUTION_MOVES),
};

function legal<Status extends string>(statuses: readonly Status[], moves: readonly Move<Status>[]): Legal {
  const byEvent = new Map<ExecutionEventKind, number[]>();
  for (const [from, event, to] of moves) {
    const bits = byEvent.get(event) ?? statuses.map(() => 0);
    byEvent.set(event, bits);
    bits[statuses.indexOf(from)]! |= 1 << statuses.indexOf(to);
  }
  return byEvent;
}

/** Our own bug, caught before it is stored: an event that no table allows here. */
export class IllegalMove extends Error {
  override readonly name = "IllegalMove";
}

/** Looked into with every event: by numbers, so that there is one thing to look up and no list to go through. */
export function assertMove(
  of: "node" | "execution",
  from: NodeStatus | ExecutionStatus,
  event: ExecutionEventKind,
  to: NodeStatus | ExecutionStatus,
  id: string,
): void {
  const statuses = STATUSES[of];
  const bits = LEGAL[of].get(event)?.[statuses.indexOf(from)] ?? 0;
  if (((bits >> statuses.indexOf(to)) & 1) === 0) {
    throw new IllegalMove(`${of} ${id}: no move from ${from} to ${to} by ${event}`);
  }
}
