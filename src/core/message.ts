import type { Json } from "../json/json.ts";
import type { Amounts, Used } from "./gate/amounts.ts";
import type { GateName, GateRule } from "./gate/rule.ts";
import type { Value } from "./value.ts";

/** One entry of an inbox. Everything that can change an entity arrives as one of these. */
export interface Message {
  /** Names this message; a message sent twice carries the same id. */
  readonly id: string;
  /** The entity it is for. */
  readonly to: string;
  /** Who asked: a key's id, `local`, or a part of the engine. */
  readonly by: string;
  /** W3C traceparent, or empty. */
  readonly trace: string;
  readonly tenant: string;
  /** Where the answer goes, if anybody waits for one. */
  readonly reply?: ReplyAddress;
  readonly body: MessageBody;
}

export interface ReplyAddress {
  readonly process: string;
  readonly request: string;
}

export type MessageBody =
  | Start
  | Trigger
  | Cancel
  | Pause
  | Resume
  | Retry
  | Signal
  | DecideReview
  | AssignReview
  | DiscardLetter
  | TaskStarted
  | TaskCompleted
  | TaskFailed
  | TaskHandedBack
  | DeliveryLost
  | ChildEnded
  | GateAcquire
  | GateReturn
  | GateForsaken
  | GateAnswered
  | GateCommand
  | CacheLookup
  | CacheReturn
  | CacheAnswered
  | Release;

export type MessageKind = MessageBody["kind"];

/**
 * Accept an execution, and run it unless it is held. From a parent it is also a call: the same child again, with a
 * higher `call`, means that the parent wants its result anew.
 */
export interface Start {
  readonly kind: "start";
  readonly workflow: string;
  readonly definition: string;
  readonly input: Value;
  /** Tells a repeated request from another one under the same key. */
  readonly bodyHash: string;
  /** Accepted, and not run before somebody triggers it. */
  readonly hold?: boolean;
  /** Who hears of the end: a `workflow` node, a batch. */
  readonly parent?: Parent;
  /** What a graph inside a map can see of the workflow around it. */
  readonly around?: Around;
  /** The execution it was forked from, and what that had completed: those nodes are done from the beginning. */
  readonly fork?: Fork;
  /** What people find it by. */
  readonly labels?: Labels;
  /** When its key was drawn, if that tells: nobody can have used it before. */
  readonly keyAtMs?: number;
}

/** Names and their values, checked by whoever takes them from people. */
export type Labels = Readonly<Record<string, string>>;

export interface Fork {
  readonly execution: string;
  readonly kept: readonly KeptNode[];
}

/** A node's output, copied: a large one is a blob of the new execution. */
export interface KeptNode {
  readonly node: string;
  readonly output: Value;
}

/** Where an execution was called from. */
export interface Parent {
  readonly entity: string;
  readonly instance: string;
  /** Counts the calls of one child; an end or a cancel of an earlier one means nothing any more. 1 if not said. */
  readonly call?: number;
  /** Somebody above has a place among the executions of its workflow, in which this one runs too. */
  readonly within?: true;
  /** How many executions are above; 1 if not said. */
  readonly depth?: number;
  /** How many executions may be open below it; as many as below a root if not said. */
  readonly allowance?: number;
  /** Of a part of a map: the execution whose budgets it spends. */
  readonly account?: string;
}

export interface Around {
  readonly item: Value;
  readonly index: number;
  /** `{id: {output} | {error}}` of the nodes around that are referred to inside. */
  readonly nodes: Value;
  /** The execution whose map it is. */
  readonly executionId?: string;
}

/** What everything that somebody asks of an execution has in common. */
interface Command {
  /** The same for every try of the same request: it is decided once. */
  readonly request: string;
  /** Tells a repeated request from another one under the same key. */
  readonly bodyHash?: string;
}

/** Run what is held; on one that ended badly, retry what failed. */
export interface Trigger extends Command {
  readonly kind: "trigger";
  readonly input?: Value;
  /** Besides those it was accepted with; of the same name they replace them. */
  readonly labels?: Labels;
}

export interface Cancel extends Command {
  readonly kind: "cancel";
  /** From the gate of its workflow: the place that others are to have; if it has that no more, nothing is meant. */
  readonly entry?: { readonly gate: string; readonly ask: number };
  /** From a parent: the start that may not have arrived yet, so that it finds a cancelled execution when it does. */
  readonly start?: Start;
}

export interface Pause extends Command {
  readonly kind: "pause";
}

export interface Resume extends Command {
  readonly kind: "resume";
}

/** Open a new generation of an execution that is over. */
export interface Retry extends Command {
  readonly kind: "retry";
  readonly scope: RetryScope;
  /** The node to begin with; for `letters` the one that gets another config; not for `failed`. */
  readonly from?: string;
  /** Another config for the node `from`. */
  readonly config?: { readonly [key: string]: Json };
  /** Another input for what runs from now on. */
  readonly input?: Value;
  /** The dead letters that are replayed, as they stand in the store. */
  readonly letters?: readonly Letter[];
}

