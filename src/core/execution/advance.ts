import { DEFINITION_SCOPE } from "../entity.ts";
import { MAX_RESOLVED_BYTES } from "../../expression/json-size.ts";
import { isDeeperThan } from "../../json/depth.ts";
import { type BlobDraft, type Context, type Need, needKey, type TaskDraft } from "../machine.ts";
import type { Message } from "../message.ts";
import { isLarge, toValue } from "../value.ts";
import { evaluateCondition } from "./condition.ts";
import { deadlines } from "./deadlines.ts";
import { enter } from "./entry.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import { endMail, gatherOutput, naturalEnd } from "./end.ts";
import type { ExecutionEnded, ExecutionEvent, TaskDispatched } from "./events.ts";
import { afterFailure } from "./failure.ts";
import { cancelChild } from "./nodes/child.ts";
import type { EngineResult } from "./nodes/engine-node.ts";
import { runEngineNode } from "./nodes/engine-nodes.ts";
import { prepare, type Prepared, taskOf, tooLarge } from "./prepare.ts";
import { isMapDone } from "./maps.ts";
import { type AskDraft, askMail, askNext, returnToGates } from "./gates.ts";
import { ENGINE_LINE } from "./ready-lines.ts";
import { judgeRound } from "./repeat.ts";
import type { ExecutionState } from "./state.ts";
import { isClosing } from "./units.ts";

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/**
 * What follows from the state and the time alone: deadlines that have come, nodes to skip, nodes to run, the end.
 *
 * The shell calls it until it gives nothing, in the same batch while there is room, and first after every load; so a
 * crash between two calls loses nothing. It stops its list after a failure, because what follows may depend on it.
 */
export function advance(state: ExecutionState, context: Context): ExecutionDecision {
  const orphaned = orphans(state, context) ?? returnToGates(state, context);
  if (orphaned !== undefined) return orphaned;
  if (state.isEnded) return answer(state, context) ?? NOTHING;
  if (state.status !== "running" && state.status !== "paused") return NOTHING;
  const isOver = deadlines(state, context);
  if (isOver !== undefined) return isOver;
  return enter(state, context) ?? skips(state, context) ?? ready(state, context) ?? end(state, context) ?? NOTHING;
}

/** Children whose parent wants nothing of them any more are called off, so many at a time. */
function orphans(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.orphans.size === 0) return undefined;
  const units = [...state.orphans].slice(0, context.maxEvents);
  const mail = units.map((unit) => cancelChild(state, unit, state.runs[unit]!.child!));
  const instances = units.map((unit) => state.nameOf(unit));
  return decided(state, context, [{ kind: "childrenCancelled", atMs: context.nowMs, instances }], { mail });
}

/** The parent has called again for a result that is there. */
function answer(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (!state.owesAnswer || state.parent === null) return undefined;
  const { status, reason, error, output } = state.end!;
  const gathered = gatherOutput(state, output, null, context);
  if (gathered.kind === "needs") return { ...NOTHING, needs: gathered.needs };
  const ended: ExecutionEnded = {
    kind: "executionEnded",
    atMs: context.nowMs,
    status,
    reason,
    ...(error !== null && { error }),
  };
  return decided(state, context, [{ kind: "parentAnswered", atMs: context.nowMs, call: state.parent.call ?? 1 }], {
    mail: endMail(state, ended, gathered.given),
    blobs: gathered.blobs,
  });
}

function skips(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  const count = Math.min(state.skips.length, context.maxEvents);
  if (count === 0) return undefined;
  const events: ExecutionEvent[] = [];
  for (let place = 0; place < count; place++) {
    const node = state.skips.at(place)!;
    const reason = state.skipReasons.get(node)!;
    events.push({ kind: "nodeSkipped", atMs: context.nowMs, node: state.plan.graph.ids[node]!, reason });
  }
  return decided(state, context, events);
}

/**
 * Lists and objects within each other that an output may have which the engine makes: it can put what it was given into one more, node
 * after node, and what is too deep for the stack can neither be written nor read.
 */
const MAX_OUTPUT_LEVELS = 256;

/** What the walk over the ready units has gathered. Lists that most walks have no use for are made when something comes. */
interface Gathered {
  events: ExecutionEvent[];
  tasks: TaskDraft[] | undefined;
  blobs: BlobDraft[] | undefined;
  mail: Message[] | undefined;
  needs: Need[] | undefined;
  /** What gates are asked for: those of one gate in one message. */
  asks: AskDraft[] | undefined;
  blocked: string[] | undefined;
  /** Signals that were taken; each is there for one. */
  taken: string[] | undefined;
  /** Of the values to be fetched, each counted once. */
  neededBytes: number;
  /** Of the values to be written. */
  writtenChars: number;
  dispatched: number;
  /** What follows may depend on what has just happened. */
  isOver: boolean;
}

