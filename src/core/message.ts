import type { Json } from "../json/json.ts";
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
  | Cancel
  | TaskStarted
  | TaskCompleted
  | TaskFailed
  | TaskHandedBack
  | DeliveryLost
  | ChildEnded
  | Release;

export type MessageKind = MessageBody["kind"];

/** Accept an execution, and run it unless it is held. */
export interface Start {
  readonly kind: "start";
  readonly workflow: string;
  readonly definition: string;
  readonly input: Value;
  /** Tells a repeated request from another one under the same key. */
  readonly bodyHash: string;
  /** Who hears of the end: a `workflow` node, a batch. */
  readonly parent?: { readonly entity: string; readonly instance: string };
}

export interface Cancel {
  readonly kind: "cancel";
  readonly request: string;
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
}

export interface TaskFailed {
  readonly kind: "taskFailed";
  readonly token: string;
  readonly error: ErrorValue;
  readonly retryAfterMs?: number;
  readonly runningMs: number;
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
  cancel: true,
  taskStarted: true,
  taskCompleted: true,
  taskFailed: true,
  taskHandedBack: true,
  deliveryLost: true,
  childEnded: true,
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
    (!/^(task|delivery)/.test(kind) || typeof (value.body as Partial<TaskStarted>).token === "string");
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
  const id = `${body.kind}:${task.token}`;
  return JSON.stringify({ id, to: task.entity, by, trace: "", tenant: "default", body } satisfies Message);
}
