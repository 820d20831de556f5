import { EDGE_ON } from "../../definition/graph.ts";
import { EDGE_TABLE, failedEnd, type ParentEnd, skippedEnd } from "./edges.ts";
import type { EdgeCounts, JoinVerdict } from "./joins.ts";
import { EDGE, type ExecutionState } from "./state.ts";
import { returnAsks } from "./asks.ts";
import { dequeue, enqueue, setDue } from "./units.ts";

/** What becomes of a node whose join has spoken. */
export type Joined = (state: ExecutionState, node: number, verdict: Exclude<JoinVerdict, "wait">) => void;

/** A place in the line, or in that of the skipped. */
export const placeJoined: Joined = (state, node, verdict) => {
  if (verdict === "run") return enqueue(state, node);
  state.skips.push(node);
  state.skipReasons.set(node, verdict);
};

/**
 * Decides the edges out of an ended node. Over a generation every edge is looked at once. From its first decided parent
 * on a node has `join_timeout_seconds` to hear of the others.
 */
export function spread(state: ExecutionState, node: number, atMs: number): void {
  routeAway(state, node);
  eachDecided(state, node, joinDecided, atMs);
}

function joinDecided(state: ExecutionState, child: number, atMs: number): void {
  join(state, child, placeJoined);
  const seconds = state.plan.nodes[child]!.spec.join_timeout_seconds;
  if (seconds === undefined || state.statusOf(child) !== "pending") return;
  const isOpen = state.joined[child] === 0;
  const hasDue = (state.runs[child]?.dueAtMs ?? null) !== null;
  if (isOpen && !hasDue) setDue(state, child, atMs + seconds * 1000);
  if (!isOpen && hasDue) setDue(state, child, null);
}

/** What a router has not chosen is not run, whatever its other parents say; unless it has begun already. */
function routeAway(state: ExecutionState, node: number): void {
  const { routed } = state.planOf(node);
  const chosen = state.runs[node]?.chosen;
  if (routed.length === 0 || !chosen) return;
  for (const child of routed) {
    const { attempt = 0, round = 0 } = state.runs[child] ?? {};
    const hasBegun = state.statusOf(child) !== "pending" || attempt > 0 || round > 1;
    if (chosen.includes(child) || hasBegun || state.skipReasons.has(child)) continue;
    state.joined[child] = 1;
    dequeue(state, child);
    returnAsks(state, child);
    if ((state.runs[child]?.dueAtMs ?? null) !== null) setDue(state, child, null);
    state.skips.push(child);
    state.skipReasons.set(child, "route");
  }
}

function eachDecided(
  state: ExecutionState,
  node: number,
  then: (state: ExecutionState, child: number, atMs: number) => void,
  atMs: number,
): void {
  const { graph } = state.plan;
  const verdicts = EDGE_TABLE[endOf(state, node)];
  for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
    const edge = graph.childEdge[k]!;
    if (state.edges[edge] !== EDGE.undecided) continue;
    const child = graph.edgeChild[edge]!;
    const verdict = verdicts[EDGE_ON[graph.edgeOn[edge]!]!];
    state.edges[edge] = EDGE[verdict];
    state.undecided[child]!--;
    if (verdict === "ok") state.okEdges[child]!++;
    if (verdict === "bad") state.badEdges[child]!++;
    then(state, child, atMs);
  }
}

/** How an ended node looks to its dependants. */
function endOf(state: ExecutionState, node: number): ParentEnd {
  const status = state.statusOf(node);
  if (status === "completed") return "completed";
  if (status === "cancelled") return "skippedByFailure";
  if (status === "skipped") return skippedEnd(state.runs[node]!.skipReason!);
  const { spec, caught } = state.plan.nodes[node]!;
  return failedEnd(spec.on_error, caught);
}

/** Asks the join rule of a node, once more of its edges are decided; what it says is said once. */
export function join(state: ExecutionState, node: number, joined: Joined): void {
  if (state.joined[node] === 1 || state.statusOf(node) !== "pending") return;
  const verdict = state.plan.nodes[node]!.join(edgeCounts(state, node));
  if (verdict === "wait") return;
  state.joined[node] = 1;
  joined(state, node, verdict);
}

/** What the parents of a pending node say is asked for again, as if it had never been heard. */
export function rejoin(state: ExecutionState, node: number): void {
  const { graph } = state.plan;
  if (state.skipReasons.delete(node)) state.skips.remove(node);
  state.joined[node] = 0;
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    routeAway(state, graph.edgeParent[edge]!);
  }
  join(state, node, placeJoined);
}

export function edgeCounts(state: ExecutionState, node: number): EdgeCounts {
  const { parentStart } = state.plan.graph;
  const undecided = state.undecided[node]!;
  const ok = state.okEdges[node]!;
  const bad = state.badEdges[node]!;
  const total = parentStart[node + 1]! - parentStart[node]!;
  return { undecided, ok, bad, void: total - undecided - ok - bad };
}

/**
 * Works out everything about the graph from how its nodes ended: for a state that was put together otherwise than event
 * by event. Without `joined` only what the joins have said is noted; who stands in which line is known already.
 */
export function deriveGraph(state: ExecutionState, joined: Joined = () => {}): void {
  const { nodeCount } = state.plan.graph;
  state.resetGraph();
  for (const [node, { reads }] of state.edits) {
    for (const read of state.plan.nodes[node]!.reads) state.readersLeft[read]!--;
    for (const read of reads) state.readersLeft[read]!++;
  }
  for (let node = 0; node < nodeCount; node++) {
    if (!state.isNodeEnded(node)) continue;
    state.openCount--;
    state.joined[node] = 1;
    if (state.statusOf(node) === "completed") state.completedCount++;
    for (const read of state.planOf(node).reads) state.readersLeft[read]!--;
    eachDecided(state, node, () => {}, 0);
  }
  if (state.status === "new" || state.status === "pending") return;
  for (const node of state.skipReasons.keys()) state.joined[node] = 1;
  if (joined === placeJoined) {
    for (let node = 0; node < nodeCount; node++) if (state.statusOf(node) === "completed") routeAway(state, node);
  }
  for (let node = 0; node < nodeCount; node++) {
    if (state.statusOf(node) !== "pending") state.joined[node] = 1;
    else join(state, node, joined);
  }
}