function ready(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.ready.count === 0) return undefined;
  const gathered: Gathered = {
    events: [],
    tasks: undefined,
    blobs: undefined,
    mail: undefined,
    needs: undefined,
    asks: undefined,
    blocked: undefined,
    taken: undefined,
    neededBytes: 0,
    writtenChars: 0,
    dispatched: 0,
    isOver: false,
  };
  for (const line of state.ready.inTurn) {
    const units = state.ready.of(line);
    if (line !== ENGINE_LINE && state.status === "paused") break;
    if (units.length === 0) continue;
    const queue = state.ready.queueOf(line);
    const room = line === ENGINE_LINE ? Infinity : roomFor(queue, context, gathered);
    for (let place = 0; place < units.length && !isFull(gathered, context); place++) {
      const unit = units.at(place)!;
      if (line === ENGINE_LINE) {
        if (state.status !== "paused" || isClosing(state, unit)) runUnit(state, unit, context, gathered);
        continue;
      }
      if (gathered.dispatched >= room) {
        const blocked = (gathered.blocked ??= []);
        if (!blocked.includes(queue)) blocked.push(queue);
        break;
      }
      if (!hasParallelRoom(state, gathered)) break;
      runUnit(state, unit, context, gathered);
    }
    if (isFull(gathered, context)) break;
  }
  const { events, tasks, blobs, needs, blocked, asks } = gathered;
  if (events.length === 0 && needs === undefined && blocked === undefined) return undefined;
  const mail = asks === undefined ? gathered.mail : [...(gathered.mail ?? []), ...askMail(state, asks)];
  const decision: Mutable<Omit<ExecutionDecision, "events">> = {};
  if (tasks !== undefined) decision.tasks = tasks;
  if (blobs !== undefined) decision.blobs = blobs;
  if (mail !== undefined) decision.mail = mail;
  if (needs !== undefined) decision.needs = needs;
  if (blocked !== undefined) decision.blocked = blocked;
  return decided(state, context, events, decision);
}

/** Up to how many tasks in all this line may send out; another line may have sent some to the same queue. */
function roomFor(queue: string, context: Context, { tasks, dispatched }: Gathered): number {
  let used = 0;
  if (tasks !== undefined) for (const task of tasks) if (task.queue === queue) used++;
  return dispatched - used + context.room(queue);
}

/** All that a decision reads and writes is in memory at once, beside that of others. */
function isFull({ isOver, events, neededBytes, writtenChars }: Gathered, context: Context): boolean {
  if (isOver || events.length >= context.maxEvents) return true;
  return neededBytes > MAX_RESOLVED_BYTES || writtenChars > MAX_RESOLVED_BYTES;
}

function write(gathered: Gathered, ...blobs: readonly BlobDraft[]): void {
  for (const blob of blobs) {
    const { scope, hash, text } = blob;
    // The items of a map that are graphs share one definition.
    const isThere = scope === DEFINITION_SCOPE && gathered.blobs?.some((one) => one.hash === hash) === true;
    if (isThere) continue;
    (gathered.blobs ??= []).push(blob);
    gathered.writtenChars += text.length;
  }
}

function hasParallelRoom(state: ExecutionState, gathered: Gathered): boolean {
  const limit = state.plan.workflow.max_parallel_nodes;
  return limit === null || state.live.size + gathered.dispatched < limit;
}

