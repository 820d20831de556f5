import { isJsonObject, type Json } from "../../json/json.ts";
import type { ErrorValue } from "../message.ts";
import type { KeptValue } from "../value.ts";
import type { EndReason, GateWait, SkipReason, Wait } from "./events.ts";
import { sizeOf } from "./maps.ts";
import { endedBy, reopenedNodes, upstreamFailed } from "./reopen.ts";
import type { NodeRun } from "./node-run.ts";
import type { ExecutionState } from "./state.ts";
import { awaitedGate } from "./asks.ts";
import { reviewDueMs } from "./review-listing.ts";

/** Why a node waits, was skipped or cancelled: a closed set. */
export type Reason =
  | SkipReason
  | EndReason
  | Wait["for"]
  | Exclude<GateWait, "cache">
  | "retry"
  | "parallel"
  | "late_result"
  | "cached";

/** How a node reads to people and clients. */
export interface NodeSummary {
  readonly status: string;
  readonly attempt: number;
  readonly deliveries: number;
  readonly output: KeptValue | null;
  readonly error: ErrorValue | null;
  readonly reason: Reason | null;
  readonly until: number | null;
  readonly queuedAtMs: number | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly usage?: Json;
  /** Of a result that the cache had: the execution that did the work. */
  readonly cachedFrom?: string;
  /** Of a node that has called another workflow. */
  readonly child?: string;
  /** Of a node that repeats. */
  readonly iteration?: number;
  /** Of a map. */
  readonly items?: { readonly total: number; readonly completed: number; readonly failed: number };
}

/** One unit: a node, or an item of a map. */
export function viewNode(
  state: ExecutionState,
  unit: number,
  spared: ReadonlySet<number> = upstreamFailed(state),
): NodeSummary {
  const run = state.runs[unit];
  const status = state.statusOf(unit);
  const base = {
    attempt: run?.attempt ?? 0,
    deliveries: run?.delivery ?? 0,
    output: status === "completed" ? (run?.output ?? null) : null,
    error: run?.error ?? null,
    until: null,
    queuedAtMs: run?.queuedAtMs ?? null,
    startedAtMs: run?.startedAtMs ?? null,
    endedAtMs: run?.endedAtMs ?? null,
    ...(run?.usage && { usage: run.usage }),
    ...(run?.cachedFrom && { cachedFrom: run.cachedFrom }),
    ...(run?.child && { child: run.child.execution }),
    ...(run !== undefined && run.round > 0 && { iteration: run.round }),
    ...itemsOf(state, unit),
  };
  if (state.end !== null && !state.isNodeEnded(unit)) {
    const { endedAtMs } = state;
    if (spared.has(unit)) return { ...base, endedAtMs, status: "SKIPPED", reason: "upstream_failed" };
    return { ...base, endedAtMs, status: "CANCELLED", reason: state.end.reason };
  }
  if (status === "waiting") return { ...base, status: "WAITING", ...waitOf(run!) };
  const gate = awaitedGate(state, unit);
  if (gate !== undefined) return { ...base, status: "WAITING", reason: gateReason(gate.wait) };
  if (waitsToEnter(state) && state.inLine[unit] === 1) return { ...base, status: "WAITING", reason: "concurrency" };
  if (isHeldBack(state, unit)) return { ...base, status: "WAITING", reason: "parallel" };
  if (isBetweenAttempts(state, unit)) return { ...base, status: "WAITING", reason: "retry" };
  const reason =
    run?.skipReason ?? run?.cancelReason ?? (run?.wasLate ? "late_result" : run?.cachedFrom ? "cached" : null);
  return { ...base, status: status.toUpperCase(), reason };
}

/** Of the same work one is done at a time: at a cache it is a place that is waited for. */
export function gateReason(wait: GateWait): Exclude<GateWait, "cache"> {
  return wait === "cache" ? "concurrency" : wait;
}

function waitOf({ wait, error, dueAtMs }: NodeRun): { reason: Reason; until: number | null } {
  if (wait === null) return { reason: error === null ? "timer" : "retry", until: dueAtMs };
  if (wait.for === "review") return { reason: "review", until: reviewDueMs(wait) };
  return { reason: wait.for, until: ("calendarAtMs" in wait ? wait.calendarAtMs : undefined) ?? dueAtMs };
}

