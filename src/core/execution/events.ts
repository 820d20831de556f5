import type { BlobRef } from "../../expression/scope.ts";
import type { Json } from "../../json/json.ts";
import type { Amounts } from "../gate/amounts.ts";
import type { Around, BudgetStanding, ErrorValue, Fork, Labels, Message, Parent, RetryScope } from "../message.ts";
import type { Value } from "../value.ts";

/**
 * What has happened to an execution. A shipped event never changes its meaning: `evolve` of a kind and format is for
 * ever, and test/golden holds journals of every release. Add a kind, or raise EVENT_FORMAT and keep reading the old.
 */
export const EVENT_FORMAT = 1;

export type ExecutionEvent =
  | Accepted
  | Started
  | Paused
  | Resumed
  | GenerationOpened
  | TaskDispatched
  | TaskStartedEvent
  | TaskCompletedEvent
  | TaskFailedEvent
  | DeliveryLostEvent
  | RetryDue
  | NodeCompleted
  | NodeFailed
  | NodeSkipped
  | NodeWaiting
  | ReviewDue
  | ReviewEscalated
  | ReviewChanged
  | RoundEnded
  | RoundDue
  | MapOpened
  | SignalReceived
  | ChildrenCancelled
  | GateAsked
  | GateGranted
  | GateStalled
  | GatesReturned
  | EntryAsked
  | EntryGranted
  | EntryLeft
  | ParentCalled
  | ParentAnswered
  | LetterDiscarded
  | Repaired
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
  readonly parent?: Parent;
  readonly around?: Around;
  readonly fork?: Fork;
  readonly labels?: Labels;
}

export interface Started extends At {
  readonly kind: "started";
  /** When the workflow's timeout ends it; null = never. */
  readonly deadlineAtMs: number | null;
  /** Instead of the one it was accepted with. */
  readonly input?: Value;
  /** All it has from now on, if its trigger brought some. */
  readonly labels?: Labels;
}

export interface Paused extends At {
  readonly kind: "paused";
}

export interface Resumed extends At {
  readonly kind: "resumed";
}

/**
 * The execution goes on after its end. Which nodes are open again follows from the scope and the state (reopen.ts);
 * nodes that were open at the end and are not among them keep the state that the end gave them. Children that had not
 * been called off by then are called off with this event.
 */
export interface GenerationOpened extends At {
  readonly kind: "generationOpened";
  readonly generation: number;
  readonly scope: RetryScope;
  readonly from?: string;
  /** Of dead letters: their node instances, and their ids. */
  readonly instances?: readonly string[];
  readonly letters?: readonly string[];
  readonly config?: { readonly [key: string]: Json };
  readonly input?: Value;
  /** Of a graph inside a map that was called off before it was called. */
  readonly around?: Around;
  readonly deadlineAtMs: number | null;
  /** Set if the parent asked for it. */
  readonly call?: number;
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
  /** Of a node that repeats: which round, from 1. */
  readonly round?: number;
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
  /** What it has cost, in the handler's own terms. */
  readonly usage?: Json;
  /** For how long whoever it called has no more to give; said only of what has a gate. */
  readonly closeForMs?: number;
}

/** An attempt ended badly: by its handler, a deadline or three lost deliveries. With `retryAtMs` another one comes. */
export interface TaskFailedEvent extends At {
  readonly kind: "taskFailed";
  readonly node: string;
  readonly attempt: number;
  readonly delivery: number;
  readonly error: ErrorValue;
  readonly retryAtMs: number | null;
  /** When the worker began, if it said so. */
  readonly startedAtMs?: number;
  /** Which deadline ended it, if one did. */
  readonly deadline?: "queue" | "run";
  /** What it has cost all the same, if the worker said so. */
  readonly usage?: Json;
  /** For how long whoever it called wants to be left alone, and how long it ran; said only of what has a gate. */
  readonly closeForMs?: number;
  readonly ranMs?: number;
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
  /** The signal it has taken. */
  readonly signal?: string;
  /** The work was done in an earlier generation, and its result came after that had ended; or somebody else did it. */
  readonly reason?: "late_result" | "cached";
  /** Of a cached result: the id of the execution whose it is. */
  readonly from?: string;
  /** Of a part of a large map: how many of its items failed. */
  readonly failures?: number;
}

/** A node failed without a task: a template, a condition. */
export interface NodeFailed extends At {
  readonly kind: "nodeFailed";
  readonly node: string;
  readonly error: ErrorValue;
  /** Of a part of a large map that had too many failures: how many. */
  readonly failures?: number;
}