/** What runs again: what failed; a node and all after it; that node alone; the nodes of dead letters. */
export type RetryScope = "failed" | "descendants" | "node" | "letters";

export interface Letter {
  readonly id: string;
  readonly class: "poison" | "exhausted";
  readonly queue: string;
  readonly text: string;
}

export interface Signal extends Command {
  readonly kind: "signal";
  readonly name: string;
  readonly data: Value;
}

export interface DecideReview extends Command {
  readonly kind: "decideReview";
  /** The node instance that waits, and the generation it waits in. */
  readonly instance: string;
  readonly generation: number;
  readonly decision: "approve" | "reject";
  readonly data: Json;
  readonly comment?: string;
}

/** Others are to decide it from now on. */
export interface AssignReview extends Command {
  readonly kind: "assignReview";
  readonly instance: string;
  readonly generation: number;
  readonly assignees: readonly string[];
}

/** Throw a dead letter away. */
export interface DiscardLetter extends Command {
  readonly kind: "discardLetter";
  readonly letter: string;
}

/** The handler is running: sent only for tasks that are still at it at the next tick. */
export interface TaskStarted {
  readonly kind: "taskStarted";
  readonly token: string;
  /** How long it had been running when this was posted. A duration, because worker clocks differ. */
  readonly runningMs: number;
}

export interface TaskCompleted {
  readonly kind: "taskCompleted";
  readonly token: string;
  readonly output: Value;
  readonly runningMs: number;
  /** What it has cost, in the handler's own terms: tokens, money. */
  readonly usage?: Json;
  /** Whoever it called has no more to give for so long. */
  readonly closeForMs?: number;
}

export interface TaskFailed {
  readonly kind: "taskFailed";
  readonly token: string;
  readonly error: ErrorValue;
  readonly retryAfterMs?: number;
  readonly runningMs: number;
  /** What it has cost all the same. */
  readonly usage?: Json;
  readonly closeForMs?: number;
}

/** A worker that stops gives its task back: the attempt is not used up. */
export interface TaskHandedBack {
  readonly kind: "taskHandedBack";
  readonly token: string;
}

/** The lease ran out. Posted by the store's `lapse`, judged by the owner. */
export interface DeliveryLost {
  readonly kind: "deliveryLost";
  readonly token: string;
}

export interface ChildEnded {
  readonly kind: "childEnded";
  readonly child: string;
  readonly generation: number;
  readonly instance: string;
  readonly status: string;
  /** Which call of the parent it answers; 1 if not said. */
  readonly call?: number;
  /** Already a value of the parent's: a large one was written into its scope. */
  readonly output?: Value;
  /** It has an output of so many bytes, which are more than a node may have. */
  readonly tooLargeBytes?: number;
  readonly error?: ErrorValue & { readonly node?: string };
  /** Of a part of a large map: how many of its items failed. */
  readonly failures?: number;
}

/** An execution asks a gate to let some of its tasks through. Those of one decision come in one message. */
export interface GateAcquire {
  readonly kind: "gateAcquire";
  readonly name: GateName;
  readonly rule: GateRule;
  /** Who asks, as an entity. */
  readonly execution: string;
  readonly workflow?: string;
  readonly asks: readonly GateAsk[];
}

export interface GateAsk {
  /** Of higher priority they go first; 0 if not said. */
  readonly priority?: number;
  /** Counted by the execution: no two of its asks have the same. */
  readonly ask: number;
  /** The node instance it is for. */
  readonly node: string;
  /** Of a rate: how many tokens it takes; 1 if not said. */
  readonly cost?: number;
  /** What the call will use up, as far as anybody knows before. */
  readonly estimate?: Amounts;
}

/** What was granted is given back, or what was asked is not wanted any more. */
export interface GateReturn {
  readonly kind: "gateReturn";
  readonly execution: string;
  readonly asks: readonly number[];
  /** At a breaker: those whose call came to a good end, and those whose did not. */
  readonly good?: readonly number[];
  readonly bad?: readonly number[];
  /** Where something was reserved: what those have used that were out. */
  readonly used?: readonly Used[];
  /** Those that only leave the line. If one was let through since, the answer to that is what gives it back. */
  readonly ifWaiting?: readonly number[];
  /** Whoever is behind the gate wants to be left alone for so long. */
  readonly closeForMs?: number;
}

/** The execution whose own budget it is was removed: nobody will ask for more. */
export interface GateForsaken {
  readonly kind: "gateForsaken";
  readonly execution: string;
}