/** One ready unit: condition first, then the engine's own nodes at once, others as a task. */
function runUnit(state: ExecutionState, unit: number, context: Context, gathered: Gathered): void {
  const { condition, until, routed } = state.planOf(unit);
  // Its map has failed, and ends next.
  if (state.isItem(unit) && isMapDone(state.mapOf(unit))) return;
  const atMs = context.nowMs;
  const run = state.runs[unit];
  if (until !== null && state.statusOf(unit) === "waiting") {
    const judged = judgeRound(state, unit, context);
    if (judged.kind === "needs") return need(gathered, judged.needs);
    if (judged.kind === "failed") return failUnit(state, unit, judged.error, context, gathered);
    return void gathered.events.push(judged.event);
  }
  if (condition !== null && state.statusOf(unit) === "pending" && (run?.attempt ?? 0) === 0 && (run?.round ?? 0) < 2) {
    const outcome = evaluateCondition(state, unit, condition, context);
    if (outcome.kind === "needs") return need(gathered, outcome.needs);
    if (outcome.kind === "skip") {
      return void gathered.events.push({ kind: "nodeSkipped", atMs, node: state.nameOf(unit), reason: "condition" });
    }
    if (outcome.kind === "failed") return failUnit(state, unit, outcome.error, context, gathered);
  }
  if (state.isEngine(unit)) {
    takeResult(state, unit, runEngineNode(state, unit, context), context, gathered);
    // What it has not chosen may stand in line behind it.
    if (routed.length > 0 && gathered.events.length > 0) gathered.isOver = true;
    return;
  }
  const preparation = prepare(state, unit, context);
  if (preparation.kind === "needs") return need(gathered, preparation.needs);
  if (preparation.kind === "failed") return failUnit(state, unit, preparation.error, context, gathered);
  const late = run?.late;
  if (late && until === null && late.inputHash === preparation.prepared.inputHash && !("past" in late.output)) {
    const node = state.nameOf(unit);
    return void gathered.events.push({ kind: "nodeCompleted", atMs, node, output: late.output, reason: "late_result" });
  }
  const { gates, cache } = state.planOf(unit);
  if (gates.length > 0 || cache !== null) {
    const next = askNext(state, unit, gathered.asks?.length ?? 0, preparation.prepared, context);
    if (next.kind === "failed") return failUnit(state, unit, next.error, context, gathered);
    if (next.kind === "needs") return need(gathered, next.needs);
    if (next.kind === "asks") {
      (gathered.asks ??= []).push(next.draft);
      return void gathered.events.push(next.event);
    }
  }
  dispatch(state, unit, preparation.prepared, context, gathered);
}

function takeResult(
  state: ExecutionState,
  unit: number,
  result: EngineResult,
  context: Context,
  gathered: Gathered,
): void {
  const node = state.nameOf(unit);
  const atMs = context.nowMs;
  switch (result.kind) {
    case "needs":
      return need(gathered, result.needs);
    case "failed":
      return failUnit(state, unit, result.error, context, gathered);
    case "completed": {
      if (isDeeperThan(result.output, MAX_OUTPUT_LEVELS)) {
        const message = `The output has more than ${MAX_OUTPUT_LEVELS} levels of lists and objects`;
        return failUnit(state, unit, { code: "OUTPUT_INVALID", message, retryable: false }, context, gathered);
      }
      const { value, blob, bytes } = toValue(result.output);
      if (bytes > MAX_RESOLVED_BYTES && state.planOf(unit).item === null) {
        return failUnit(state, unit, tooLarge(bytes), context, gathered);
      }
      if (blob !== undefined) write(gathered, blob);
      return void gathered.events.push({ kind: "nodeCompleted", atMs, node, output: value });
    }
    case "taken": {
      // Several waits may be ready at once: each takes a signal of its own, those that find none wait.
      if (gathered.taken?.includes(result.signal) === true) return void (gathered.isOver = true);
      (gathered.taken ??= []).push(result.signal);
      const { signal, value } = result;
      return void gathered.events.push({ kind: "nodeCompleted", atMs, node, output: value, signal });
    }
    case "waits":
      if (result.mail !== undefined) (gathered.mail ??= []).push(...result.mail);
      if (result.blobs !== undefined) write(gathered, ...result.blobs);
      return void gathered.events.push({
        kind: "nodeWaiting",
        atMs,
        node,
        wait: result.wait,
        dueAtMs: result.dueAtMs,
      });
    case "opens":
      write(gathered, ...result.blobs);
      return void gathered.events.push({ kind: "mapOpened", atMs, node, ...result.map });
    case "ends":
      return endBy(state, node, result, context, gathered);
  }
}

