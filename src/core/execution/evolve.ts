import { EDGE_ON } from "../../definition/graph.ts";
import { EDGE_TABLE, failedEnd, type ParentEnd, skippedEnd } from "./edges.ts";
import type { Accepted, ExecutionEnded, ExecutionEvent, Started, TaskDispatched } from "./events.ts";
import type { EdgeCounts, JoinVerdict } from "./joins.ts";
import { assertMove, type NodeStatus } from "./moves.ts";
import { type CommandAnswer, EDGE, type ExecutionState, REMEMBERED_REQUESTS, WORKFLOW_TIMER } from "./state.ts";

/** An output below this size stays in the state; dropping it would save nothing. */
const DROP_BYTES = 1024;

/**
 * Applies one event. The only function that changes an execution's state: replaying a journal through it is recovery,
 * reading and time travel alike, so it looks at nothing but the state and the event.
 */
export function evolve(state: ExecutionState, event: ExecutionEvent): void {
  state.version++;
  apply(state, event);
  state.timers.settle(state.timedCount + 1);
}

function apply(state: ExecutionState, event: ExecutionEvent): void {
  switch (event.kind) {
    case "accepted":
      return accepted(state, event);
    case "started":
      return started(state, event);
    case "taskDispatched":
      return taskDispatched(state, event);
    case "taskStarted": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "running");
      const run = state.run(node);
      run.startedAtMs = event.startedAtMs;
      setDue(state, node, event.runDeadlineAtMs);
      return;
    }
    case "taskCompleted": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "completed");
      const run = state.run(node);
      run.startedAtMs = event.startedAtMs;
      run.output = event.output;
      run.outputVersion = state.version;
      run.error = null;
      endNode(state, node, event.atMs, "completed");
      return;
    }
    case "taskFailed": {
      const node = nodeOf(state, event.node);
      const run = state.run(node);
      run.error = event.error;
      if (event.retryAtMs !== null) {
        move(state, node, event, "waiting");
        setLive(state, node, false);
        setDue(state, node, event.retryAtMs);
        return;
      }
      move(state, node, event, "failed");
      endNode(state, node, event.atMs, failedEndOf(state, node));
      return;
    }
    case "deliveryLost": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "queued");
      const run = state.run(node);
      if (!event.handedBack) run.lost++;
      run.startedAtMs = null;
      setLive(state, node, false);
      setDue(state, node, null);
      enqueue(state, node);
      return;
    }
    case "retryDue": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "pending");
      setDue(state, node, null);
      enqueue(state, node);
      return;
    }
    case "nodeCompleted": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "completed");
      const run = state.run(node);
      run.output = event.output;
      run.outputVersion = state.version;
      endNode(state, node, event.atMs, "completed");
      return;
    }
    case "nodeFailed": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "failed");
      state.run(node).error = event.error;
      endNode(state, node, event.atMs, failedEndOf(state, node));
      return;
    }
    case "nodeSkipped": {
      const node = nodeOf(state, event.node);
      move(state, node, event, "skipped");
      state.run(node).skipReason = event.reason;
      endNode(state, node, event.atMs, skippedEnd(event.reason));
      return;
    }
    case "executionEnded":
      return executionEnded(state, event);
    case "commandApplied":
      return remember(state, event.request, { applied: true });
    case "commandRefused":
      return remember(state, event.request, { applied: false, code: event.code });
    case "lateResult":
      state.run(nodeOf(state, event.node)).late = event.output;
      return;
    case "quarantined":
      state.quarantined = event.error;
      return;
    case "parked":
      state.parked.push(event.message);
      return;
    case "released":
      state.quarantined = null;
      state.parked = [];
      return;
    case "resultIgnored":
      return;
  }
}

function accepted(state: ExecutionState, event: Accepted): void {
  assertMove("execution", state.status, event.kind, "pending", state.id);
  state.status = "pending";
  state.input = event.input;
  state.bodyHash = event.bodyHash;
  state.by = event.by;
  state.tenant = event.tenant;
  state.trace = event.trace;
  state.parent = event.parent ?? null;
  state.createdAtMs = event.atMs;
}

function started(state: ExecutionState, event: Started): void {
  assertMove("execution", state.status, event.kind, "running", state.id);
  state.status = "running";
  state.startedAtMs = event.atMs;
  state.deadlineAtMs = event.deadlineAtMs;
  if (event.deadlineAtMs !== null) state.timers.push(event.deadlineAtMs, WORKFLOW_TIMER);
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    if (state.undecided[node] === 0) join(state, node, placeJoined);
  }
}

function taskDispatched(state: ExecutionState, event: TaskDispatched): void {
  const node = nodeOf(state, event.node);
  move(state, node, event, "queued");
  const run = state.run(node);
  if (event.attempt !== run.attempt) {
    run.attempt = event.attempt;
    run.lost = 0;
    run.nonces = [];
  }
  run.delivery = event.delivery;
  run.nonces.push(event.nonce);
  run.inputHash = event.inputHash;
  run.seen = event.seen;
  run.queuedAtMs = event.atMs;
  run.startedAtMs = null;
  dequeue(state, node);
  setLive(state, node, true);
  setDue(state, node, event.queueDeadlineAtMs);
}

/**
 * One event closes everything. Nodes that are still open keep their own last state, so that what was out can be
 * withdrawn; how they read from now on follows from the end (see `nodeView`).
 */
