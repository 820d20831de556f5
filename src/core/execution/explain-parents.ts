import type { Reference } from "../../expression/scope.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import { inWords } from "../in-words.ts";
import { awaitedGate } from "./asks.ts";
import { scopeOf } from "./scope.ts";
import { edgeCounts } from "./spread.ts";
import { EDGE, type ExecutionState } from "./state.ts";
import { isBetweenAttempts } from "./view.ts";

/** More than this of a value is read by nobody. */
const MAX_VALUE_CHARS = 40;
const MAX_VALUES = 5;

/** How a parent stands that somebody waits for. */
export function standing(state: ExecutionState, unit: number, nowMs?: number): string {
  const run = state.runs[unit];
  const since = (atMs: number | null | undefined): string =>
    nowMs === undefined || atMs === null || atMs === undefined ? "" : ` ${inWords(nowMs - atMs)}`;
  if (awaitedGate(state, unit) !== undefined) return "held by a limit";
  if (isBetweenAttempts(state, unit)) return WAITS.retry;
  switch (state.statusOf(unit)) {
    case "queued":
      return `queued${since(run?.queuedAtMs)}, ${attemptOf(state, unit)}`;
    case "running": {
      const map = state.planOf(unit).item === null ? undefined : state.maps.get(unit);
      if (map === undefined) return `running${since(run?.startedAtMs)}, ${attemptOf(state, unit)}`;
      return `${map.completed} of ${map.count} ${map.chunked ? "parts" : "items"} done`;
    }
    case "waiting":
      return WAITS[run!.wait?.for ?? (run!.error === null ? "round" : "retry")];
    case "pending":
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      return "not begun";
  }
}

const WAITS = {
  retry: "waiting for its next attempt",
  round: "waiting for its next round",
  timer: "waiting for its time",
  signal: "waiting for a signal",
  review: "waiting for a person",
  child: "waiting for a child execution",
} as const;

export function attemptOf(state: ExecutionState, unit: number): string {
  return `attempt ${state.runs[unit]!.attempt} of ${state.planOf(unit).spec.retry.max_attempts}`;
}

/** The parent because of which a node is skipped, and what became of it. Undefined if it may still run. */
export function blamed(state: ExecutionState, node: number): string | undefined {
  const { undecided, ok, bad, void: none } = edgeCounts(state, node);
  // The rule itself says so, were all that is open to go well.
  const best = state.plan.nodes[node]!.join({ undecided: 0, ok: ok + undecided, bad, void: none });
  if (best !== "upstream_failed") return undefined;
  const { graph } = state.plan;
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    if (state.edges[edge] !== EDGE.bad) continue;
    const parent = graph.edgeParent[edge]!;
    const name = JSON.stringify(graph.ids[parent]!);
    if (state.statusOf(parent) !== "failed") return `${name} was ${state.statusOf(parent)}`;
    const { spec, caught } = state.planOf(parent);
    return `${name} failed and ${caught ? "that is caught elsewhere" : `its on_error is "${spec.on_error}"`}`;
  }
  return undefined;
}

/** Why a node was skipped, in an execution that is still under way. */
export function skipSentence(state: ExecutionState, node: number): string {
  const name = state.nameOf(node);
  const reason = state.runs[node]?.skipReason;
  if (reason === "upstream_failed") {
    return `${name} was skipped: ${blamed(state, node) ?? "what it depends on failed"}`;
  }
  if (reason === "route") return `${name} was skipped: the router before it chose another way`;
  const { condition } = state.planOf(node);
  const { ok, void: none } = edgeCounts(state, node);
  if (condition === null || (ok === 0 && none > 0)) return `${name} was skipped: nothing that it depends on has run`;
  const values = valuesOf(state, node, condition.references);
  return `${name} was skipped: its condition was false${values === "" ? "" : ` (${values})`}`;
}

/** What a condition has read, as far as it is at hand. */
function valuesOf(state: ExecutionState, node: number, references: readonly Reference[]): string {
  const scope = scopeOf(state, node, { fetched: () => undefined });
  const shown = new Map<string, string>();
  for (const reference of references) {
    if (reference.kind !== "node" && reference.kind !== "input") continue;
    const view = reference.kind === "input" ? scope.input : scope.node(reference.id);
    if (view === undefined || view.kind !== "output") continue;
    const value = valueAt(view.value, reference.path);
    const isPlain = value !== undefined && (typeof value !== "object" || value === null);
    if (!isPlain || JSON.stringify(value).length > MAX_VALUE_CHARS) continue;
    const path = [reference.kind === "input" ? "input" : reference.id, ...reference.path].join(".");
    shown.set(path, `${path} ${JSON.stringify(value)}`);
  }
  return [...shown.values()].slice(0, MAX_VALUES).join(", ");
}

function valueAt(root: Json, path: readonly (string | number)[]): Json | undefined {
  let value: Json | undefined = root;
  for (const step of path) {
    if (Array.isArray(value)) value = value[Number(step)] as Json | undefined;
    else value = isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value;
}