/** An `end` node: it is done, and with it everything. */
function endBy(
  state: ExecutionState,
  node: string,
  result: Extract<EngineResult, { kind: "ends" }>,
  context: Context,
  gathered: Gathered,
): void {
  // The verdict is about everything before it, which has to be decided on its own first.
  if (gathered.events.length > 0) return void (gathered.isOver = true);
  const atMs = context.nowMs;
  const given = result.output === undefined ? undefined : toValue(result.output);
  const message = result.message ?? `Node ${node} ended the execution`;
  const failed = result.status === "failed";
  const ended: ExecutionEnded = {
    kind: "executionEnded",
    atMs,
    status: result.status,
    reason: "end",
    ...(failed && { error: { code: "END_FAILED", message, retryable: false, node } }),
    ...(!failed && given !== undefined && { output: given.value }),
  };
  if (state.parent !== null && !failed) {
    const gatheredOutput = gatherOutput(state, given?.value ?? null, node, { fetched: (key) => fetchedOr(key) });
    if (gatheredOutput.kind === "needs") return need(gathered, gatheredOutput.needs);
    (gathered.mail ??= []).push(...endMail(state, ended, gatheredOutput.given));
    write(gathered, ...gatheredOutput.blobs);
  }
  if (given?.blob !== undefined) write(gathered, given.blob);
  gathered.events.push({ kind: "nodeCompleted", atMs, node, output: given?.value ?? { json: null } }, ended);
  gathered.isOver = true;

  function fetchedOr(key: string): ReturnType<Context["fetched"]> {
    return given?.blob?.hash === key ? result.output : context.fetched(key);
  }
}

/** Notes what has to be fetched. Many nodes may read the same value: it is fetched once. */
function need(gathered: Gathered, needs: readonly Need[]): void {
  const noted = (gathered.needs ??= []);
  const known = new Set(noted.map(needKey));
  for (const wanted of needs) {
    if (known.has(needKey(wanted))) continue;
    known.add(needKey(wanted));
    noted.push(wanted);
    if ("blob" in wanted) gathered.neededBytes += wanted.blob.bytes;
    if ("past" in wanted) gathered.neededBytes += wanted.past.bytes;
  }
}

function dispatch(state: ExecutionState, unit: number, prepared: Prepared, context: Context, gathered: Gathered): void {
  const { spec, until } = state.planOf(unit);
  const run = state.runs[unit];
  // A queued unit without a task out lost its delivery: the same attempt goes out again. Any other begins the next.
  const redelivery = state.statusOf(unit) === "queued";
  const large = isLarge(prepared.text);
  const config = large ? { hash: prepared.inputHash, bytes: Buffer.byteLength(prepared.text) } : undefined;
  const map = state.isItem(unit) ? state.mapOf(unit) : undefined;
  const event: Mutable<TaskDispatched> = {
    kind: "taskDispatched",
    atMs: context.nowMs,
    node: state.nameOf(unit),
    attempt: redelivery ? run!.attempt : (run?.attempt ?? 0) + 1,
    delivery: redelivery ? run!.delivery + 1 : 1,
    nonce: context.nonce,
    seen: run?.seen ?? map?.seen ?? state.version,
    inputHash: prepared.inputHash,
    queueDeadlineAtMs: context.nowMs + spec.queue_timeout_seconds * 1000,
  };
  if (until !== null) event.round = Math.max(1, run?.round ?? 1);
  if (config !== undefined) event.config = config;
  // Not pushed to while there are few: a list that grows makes room for sixteen more, and most have one or two.
  const { events } = gathered;
  if (events.length === 0) gathered.events = [event];
  else if (events.length === 1) gathered.events = [events[0]!, event];
  else events.push(event);
  const task = taskOf(state, unit, event, prepared);
  if (gathered.tasks === undefined) gathered.tasks = [task];
  else gathered.tasks.push(task);
  gathered.dispatched++;
  if (large) write(gathered, { hash: prepared.inputHash, text: prepared.text });
  else gathered.writtenChars += prepared.text.length;
}

function failUnit(
  state: ExecutionState,
  unit: number,
  error: { code: string; message: string; retryable: boolean },
  context: Context,
  gathered: Gathered,
): void {
  gathered.isOver = true;
  const after = afterFailure(state, unit, error, context);
  // Which failure was the first that nobody has handled is asked once all before it is decided.
  if (after.length > 0 && state.failed.length > 0 && gathered.events.length > 0) return;
  gathered.events.push({ kind: "nodeFailed", atMs: context.nowMs, node: state.nameOf(unit), error }, ...after);
}

function end(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.openCount > 0) return undefined;
  const ended = naturalEnd(state, context);
  if (state.parent === null || ended.status !== "completed") return decided(state, context, [ended]);
  const gathered = gatherOutput(state, null, null, context);
  if (gathered.kind === "needs") return { ...NOTHING, needs: gathered.needs };
  const mail = endMail(state, ended, gathered.given);
  return decided(state, context, [ended], { mail, blobs: gathered.blobs });
}