function executionEnded(state: ExecutionState, event: ExecutionEnded): void {
  assertMove("execution", state.status, event.kind, event.status, state.id);
  state.status = event.status;
  state.end = { status: event.status, reason: event.reason, error: event.error ?? null };
  state.endedAtMs = event.atMs;
  state.deadlineAtMs = null;
  state.timers.clear();
  for (const line of state.ready.values()) line.clear();
  state.inLine.fill(0);
  state.skips.clear();
  state.skipReasons.clear();
}

/** A node has ended: its dependants hear of it, and what only it could still read is let go. */
function endNode(state: ExecutionState, node: number, atMs: number, end: ParentEnd): void {
  const run = state.run(node);
  run.endedAtMs = atMs;
  run.endedVersion = state.version;
  setLive(state, node, false);
  setDue(state, node, null);
  dequeue(state, node);
  if (state.skipReasons.delete(node)) state.skips.remove(node);
  state.openCount--;
  if (end === "completed") state.completedCount++;
  if (state.statusOf(node) === "failed") state.failed.push(node);
  spread(state, node, end, placeJoined);
  for (const read of state.plan.nodes[node]!.reads) {
    state.readersLeft[read]!--;
    dropIfUnread(state, read);
  }
  dropIfUnread(state, node);
}

/** What a node whose join has spoken comes to: a place in the line, or in that of the skipped. */
function placeJoined(state: ExecutionState, node: number, verdict: Exclude<JoinVerdict, "wait">): void {
  if (verdict === "run") return enqueue(state, node);
  state.skips.push(node);
  state.skipReasons.set(node, verdict);
}

/** Decides the edges out of an ended node. Over a generation every edge is looked at once. */
export function spread(state: ExecutionState, node: number, end: ParentEnd, joined: typeof placeJoined): void {
  const { graph } = state.plan;
  const verdicts = EDGE_TABLE[end];
  for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
    const edge = graph.childEdge[k]!;
    if (state.edges[edge] !== EDGE.undecided) continue;
    const child = graph.edgeChild[edge]!;
    const verdict = verdicts[EDGE_ON[graph.edgeOn[edge]!]!];
    state.edges[edge] = EDGE[verdict];
    state.undecided[child]!--;
    if (verdict === "ok") state.okEdges[child]!++;
    if (verdict === "bad") state.badEdges[child]!++;
    join(state, child, joined);
  }
}

/** Asks the join rule of a node, once more of its edges are decided; what it says is said once. */
export function join(state: ExecutionState, node: number, joined: typeof placeJoined): void {
  if (state.joined[node] === 1 || state.statusOf(node) !== "pending") return;
  const verdict = state.plan.nodes[node]!.join(edgeCounts(state, node));
  if (verdict === "wait") return;
  state.joined[node] = 1;
  joined(state, node, verdict);
}

export function edgeCounts(state: ExecutionState, node: number): EdgeCounts {
  const { parentStart } = state.plan.graph;
  const undecided = state.undecided[node]!;
  const ok = state.okEdges[node]!;
  const bad = state.badEdges[node]!;
  const total = parentStart[node + 1]! - parentStart[node]!;
  return { undecided, ok, bad, void: total - undecided - ok - bad };
}

export function failedEndOf(state: ExecutionState, node: number): ParentEnd {
  const { spec, caught } = state.plan.nodes[node]!;
  return failedEnd(spec.on_error, caught);
}

function enqueue(state: ExecutionState, node: number): void {
  state.inLine[node] = 1;
  state.lineOf(node).push(node);
}

/** Most nodes that end stand in no line; looking through it for them would make a wide fan quadratic. */
function dequeue(state: ExecutionState, node: number): void {
  if (state.inLine[node] === 0) return;
  state.inLine[node] = 0;
  state.lineOf(node).remove(node);
}

function dropIfUnread(state: ExecutionState, node: number): void {
  if (state.readersLeft[node]! > 0 || state.plan.nodes[node]!.final) return;
  const run = state.runs[node];
  if (run === undefined || run.output === null || !("json" in run.output)) return;
  const bytes = run.output.bytes ?? 0;
  if (bytes < DROP_BYTES || run.endedAtMs === null) return;
  run.output = { past: { version: run.outputVersion, bytes } };
}

function setLive(state: ExecutionState, node: number, live: boolean): void {
  if (state.live.has(node) === live) return;
  const { queue } = state.plan.nodes[node]!.spec;
  if (live) state.live.add(node);
  else state.live.delete(node);
  const count = (state.liveByQueue.get(queue) ?? 0) + (live ? 1 : -1);
  if (count === 0) state.liveByQueue.delete(queue);
  else state.liveByQueue.set(queue, count);
}

function setDue(state: ExecutionState, node: number, dueAtMs: number | null): void {
  const run = state.run(node);
  if (run.dueAtMs === null && dueAtMs !== null) state.timedCount++;
  if (run.dueAtMs !== null && dueAtMs === null) state.timedCount--;
  run.dueAtMs = dueAtMs;
  if (dueAtMs !== null) state.timers.push(dueAtMs, node);
}

function remember(state: ExecutionState, request: string, answer: CommandAnswer): void {
  state.requests.set(request, answer);
  if (state.requests.size <= REMEMBERED_REQUESTS) return;
  const oldest = state.requests.keys().next().value;
  if (oldest !== undefined) state.requests.delete(oldest);
}

function move(state: ExecutionState, node: number, event: ExecutionEvent, to: NodeStatus): void {
  assertMove("node", state.statusOf(node), event.kind, to, state.plan.graph.ids[node]!);
  state.setStatus(node, to);
}

function nodeOf(state: ExecutionState, id: string): number {
  const node = state.plan.graph.indexOf.get(id);
  if (node === undefined) throw new Error(`event for a node that the definition does not have: ${id}`);
  return node;
}
