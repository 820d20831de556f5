import { type Context, type Need, needKey, type TaskDraft } from "../machine.ts";
import { evaluateCondition } from "./condition.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import { naturalEnd, timedOut } from "./end.ts";
import type { ExecutionEvent, TaskDispatched } from "./events.ts";
import { afterFailure } from "./failure.ts";
import { attemptFailed } from "./messages/task-failed.ts";
import { runEngineNode, toValue } from "./nodes.ts";
import { isLarge, MAX_RESOLVED_BYTES, prepare, type Prepared, taskText, tooLarge } from "./prepare.ts";
import { ENGINE_LINE, type ExecutionState, WORKFLOW_TIMER } from "./state.ts";

/**
 * What follows from the state and the time alone: deadlines that have come, nodes to skip, nodes to run, the end.
 *
 * The shell calls it until it gives nothing, in the same batch while there is room, and first after every load; so a
 * crash between two calls loses nothing. It stops its list after a failure, because what follows may depend on it.
 */
export function advance(state: ExecutionState, context: Context): ExecutionDecision {
  if (state.isEnded || state.status !== "running") return NOTHING;
  return deadlines(state, context) ?? skips(state, context) ?? ready(state, context) ?? end(state, context) ?? NOTHING;
}

function deadlines(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.deadlineAtMs !== null && context.deadlineMs >= state.deadlineAtMs) {
    return decided(state, context, [timedOut(context, state)]);
  }
  const due = state.timers.due(context.nowMs, context.maxEvents).filter((node) => node !== WORKFLOW_TIMER);
  const events: ExecutionEvent[] = [];
  for (const node of due) {
    // The end of a backoff is nobody's loss; any other deadline waits until every result before it has been read.
    if (state.statusOf(node) !== "waiting" && state.runs[node]!.dueAtMs! > context.deadlineMs) continue;
    const more = deadline(state, node, context);
    events.push(...more);
    if (more.some(isFinalFailure)) break;
  }
  return events.length === 0 ? undefined : decided(state, context, events);
}