export interface NodeSkipped extends At {
  readonly kind: "nodeSkipped";
  readonly node: string;
  readonly reason: SkipReason;
}

export type SkipReason = "condition" | "route" | "upstream_failed";

/** A node that the engine runs itself has to wait, for one thing and at most until a moment. */
export interface NodeWaiting extends At {
  readonly kind: "nodeWaiting";
  readonly node: string;
  readonly wait: Wait;
  /** Partition time; null if only a calendar moment or the thing itself ends it. */
  readonly dueAtMs: number | null;
}

export type Wait =
  | { readonly for: "timer"; /** By the store's clock. */ readonly calendarAtMs?: number }
  | { readonly for: "signal"; readonly signal: string }
  | {
      readonly for: "review";
      readonly review: ReviewSpec;
      readonly calendarAtMs: number;
      /** Of two that are needed. */
      readonly first?: FirstDecision;
    }
  | { readonly for: "child"; readonly child: ChildCall };

export interface ReviewSpec {
  readonly title?: string;
  readonly form?: Json;
  readonly assignees?: readonly string[];
  readonly onDue: "fail" | { readonly decision: "approve" | "reject"; readonly data?: Json };
  /** By field: what was proposed, how sure somebody was of it, and where it was found. */
  readonly values?: Json;
  readonly confidence?: Json;
  readonly source?: Json;
  /** Two different people have to decide. */
  readonly fourEyes?: true;
  /** Until then others are to be asked too, at the time that is waited for. */
  readonly escalate?: Escalation;
}

export interface Escalation {
  readonly assignees: readonly string[];
  /** When the review is due, by the store's clock. */
  readonly dueAtMs: number;
}

/** What the first of two has decided. The second one's word counts. */
export interface FirstDecision {
  readonly decision: "approve" | "reject";
  readonly by: string;
  readonly at: string;
  readonly comment?: string;
  /** What he filled in; left out if it is large. */
  readonly data?: Json;
}

/** A child execution that was called. All that is needed to call it again, or off. */
export interface ChildCall {
  readonly execution: string;
  readonly workflow: string;
  readonly definition: string;
  /** The timeout of its workflow; 0 = none. */
  readonly timeoutSeconds: number;
  /** Of what it is given: with another input it is another child. */
  readonly inputHash: string;
  readonly call: number;
  /** How many executions it may be, itself and all below it; 1 if not said. */
  readonly holds?: number;
}

/** Nobody has decided in time. What comes of it follows in the same commit. */
export interface ReviewDue extends At {
  readonly kind: "reviewDue";
  readonly node: string;
}

/** Nobody has decided for a while: others are to look at it too. It stays open, and is due when it was. */
export interface ReviewEscalated extends At {
  readonly kind: "reviewEscalated";
  readonly node: string;
  readonly assignees: readonly string[];
}

/** Others are to decide it, or the first of two has. */
export interface ReviewChanged extends At {
  readonly kind: "reviewChanged";
  readonly node: string;
  readonly assignees?: readonly string[];
  readonly first?: FirstDecision;
}

/** A round of a node that repeats was judged: enough, or another one at `nextAtMs`. */
export interface RoundEnded extends At {
  readonly kind: "roundEnded";
  readonly node: string;
  readonly round: number;
  readonly nextAtMs: number | null;
}

/** The time between two rounds is over. */
export interface RoundDue extends At {
  readonly kind: "roundDue";
  readonly node: string;
}

/** The items of a map are known; each becomes a node instance `id[n]`. */
export interface MapOpened extends At {
  readonly kind: "mapOpened";
  readonly node: string;
  /** A list; of a large map a list of lists, each of which is a child execution. */
  readonly items: Value;
  readonly count: number;
  /** How many items there are in all, in a large map. */
  readonly total: number;
  readonly chunked: boolean;
  /** How many items may be under way at a time, and how many may fail. */
  readonly concurrency: number;
  readonly tolerated: number;
  readonly itemsHash: string;
  /** The same items as in an earlier generation: what is done of them stays done. */
  readonly kept: boolean;
  /** The version its items were made from, and what each of them can see. */
  readonly seen: number;
  /** Results are counted, not kept. */
  readonly collect?: false;
}

/** Kept until a `wait` takes it. */
export interface SignalReceived extends At {
  readonly kind: "signalReceived";
  readonly name: string;
  readonly data: Value;
  readonly by: string;
}

