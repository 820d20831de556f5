import type { BlobRef } from "../../expression/scope.ts";
import type { ErrorValue, Message } from "../message.ts";
import type { Value } from "../value.ts";

/**
 * What has happened to an execution. A shipped event never changes its meaning: `evolve` of a kind and format is for
 * ever, and test/golden holds journals of every release. Add a kind, or raise EVENT_FORMAT and keep reading the old.
 */
export const EVENT_FORMAT = 1;

export type ExecutionEvent =
  | Accepted
  | Started
  | TaskDispatched
  | TaskStartedEvent
  | TaskCompletedEvent
  | TaskFailedEvent
  | DeliveryLostEvent
  | RetryDue
  | NodeCompleted
  | NodeFailed
  | NodeSkipped
  | ResultIgnored
  | LateResult
  | CommandApplied
  | CommandRefused
  | ExecutionEnded
  | Quarantined
  | Parked
  | Released;

export type ExecutionEventKind = ExecutionEvent["kind"];

interface At {
  /** Partition time. */
  readonly atMs: number;
}

export interface Accepted extends At {
  readonly kind: "accepted";
  readonly workflow: string;
  readonly definition: string;
  readonly input: Value;
  readonly bodyHash: string;
  readonly by: string;
  readonly tenant: string;
  readonly trace: string;
  readonly parent?: { readonly entity: string; readonly instance: string };
}

export interface Started extends At {
  readonly kind: "started";
  /** When the workflow's timeout ends it; null = never. */
  readonly deadlineAtMs: number | null;
}

/** A task was handed to its queue. Its deadline for being started is set by this very event. */
export interface TaskDispatched extends At {
  readonly kind: "taskDispatched";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly nonce: string;
  /**
   * The version its input was made from. A join may run before all parents have ended; what they give later is no part
   * of the input, in however many deliveries and attempts the task is made again.
   */
  readonly seen: number;
  /** Hash of the resolved input, of which the task carries the bytes. */
  readonly inputHash: string;
  readonly queueDeadlineAtMs: number;
  /** Set if the resolved config was too large for the task itself. */
  readonly config?: BlobRef;
}

/** A worker reported the start; from here the node's own timeout counts. */
export interface TaskStartedEvent extends At {
  readonly kind: "taskStarted";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly startedAtMs: number;
  readonly runDeadlineAtMs: number;
}

export interface TaskCompletedEvent extends At {
  readonly kind: "taskCompleted";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly startedAtMs: number;
  readonly output: Value;
}

/** An attempt ended badly: by its handler, a deadline or three lost deliveries. With `retryAtMs` another one comes. */
export interface TaskFailedEvent extends At {
  readonly kind: "taskFailed";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly error: ErrorValue;
  readonly retryAtMs: number | null;
  /** Which deadline ended it, if one did. */
  readonly deadline?: "queue" | "run";
}

/** The same attempt will be delivered again. */
export interface DeliveryLostEvent extends At {
  readonly kind: "deliveryLost";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  /** A hand-back is not held against the task; a lost worker is. */
  readonly handedBack: boolean;
}

/** The wait before the next attempt is over. */
export interface RetryDue extends At {
  readonly kind: "retryDue";
  readonly node: string;
}

/** A node that the engine runs itself is done. */
export interface NodeCompleted extends At {
  readonly kind: "nodeCompleted";
  readonly node: string;
  readonly output: Value;
}

/** A node failed without a task: a template, a condition. */
export interface NodeFailed extends At {
  readonly kind: "nodeFailed";
  readonly node: string;
  readonly error: ErrorValue;
}

export interface NodeSkipped extends At {
  readonly kind: "nodeSkipped";
  readonly node: string;
  readonly reason: SkipReason;
}

export type SkipReason = "condition" | "route" | "upstream_failed";

/** A result that counts for nothing: of an old attempt, a lost delivery, an unknown dispatch. */
export interface ResultIgnored extends At {
  readonly kind: "resultIgnored";
  readonly token: string;
  readonly reason: "staleAttempt" | "closed" | "unknownDispatch";
}

/** A completion that came after the end; kept so that a later generation need not repeat the work. */
export interface LateResult extends At {
  readonly kind: "lateResult";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly output: Value;
}

/** A command was decided. Remembered by its request id, so that the same request again gets the same answer. */
export interface CommandApplied extends At {
  readonly kind: "commandApplied";
  readonly command: string;
  readonly request: string;
  readonly by: string;
}

export interface CommandRefused extends At {
  readonly kind: "commandRefused";
  readonly command: string;
  readonly request: string;
  readonly by: string;
  readonly code: string;
}

/** The generation is over. Nodes still open end with it: their states are derived, not written one by one. */
export interface ExecutionEnded extends At {
  readonly kind: "executionEnded";
  readonly status: EndStatus;
  readonly reason: EndReason;
  readonly error?: ErrorValue & { readonly node?: string };
}

export type EndStatus = "completed" | "partial" | "failed" | "cancelled";
export type EndReason = "done" | "cancel" | "fail_fast" | "timeout" | "end";

/** Written by the engine shell, not by `decide`: this entity cannot be decided, and is left alone until released. */
export interface Quarantined extends At {
  readonly kind: "quarantined";
  readonly error: ErrorValue;
}

/** A message that came during the quarantine, kept for the release. */
export interface Parked extends At {
  readonly kind: "parked";
  readonly message: Message;
}

export interface Released extends At {
  readonly kind: "released";
  readonly request: string;
}
