import type { ExecutionEnded, ExecutionEvent, Started, TaskCompletedEvent, TaskDispatched } from "./events.ts";
import type { Plan } from "./plan.ts";

/**
 * An event as the journal has it: to the letter what `JSON.stringify` makes of it. Of the kinds that are in every run it is put
 * together by hand, which takes a third of the time; what few of them have, and all other kinds, is left to that.
 */
export function eventText(event: ExecutionEvent, plan: Plan): string {
  const { kind } = event;
  if (kind === "taskDispatched" && event.round === undefined && event.config === undefined) {
    return taskDispatched(event, plan);
  }
  if (kind === "taskCompleted" && isBareResult(event)) return taskCompleted(event, plan);
  if (kind === "started" && event.input === undefined && event.labels === undefined) return started(event);
  if (kind === "executionEnded" && isBareEnd(event)) return ended(event);
  return JSON.stringify(event);
}

/** What another process has posted need not have what its type says. */
function isBareResult({ usage, closeForMs, output }: TaskCompletedEvent): boolean {
  return usage === undefined && closeForMs === undefined && (output as unknown) !== undefined;
}

/**
 * A piece of text that is the same for most events of a batch. A text of many pieces is a tree until somebody reads it, and all
 * that it is made of lives as long: so there have to be few, and those shared.
 */
class SharedPiece {
  private readonly make: (number: number | null) => string;
  private number: number | null = null;
  private made: string;

  constructor(make: (number: number | null) => string) {
    this.make = make;
    this.made = make(null);
  }

  text(number: number | null): string {
    if (number === this.number) return this.made;
    this.number = number;
    return (this.made = this.make(number));
  }
}

// Each names its fields in the order in which its decision does. A field that is added to one of these has to be added here, or
// to what is asked above: the test beside this does not compile until that was thought of.

const dispatchedAt = new SharedPiece((atMs) => `{"kind":"taskDispatched","atMs":${numberText(atMs)},"node":`);
const dueAt = new SharedPiece((atMs) => `","queueDeadlineAtMs":${numberText(atMs)}}`);

function taskDispatched(event: TaskDispatched, plan: Plan): string {
  const { atMs, node, attempt, delivery, nonce, seen, inputHash, queueDeadlineAtMs } = event;
  const which = `${nameText(node, plan)}${tryText(attempt, delivery)}${nonceText(nonce)}${seen}`;
  return `${dispatchedAt.text(atMs)}${which},"inputHash":"${inputHash}${dueAt.text(queueDeadlineAtMs)}`;
}

const completedAt = new SharedPiece((atMs) => `{"kind":"taskCompleted","atMs":${numberText(atMs)},"node":`);
const startedAt = new SharedPiece((atMs) => `,"startedAtMs":${numberText(atMs)},"output":`);

function taskCompleted(event: TaskCompletedEvent, plan: Plan): string {
  const { atMs, node, attempt, delivery, startedAtMs, output } = event;
  const which = `${nameText(node, plan)}${tryText(attempt, delivery)}`;
  return `${completedAt.text(atMs)}${which}${startedAt.text(startedAtMs)}${JSON.stringify(output)}}`;
}

function started({ atMs, deadlineAtMs }: Started): string {
  return `{"kind":"started","atMs":${numberText(atMs)},"deadlineAtMs":${numberText(deadlineAtMs)}}`;
}

function isBareEnd({ error, cause, output }: ExecutionEnded): boolean {
  return error === undefined && cause === undefined && output === undefined;
}

const endedAt = new SharedPiece((atMs) => `{"kind":"executionEnded","atMs":${numberText(atMs)},"status":"`);

function ended({ atMs, status, reason }: ExecutionEnded): string {
  return `${endedAt.text(atMs)}${status}","reason":"${reason}"}`;
}

/** A worker far away may say that it has run for what is no number. */
function numberText(value: number | null): string {
  return Number.isFinite(value) ? `${value}` : JSON.stringify(value);
}

/** Of an item of a map there is none in the plan, and none of any node in a large one. */
function nameText(node: string, { graph, quotedIds }: Plan): string {
  const index = graph.indexOf.get(node);
  return (index === undefined ? undefined : quotedIds[index]) ?? JSON.stringify(node);
}

/** Nearly all are made once, and delivered once. */
function tryText(attempt: number, delivery: number): string {
  return attempt === 1 && delivery === 1 ? ',"attempt":1,"delivery":1' : `,"attempt":${attempt},"delivery":${delivery}`;
}

/** The same for all that one owner dispatches. */
let lastNonce = "";
let lastNonceText = ',"nonce":"","seen":';

function nonceText(nonce: string): string {
  if (nonce === lastNonce) return lastNonceText;
  lastNonce = nonce;
  return (lastNonceText = `,"nonce":${JSON.stringify(nonce)},"seen":`);
}