/** The execution is over, and so are these children: their cancels went out with this event. */
export interface ChildrenCancelled extends At {
  readonly kind: "childrenCancelled";
  readonly instances: readonly string[];
}

/** A gate was asked to let a task through; until it answers the unit waits. The mail went out with this event. */
export interface GateAsked extends At {
  readonly kind: "gateAsked";
  readonly node: string;
  /** As an entity. */
  readonly gate: string;
  readonly ask: number;
  readonly wait: GateWait;
  /** When it is given back: as soon as the work is known to have begun, or when it has ended. */
  readonly until: "start" | "end";
  /** Asked again after a budget had refused the first, for this model instead of the node's own. */
  readonly fallback?: string;
}

/** At a cache it waits for the result of somebody who does the same work. */
export type GateWait = "rate_limit" | "concurrency" | "breaker" | "cache" | "budget";

/** Too little is left of the budget: it waits, as a review, until somebody allows more. */
export interface GateStalled extends At {
  readonly kind: "gateStalled";
  readonly node: string;
  readonly gate: string;
  readonly ask: number;
  readonly budget: BudgetStanding;
}

/** The gate has let it through; or it has sent it away, and the unit fails when its turn comes. */
export interface GateGranted extends At {
  readonly kind: "gateGranted" | "gateRefused";
  readonly node: string;
  readonly gate: string;
  readonly ask: number;
  /** How the budget stood that has sent it away; for people only. */
  readonly budget?: BudgetStanding;
}

/** The execution as a whole waits for a place among those of its workflow. The mail went out with this event. */
export interface EntryAsked extends At {
  readonly kind: "entryAsked";
  readonly gate: string;
  readonly ask: number;
}

/** It has one, until it ends. */
export interface EntryGranted extends At {
  readonly kind: "entryGranted";
  readonly gate: string;
  readonly ask: number;
}

/** It leaves the line, and asks anew: nobody knows whether its gate has heard of it. */
export interface EntryLeft extends At {
  readonly kind: "entryLeft";
}

/** Given back to their gates, by mail that went out with this event. */
export interface GatesReturned extends At {
  readonly kind: "gatesReturned";
  readonly returns: readonly GateReturned[];
}

export interface GateReturned {
  readonly gate: string;
  readonly ask: number;
  /** Whoever is behind the gate wants to be left alone for so long. */
  readonly closeForMs?: number;
  /** What a breaker learns; of a cache, that the work has failed. */
  readonly outcome?: "good" | "bad";
  /** Where something was reserved: what it has used. Not there if it was not out. */
  readonly used?: Amounts;
  /** It only leaves the line, and nothing is given back if it was let through since. */
  readonly ifWaiting?: true;
  /** Of a cache: the node instance whose output it keeps from now on. */
  readonly keeps?: string;
}

/** The parent asks again for a result that is there already. */
export interface ParentCalled extends At {
  readonly kind: "parentCalled";
  readonly call: number;
}

/** It went out with this event. */
export interface ParentAnswered extends At {
  readonly kind: "parentAnswered";
  readonly call: number;
}

export interface LetterDiscarded extends At {
  readonly kind: "letterDiscarded";
  readonly letter: string;
}

/** The sweep found an open wait that nothing would have ended, and set it going again. A bug of ours, survived. */
export interface Repaired extends At {
  readonly kind: "repaired";
  readonly node: string;
  readonly what: string;
  /** Its deadline was known, and had only to be filed again. */
  readonly refiled?: true;
}

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
  readonly bodyHash?: string;
  /** What it had come to when it was answered. */
  readonly status?: string;
  readonly generation?: number;
}

export interface CommandRefused extends At {
  readonly kind: "commandRefused";
  readonly command: string;
  readonly request: string;
  readonly by: string;
  readonly code: string;
  readonly bodyHash?: string;
  /** What else its sender was told. */
  readonly detail?: string;
  readonly errors?: Json;
}

/** The generation is over. Nodes still open end with it: their states are derived, not written one by one. */
export interface ExecutionEnded extends At {
  readonly kind: "executionEnded";
  readonly status: EndStatus;
  readonly reason: EndReason;
  /** Of a failure its first, by the node that failed. */
  readonly error?: ErrorValue & { readonly node?: string };
  /** The node that has ended it under fail_fast, if it was not the first to fail. */
  readonly cause?: string;
  /** What an `end` node gives instead of the outputs. */
  readonly output?: Value;
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
