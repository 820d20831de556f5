import type { RetryScope } from "../message.ts";
import type { GenerationOpened } from "./events.ts";
import { deriveGraph, placeJoined } from "./spread.ts";
import type { NodeRun } from "./node-run.ts";
import { type ExecutionState, WORKFLOW_TIMER } from "./state.ts";
import { reopenedRun, setDue } from "./units.ts";

export interface Reopening {
  readonly scope: RetryScope;
  readonly from?: string;
  /** Of dead letters: their node instances. */
  readonly instances?: readonly string[];
}

/**
 * The nodes that a new generation opens again. What runs again may end otherwise, so everything after it is open again
 * too, skipped nodes included; but for `node`, which is that one node alone.
 */
export function reopenedNodes(state: ExecutionState, { scope, from, instances = [] }: Reopening): Set<number> {
  const { nodeCount, indexOf } = state.plan.graph;
  const first: number[] = [];
  if (scope === "descendants" || scope === "node") first.push(indexOf.get(from!)!);
  else {
    const named = new Set(instances.map((name) => indexOf.get(name.replace(/\[\d+\]$/, ""))));
    const ender = endedBy(state);
    const cutsAll = scope === "failed" || named.has(indexOf.get(failFastCause(state) ?? ""));
    for (let node = 0; node < nodeCount; node++) {
      const isCut = !state.isNodeEnded(node) || (scope === "failed" && state.statusOf(node) === "cancelled");
      const isHit = state.statusOf(node) === "failed" || state.runs[node]?.skipReason === "upstream_failed";
      const isMeant = scope === "failed" ? isHit || node === ender || hasFailedParts(state, node) : named.has(node);
      if (isMeant || (isCut && cutsAll)) first.push(node);
    }
  }
  return scope === "node" ? new Set(first) : descendants(state, first);
}

/** The `end` node that has failed the execution: it has completed, and is what failed all the same. */
export function endedBy(state: ExecutionState): number | undefined {
  const { end } = state;
  if (end?.reason !== "end" || end.status !== "failed") return undefined;
  return state.plan.graph.indexOf.get(end.error?.node ?? "");
}

/** In a part of a large map the items that were tolerated failed all the same, and whoever asks again wants them. */
function hasFailedParts(state: ExecutionState, node: number): boolean {
  const map = state.plan.workflow["x-millrace-part"] === true ? state.maps.get(node) : undefined;
  return map !== undefined && map.failures > 0;
}

function descendants(state: ExecutionState, first: readonly number[]): Set<number> {
  const { graph } = state.plan;
  const reached = new Set(first);
  const work = [...first];
  for (let node = work.pop(); node !== undefined; node = work.pop()) {
    for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
      const child = graph.edgeChild[graph.childEdge[k]!]!;
      if (reached.has(child)) continue;
      reached.add(child);
      work.push(child);
    }
  }
  return reached;
}

/** The node whose failure has ended everything, if one has. */
export function failFastCause({ end }: ExecutionState): string | undefined {
  return end?.reason === "fail_fast" ? (end.cause ?? end.error?.node) : undefined;
}

/** Under fail_fast the open descendants of what failed read as skipped, all other open nodes as cancelled. */
export function upstreamFailed(state: ExecutionState): ReadonlySet<number> {
  const cause = state.plan.graph.indexOf.get(failFastCause(state) ?? "");
  const reached = cause === undefined ? new Set<number>() : descendants(state, [cause]);
  return new Set([...reached].filter((node) => !state.isNodeEnded(node)));
}

/** The next generation begins: some nodes anew, all others as they were. Only for `evolve`. */
export function openGeneration(state: ExecutionState, event: GenerationOpened): void {
  const open = reopenedNodes(state, event);
  const spared = upstreamFailed(state);
  const edited = event.config === undefined ? undefined : state.plan.graph.indexOf.get(event.from!);
  state.generation = event.generation;
  closeCut(state, open, spared);
  state.end = null;
  state.endedAtMs = null;
  state.status = "running";
  state.startedAtMs ??= event.atMs;
  state.deadlineAtMs = event.deadlineAtMs;
  if (event.input !== undefined) state.input = event.input;
  if (event.around !== undefined) state.around = event.around;
  if (event.call !== undefined) state.parent = { ...state.parent!, call: event.call };
  state.owesAnswer = false;
  for (const letter of event.letters ?? []) state.letters.set(letter, "replayed");
  if (edited !== undefined) state.edit(edited, event.config!);

  const sameChild = event.scope === "failed" || event.scope === "letters";
  const named = sameChild ? undefined : state.plan.graph.indexOf.get(event.from ?? "");
  for (const node of open) {
    const anew = node === named || node === edited;
    const run = reopenedRun(state, node, { edited: node === edited, sameChild, useLate: true, anew });
    reset(state, node, run);
    const map = state.maps.get(node);
    // Who wanted all of it anew, in a generation that ended before it was opened, still does.
    if (map !== undefined && map.again !== "all") map.again = againOf(event, state.plan.graph.ids[node]!);
    if (map !== undefined && node === edited) map.edited = true;
  }
  state.failed = state.failed.filter((node) => !open.has(node));
  deriveGraph(state, placeJoined);
  const { parentStart } = state.plan.graph;
  for (const node of open) {
    const seconds = state.plan.nodes[node]!.spec.join_timeout_seconds;
    const heard = parentStart[node + 1]! - parentStart[node]! - state.undecided[node]!;
    if (seconds !== undefined && heard > 0 && state.joined[node] === 0)
      setDue(state, node, event.atMs + seconds * 1000);
  }
  if (event.deadlineAtMs !== null) state.timers.push(event.deadlineAtMs, WORKFLOW_TIMER);
}

/** Nothing is out any more; nodes that were cut off by the end and stay closed are written down as what they read as. */
function closeCut(state: ExecutionState, open: ReadonlySet<number>, spared: ReadonlySet<number>): void {
  state.live.clear();
  state.liveByQueue.clear();
  state.signalWaits.clear();
  state.reviews.clear();
  state.children.clear();
  state.orphans.clear();
  for (let unit = 0; unit < state.runs.length; unit++) {
    const run = state.runs[unit];
    if (run !== undefined) {
      if (run.dueAtMs !== null) state.timedCount--;
      run.dueAtMs = null;
      run.wait = null;
    }
    if (state.isItem(unit)) {
      if (run === undefined || state.isNodeEnded(unit)) continue;
      run.cancelReason = state.end!.reason;
      state.setStatus(unit, "cancelled");
      continue;
    }
    if (open.has(unit) || state.isNodeEnded(unit)) continue;
    const closed = state.run(unit);
    closed.endedAtMs = state.endedAtMs;
    closed.endedVersion = state.version;
    state.setStatus(unit, spared.has(unit) ? "skipped" : "cancelled");
    if (spared.has(unit)) closed.skipReason = "upstream_failed";
    else closed.cancelReason = state.end!.reason;
  }
}

function reset(state: ExecutionState, node: number, run: NodeRun): void {
  state.runs[node] = run;
  state.setStatus(node, "pending");
}

function againOf(event: GenerationOpened, id: string): "all" | "failed" | readonly number[] {
  if (event.scope === "failed") return "failed";
  if (event.scope !== "letters") return "all";
  const items = (event.instances ?? []).flatMap((name) => {
    const item = /^(.+)\[(\d+)\]$/.exec(name);
    return item !== null && item[1] === id ? [Number(item[2])] : [];
  });
  return items.length === 0 ? "failed" : items;
}