/** The deadline of a node has come: the end of a backoff, or of our patience with a queue or a worker. */
function deadline(state: ExecutionState, index: number, context: Context): readonly ExecutionEvent[] {
  const run = state.runs[index]!;
  const { id, spec } = state.plan.nodes[index]!;
  const ending = { attempt: run.attempt, delivery: run.delivery };
  switch (state.statusOf(index)) {
    case "waiting":
      return [{ kind: "retryDue", atMs: context.nowMs, node: id }];
    case "queued": {
      const message = `No worker took it from queue ${spec.queue} within ${spec.queue_timeout_seconds} s`;
      const error = { code: "QUEUE_TIMEOUT", message, retryable: false };
      return attemptFailed(state, index, { ...ending, deadline: "queue" }, error, context);
    }
    case "running": {
      const message = `The handler did not end within ${spec.timeout_seconds} s`;
      const error = { code: "TIMEOUT", message, retryable: true };
      return attemptFailed(state, index, { ...ending, deadline: "run" }, error, context);
    }
    case "pending":
    case "completed":
    case "failed":
    case "skipped":
      throw new Error(`${id} is ${state.statusOf(index)} and has a deadline`);
  }
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

/** What the walk over the ready nodes has gathered. */
interface Gathered {
  readonly events: ExecutionEvent[];
  readonly tasks: TaskDraft[];
  readonly blobs: { hash: string; text: string }[];
  readonly needs: Need[];
  readonly blocked: string[];
  /** Of the values to be fetched, each counted once. */
  neededBytes: number;
  dispatched: number;
  failed: boolean;
}

function ready(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  const gathered: Gathered = {
    events: [],
    tasks: [],
    blobs: [],
    needs: [],
    blocked: [],
    neededBytes: 0,
    dispatched: 0,
    failed: false,
  };
  for (const [queue, line] of state.ready) {
    const room = queue === ENGINE_LINE ? Infinity : context.room(queue);
    let used = 0;
    for (let place = 0; place < line.length && !isFull(gathered, context); place++) {
      const node = line.at(place)!;
      if (queue !== ENGINE_LINE && used >= room) {
        gathered.blocked.push(queue);
        break;
      }
      if (queue !== ENGINE_LINE && !hasParallelRoom(state, gathered)) break;
      const before = gathered.dispatched;
      runNode(state, node, context, gathered);
      used += gathered.dispatched - before;
    }
    if (isFull(gathered, context)) break;
  }
  const { events, tasks, blobs, needs, blocked } = gathered;
  if (events.length === 0 && needs.length === 0 && blocked.length === 0) return undefined;
  return decided(state, context, events, { tasks, blobs, needs, blocked });
}

function isFull(gathered: Gathered, context: Context): boolean {
  return gathered.failed || gathered.events.length >= context.maxEvents || gathered.neededBytes > MAX_RESOLVED_BYTES;
}

function hasParallelRoom(state: ExecutionState, gathered: Gathered): boolean {
  const limit = state.plan.workflow.max_parallel_nodes;
  return limit === null || state.live.size + gathered.dispatched < limit;
}

/** One ready node: condition first, then the engine's own nodes at once, others as a task. */
function runNode(state: ExecutionState, index: number, context: Context, gathered: Gathered): void {
  const { id, condition, engine } = state.plan.nodes[index]!;
  const atMs = context.nowMs;
  if (condition !== null && (state.runs[index]?.attempt ?? 0) === 0) {
    const outcome = evaluateCondition(state, index, condition, context);
    if (outcome.kind === "needs") return need(gathered, outcome.needs);
    if (outcome.kind === "skip")
      return void gathered.events.push({ kind: "nodeSkipped", atMs, node: id, reason: "condition" });
    if (outcome.kind === "failed") return failNode(state, index, outcome.error, context, gathered);
  }
  if (engine) {
    const result = runEngineNode(state, index, context);
    if (result.kind === "needs") return need(gathered, result.needs);
    if (result.kind === "failed") return failNode(state, index, result.error, context, gathered);
    const { value, blob, bytes } = toValue(result.output);
    if (bytes > MAX_RESOLVED_BYTES) return failNode(state, index, tooLarge(bytes), context, gathered);
    if (blob !== undefined) gathered.blobs.push(blob);
    return void gathered.events.push({ kind: "nodeCompleted", atMs, node: id, output: value });
  }
  const preparation = prepare(state, index, context);
  if (preparation.kind === "needs") return need(gathered, preparation.needs);
  if (preparation.kind === "failed") return failNode(state, index, preparation.error, context, gathered);
  dispatch(state, index, preparation.prepared, context, gathered);
}

/** Notes what has to be fetched. Many nodes may read the same value: it is fetched once. */
function need(gathered: Gathered, needs: readonly Need[]): void {
  const known = new Set(gathered.needs.map(needKey));
  for (const wanted of needs) {
    if (known.has(needKey(wanted))) continue;
    known.add(needKey(wanted));
    gathered.needs.push(wanted);
    gathered.neededBytes += "blob" in wanted ? wanted.blob.bytes : wanted.past.bytes;
  }
}

function dispatch(
  state: ExecutionState,
  index: number,
  prepared: Prepared,
  context: Context,
  gathered: Gathered,
): void {
  const { id, spec } = state.plan.nodes[index]!;
  const run = state.runs[index];
  // A queued node without a task out lost its delivery: the same attempt goes out again. Any other begins the next.
  const redelivery = state.statusOf(index) === "queued";
  const large = isLarge(prepared.text);
  const config = large ? { hash: prepared.inputHash, bytes: Buffer.byteLength(prepared.text) } : undefined;
  const event: TaskDispatched = {
    kind: "taskDispatched",
    atMs: context.nowMs,
    node: id,
    attempt: redelivery ? run!.attempt : (run?.attempt ?? 0) + 1,
    delivery: redelivery ? run!.delivery + 1 : 1,
    nonce: context.nonce,
    seen: run?.seen ?? state.version,
    inputHash: prepared.inputHash,
    queueDeadlineAtMs: context.nowMs + spec.queue_timeout_seconds * 1000,
    ...(config !== undefined && { config }),
  };
  gathered.events.push(event);
  gathered.tasks.push(taskText(state, index, event, prepared));
  gathered.dispatched++;
  if (large) gathered.blobs.push({ hash: prepared.inputHash, text: prepared.text });
}

function failNode(
  state: ExecutionState,
  index: number,
  error: { code: string; message: string; retryable: boolean },
  context: Context,
  gathered: Gathered,
): void {
  const { id } = state.plan.nodes[index]!;
  gathered.events.push({ kind: "nodeFailed", atMs: context.nowMs, node: id, error });
  gathered.events.push(...afterFailure(state, index, error, context));
  gathered.failed = true;
}

function end(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  return state.openCount > 0 ? undefined : decided(state, context, [naturalEnd(state, context)]);
}

function isFinalFailure(event: ExecutionEvent): boolean {
  return event.kind === "executionEnded" || (event.kind === "taskFailed" && event.retryAtMs === null);
}
