import type {
  Accepted,
  CommandApplied,
  ExecutionEnded,
  ExecutionEvent,
  Started,
  TaskCompletedEvent,
  TaskDispatched,
} from "./events.ts";
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
  if (kind === "accepted" && isBareStart(event)) return accepted(event);
  if (kind === "commandApplied" && isBareCommand(event)) return commandApplied(event);
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

/** Nor has what a message carried along, where an earlier release has sent it. */
function isBareStart(event: Accepted): boolean {
  const { parent, around, fork, labels, input } = event;
  const isWhole = STRINGS_OF_ACCEPTED.every((field) => typeof event[field] === "string");
  return isWhole && (input as unknown) !== undefined && (parent ?? around ?? fork ?? labels) === undefined;
}

const STRINGS_OF_ACCEPTED = ["workflow", "definition", "bodyHash", "by", "tenant", "trace"] as const;

/** Of all that one caller starts of one workflow at a time only the input is another. */
let lastWhat: Pick<Accepted, "atMs" | "workflow" | "definition"> | undefined;
let lastWhatText = "";
let lastWhose: Pick<Accepted, "bodyHash" | "by" | "tenant" | "trace"> | undefined;
let lastWhoseText = "";

function accepted({ atMs, workflow, definition, input, bodyHash, by, tenant, trace }: Accepted): string {
  if (lastWhat?.atMs !== atMs || lastWhat.definition !== definition || lastWhat.workflow !== workflow) {
    lastWhat = { atMs, workflow, definition };
    const what = `"workflow":${JSON.stringify(workflow)},"definition":${JSON.stringify(definition)}`;
    lastWhatText = `{"kind":"accepted","atMs":${numberText(atMs)},${what},"input":`;
  }
  const whose = lastWhose;
  if (whose?.bodyHash !== bodyHash || whose.by !== by || whose.tenant !== tenant || whose.trace !== trace) {
    lastWhose = { bodyHash, by, tenant, trace };
    // In this order, without the braces.
    lastWhoseText = `,${JSON.stringify(lastWhose).slice(1)}`;
  }
  return `${lastWhatText}${JSON.stringify(input)}${lastWhoseText}`;
}

function isBareCommand({ by, request, bodyHash, status, generation }: CommandApplied): boolean {
  return (
    typeof by === "string" &&
    typeof request === "string" &&
    bodyHash === undefined &&
    status !== undefined &&
    generation !== undefined
  );
}

/** Likewise of commands, but for the id of each. */
let lastCommand: Pick<CommandApplied, "command" | "by" | "atMs" | "status" | "generation"> | undefined;
let lastCommandBegin = "";
let lastCommandEnd = "";

function commandApplied({ command, request, by, atMs, status, generation }: CommandApplied): string {
  const last = lastCommand;
  const isAlike = last?.command === command && last.by === by && last.status === status;
  if (!isAlike || last.atMs !== atMs || last.generation !== generation) {
    lastCommand = { command, by, atMs, status: status!, generation: generation! };
    lastCommandBegin = `{"kind":"commandApplied","command":${JSON.stringify(command)},"request":`;
    lastCommandEnd = `,${JSON.stringify({ by, atMs, status, generation }).slice(1)}`;
  }
  return `${lastCommandBegin}${JSON.stringify(request)}${lastCommandEnd}`;
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