/** As many executions of its workflow run as may. */
export function waitsToEnter(state: ExecutionState): boolean {
  return state.entry?.status === "asked";
}

/** The time of its next attempt has come, and it is not out yet: the execution is paused, or its queue is full. */
export function isBetweenAttempts(state: ExecutionState, unit: number): boolean {
  return state.statusOf(unit) === "pending" && (state.runs[unit]?.error ?? null) !== null;
}

/** Ready, but as many of the execution's tasks are out as may be. */
export function isHeldBack(state: ExecutionState, unit: number): boolean {
  const limit = state.plan.workflow.max_parallel_nodes;
  return (
    limit !== null &&
    state.live.size >= limit &&
    state.inLine[unit] === 1 &&
    state.statusOf(unit) === "pending" &&
    !state.isEngine(unit)
  );
}

/** Of a map, once its items are known. */
function itemsOf(state: ExecutionState, unit: number): Pick<NodeSummary, "items"> {
  if (hadNoItems(state, unit)) return { items: { total: 0, completed: 0, failed: 0 } };
  const map = state.maps.get(unit);
  if (map === undefined) return {};
  return { items: { total: map.total, completed: itemsDone(state, unit), failed: map.failures } };
}

/** Such a map completes without being opened: what is known of it is of an earlier generation, if there is anything. */
function hadNoItems(state: ExecutionState, unit: number): boolean {
  if (state.planOf(unit).item === null || state.statusOf(unit) !== "completed") return false;
  const output = state.runs[unit]?.output ?? null;
  if (output === null || !("json" in output)) return false;
  const { json } = output;
  return Array.isArray(json) ? json.length === 0 : isJsonObject(json) && json["total"] === 0;
}

function itemsDone(state: ExecutionState, node: number): number {
  const map = state.maps.get(node)!;
  if (!map.chunked) return map.completed;
  // A part counts once it is done: what happens inside is its own business.
  let done = 0;
  for (let place = 0; place < map.count; place++) {
    const unit = map.base + place;
    if (state.statusOf(unit) === "completed") done += sizeOf(map, place) - (state.runs[unit]?.failures ?? 0);
  }
  return done;
}

/** What a retry would begin with: the nodes that failed or were cut off. */
export function retryableFrom(state: ExecutionState): string[] {
  if (state.end?.status !== "failed" && state.end?.status !== "partial") return [];
  const ender = endedBy(state);
  const first = [...state.failed, ...(ender === undefined ? [] : [ender])];
  // Nothing need have failed where the time ran out, or it was not let in: what was cut off is all that there is to begin with.
  if (state.end.reason === "timeout" || state.end.reason === "cancel") first.push(...cutOff(state));
  return first.map((node) => state.plan.graph.ids[node]!);
}

/** Open nodes that come after none that is open. */
function cutOff(state: ExecutionState): number[] {
  const { nodeCount, parentStart, edgeParent } = state.plan.graph;
  const cut: number[] = [];
  for (let node = 0; node < nodeCount; node++) {
    if (state.isNodeEnded(node)) continue;
    const parents = edgeParent.subarray(parentStart[node], parentStart[node + 1]);
    if (parents.every((parent) => state.isNodeEnded(parent))) cut.push(node);
  }
  return cut;
}

/** What a retry would run again, and what it would keep. */
export function dryRun(
  state: ExecutionState,
  reopening: Parameters<typeof reopenedNodes>[1],
): { readonly rerun: string[]; readonly kept: string[] } {
  const open = reopenedNodes(state, reopening);
  const { ids } = state.plan.graph;
  return { rerun: ids.filter((_, i) => open.has(i)), kept: ids.filter((_, i) => !open.has(i)) };
}

/** What a fork takes over: every node that completed and does not come after the one it begins with. */
export function forkedNodes(state: ExecutionState, from?: string): { node: string; output: KeptValue }[] {
  const again = from === undefined ? new Set<number>() : reopenedNodes(state, { scope: "descendants", from });
  const kept: { node: string; output: KeptValue }[] = [];
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    const output = state.runs[node]?.output ?? null;
    if (again.has(node) || state.statusOf(node) !== "completed" || output === null) continue;
    kept.push({ node: state.plan.graph.ids[node]!, output });
  }
  return kept;
}
