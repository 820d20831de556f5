import type { Message } from "../message.ts";
import type { KeptValue } from "../value.ts";
import { type ParentEnd, skippedEnd } from "./edges.ts";
import { failedEndOf, join, spread } from "./evolve.ts";
import type { SkipReason } from "./events.ts";
import type { ExecutionStatus, NodeStatus } from "./moves.ts";
import type { Plan } from "./plan.ts";
import { type CommandAnswer, ExecutionState, type NodeRun, WORKFLOW_TIMER } from "./state.ts";

/** A snapshot of another format is ignored: it is a cache, and the events tell the same. */
export const SNAPSHOT_FORMAT = 1;

/** What a snapshot holds: the nodes that were touched, and the order of the lines. All else follows from them. */
interface SnapshotBody {
  readonly definition: string;
  readonly version: number;
  readonly generation: number;
  readonly status: ExecutionStatus;
  readonly input: KeptValue;
  readonly bodyHash: string;
  readonly by: string;
  readonly tenant: string;
  readonly trace: string;
  readonly parent: ExecutionState["parent"];
  readonly times: readonly [number, number | null, number | null, number | null];
  readonly end: ExecutionState["end"];
  readonly quarantined: ExecutionState["quarantined"];
  readonly parked: readonly Message[];
  readonly requests: readonly (readonly [string, CommandAnswer])[];
  readonly nodes: readonly (readonly [string, NodeStatus, NodeRun])[];
  readonly failed: readonly string[];
  readonly live: readonly string[];
  readonly ready: readonly (readonly [string, readonly string[]])[];
  readonly skips: readonly (readonly [string, SkipReason])[];
}

export function snapshot(state: ExecutionState): string {
  const { ids } = state.plan.graph;
  const nodes: [string, NodeStatus, NodeRun][] = [];
  for (let i = 0; i < ids.length; i++) {
    const run = state.runs[i];
    if (run !== undefined) nodes.push([ids[i]!, state.statusOf(i), run]);
  }
  const body: SnapshotBody = {
    definition: state.plan.hash,
    version: state.version,
    generation: state.generation,
    status: state.status,
    input: state.input,
    bodyHash: state.bodyHash,
    by: state.by,
    tenant: state.tenant,
    trace: state.trace,
    parent: state.parent,
    times: [state.createdAtMs, state.startedAtMs, state.endedAtMs, state.deadlineAtMs],
    end: state.end,
    quarantined: state.quarantined,
    parked: state.parked,
    requests: [...state.requests],
    nodes,
    failed: state.failed.map((node) => ids[node]!),
    live: [...state.live].map((node) => ids[node]!),
    ready: [...state.ready]
      .filter(([, line]) => line.length > 0)
      .map(([queue, line]) => [queue, line.toArray().map((node) => ids[node]!)] as const),
    skips: state.skips.toArray().map((node) => [ids[node]!, state.skipReasons.get(node)!] as const),
  };
  return JSON.stringify(body);
}

export function definitionOfSnapshot(text: string): string {
  return (JSON.parse(text) as SnapshotBody).definition;
}

/** The state a snapshot was taken of. Costs O(nodes + edges), like the state itself. */
export function restore(id: string, plan: Plan, text: string): ExecutionState {
  const body = JSON.parse(text) as SnapshotBody;
  const state = new ExecutionState(id, plan);
  state.version = body.version;
  state.generation = body.generation;
  state.status = body.status;
  state.input = body.input;
  state.bodyHash = body.bodyHash;
  state.by = body.by;
  state.tenant = body.tenant;
  state.trace = body.trace;
  state.parent = body.parent;
  [state.createdAtMs, state.startedAtMs, state.endedAtMs, state.deadlineAtMs] = body.times;
  state.end = body.end;
  state.quarantined = body.quarantined;
  state.parked = [...body.parked];
  for (const [request, answer] of body.requests) state.requests.set(request, answer);
  restoreNodes(state, body);
  restoreLines(state, body);
  if (state.deadlineAtMs !== null) state.timers.push(state.deadlineAtMs, WORKFLOW_TIMER);
  state.timers.settle(state.timedCount + 1);
  return state;
}

function restoreNodes(state: ExecutionState, body: SnapshotBody): void {
  const indexOf = (id: string): number => state.plan.graph.indexOf.get(id)!;
  for (const [id, status, run] of body.nodes) {
    const node = indexOf(id);
    state.runs[node] = run;
    state.setStatus(node, status);
  }
  for (const id of body.failed) state.failed.push(indexOf(id));
  for (const id of body.live) {
    const node = indexOf(id);
    const { queue } = state.plan.nodes[node]!.spec;
    state.live.add(node);
    state.liveByQueue.set(queue, (state.liveByQueue.get(queue) ?? 0) + 1);
  }
  for (const [id] of body.nodes) {
    const node = indexOf(id);
    const { dueAtMs } = state.runs[node]!;
    if (dueAtMs !== null) state.timedCount++;
    if (dueAtMs !== null && !state.isEnded) state.timers.push(dueAtMs, node);
    if (!state.isNodeEnded(node)) continue;
    state.openCount--;
    state.joined[node] = 1;
    if (state.statusOf(node) === "completed") state.completedCount++;
    for (const read of state.plan.nodes[node]!.reads) state.readersLeft[read]!--;
    spread(state, node, parentEnd(state, node), () => {});
  }
  if (body.status === "new" || body.status === "pending") return;
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    if (state.statusOf(node) !== "pending") state.joined[node] = 1;
    else if (state.undecided[node] === 0) join(state, node, () => {});
  }
}

function restoreLines(state: ExecutionState, body: SnapshotBody): void {
  const indexOf = (id: string): number => state.plan.graph.indexOf.get(id)!;
  for (const [, line] of body.ready) {
    for (const id of line) {
      state.inLine[indexOf(id)] = 1;
      state.lineOf(indexOf(id)).push(indexOf(id));
    }
  }
  for (const [id, reason] of body.skips) {
    state.skips.push(indexOf(id));
    state.skipReasons.set(indexOf(id), reason);
  }
}

function parentEnd(state: ExecutionState, node: number): ParentEnd {
  const status = state.statusOf(node);
  if (status === "completed") return "completed";
  if (status === "failed") return failedEndOf(state, node);
  return skippedEnd(state.runs[node]!.skipReason!);
}