/** A gate has decided. Whoever is granted something that it does not want any more gives it back. */
export interface GateAnswered {
  readonly kind: "gateAnswered";
  readonly gate: string;
  readonly granted?: readonly Pick<GateAsk, "ask" | "node">[];
  readonly refused?: readonly Pick<GateAsk, "ask" | "node">[];
  /** They ask for more than is left, and wait until somebody allows more. */
  readonly stalled?: readonly Pick<GateAsk, "ask" | "node">[];
  /** How the budget stands that has refused or stalled them. */
  readonly budget?: BudgetStanding;
}

export interface BudgetStanding {
  readonly limits: Amounts;
  readonly spent: Amounts;
}

/** A person closes a gate, opens it again, or sets a rule that goes before that of the definitions. */
export interface GateCommand extends Command {
  readonly kind: "gateCommand";
  readonly action: "trip" | "reset" | "override";
  readonly rule?: GateRule | null;
  /** Of a budget, instead of a rule: what it is to allow in all. What is not named stays as it is at that moment. */
  readonly amounts?: Amounts;
  /** It is a raise: where it allows more already, that stays. */
  readonly atLeast?: true;
}

/** An execution asks whether the result of some work is kept, before it does it. */
export interface CacheLookup {
  readonly kind: "cacheLookup";
  /** Who asks, as an entity. */
  readonly execution: string;
  /** Counted like what it asks of gates. */
  readonly ask: number;
  readonly node: string;
  /** Somebody wants the work done anew, whatever is kept. */
  readonly anew?: true;
}

/** Whoever did the work, or wanted to, is done with it; with a result it may be used again. */
export interface CacheReturn {
  readonly kind: "cacheReturn";
  readonly execution: string;
  readonly ask: number;
  /** Already a value of the cache's: a large one was written into its scope. */
  readonly stored?: { readonly output: Value; readonly ttlMs: number };
  /** The work was done, and has failed. */
  readonly failed?: true;
}

/** The result of that work, and whose it is; or, without one, leave to do the work. */
export interface CacheAnswered {
  readonly kind: "cacheAnswered";
  readonly cache: string;
  readonly ask: number;
  readonly node: string;
  readonly found?: { readonly output: Value; readonly from: string };
}

/** Let a quarantined entity go on, with the messages that were parked meanwhile. */
export interface Release {
  readonly kind: "release";
  readonly request: string;
}

/** An error as data: what nodes, executions and answers show. */
export interface ErrorValue {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: Json;
}

const KINDS: Readonly<Record<MessageKind, true>> = {
  start: true,
  trigger: true,
  cancel: true,
  pause: true,
  resume: true,
  retry: true,
  signal: true,
  decideReview: true,
  assignReview: true,
  discardLetter: true,
  taskStarted: true,
  taskCompleted: true,
  taskFailed: true,
  taskHandedBack: true,
  deliveryLost: true,
  childEnded: true,
  gateAcquire: true,
  gateReturn: true,
  gateForsaken: true,
  gateAnswered: true,
  gateCommand: true,
  cacheLookup: true,
  cacheReturn: true,
  cacheAnswered: true,
  release: true,
};

/** Reads an entry of an inbox. undefined = nobody can make anything of it: it must not hold up what comes after. */
export function readMessage(text: string): Message | undefined {
  let value: Partial<Message> | null;
  try {
    value = JSON.parse(text) as Partial<Message> | null;
  } catch {
    return undefined;
  }
  const kind = value?.body?.kind;
  const isWhole =
    typeof value?.id === "string" &&
    typeof value.to === "string" &&
    value.to.includes("/") &&
    kind !== undefined &&
    Object.hasOwn(KINDS, kind) &&
    (!(kind.startsWith("task") || kind.startsWith("delivery")) ||
      typeof (value.body as Partial<TaskStarted>).token === "string");
  return isWhole ? (value as Message) : undefined;
}

export function messageText(message: Message): string {
  return JSON.stringify(message);
}

/** A message about a task, posted by the store or a worker. The token names the execution, so no more is needed. */
export function taskMessage(
  task: { readonly entity: string; readonly token: string },
  by: string,
  body: TaskStarted | TaskCompleted | TaskFailed | TaskHandedBack | DeliveryLost,
): string {
  return messageText(messageOfTask(task, by, body));
}

/** The same, not written down. */
export function messageOfTask(
  task: { readonly entity: string; readonly token: string },
  by: string,
  body: TaskStarted | TaskCompleted | TaskFailed | TaskHandedBack | DeliveryLost,
): Message {
  return new TaskMessage(task, by, body);
}

/** A class: see the engine's `Resident`. */
class TaskMessage implements Message {
  readonly id: string;
  readonly to: string;
  readonly by: string;
  readonly trace = "";
  readonly tenant = "default";
  readonly body: Message["body"];

  constructor(task: { readonly entity: string; readonly token: string }, by: string, body: Message["body"]) {
    this.id = `${body.kind}:${task.token}`;
    this.to = task.entity;
    this.by = by;
    this.body = body;
  }
}
