import type { Plan } from "./plan.ts";
import type { ExecutionState } from "./state.ts";

/** How many executions may be open below one that nobody called. */
export const MAX_OPEN_BELOW = 10_000;

/** In a plan with more nodes that call, who comes after whom is not worked out: all are taken to call at once. */
const MAX_COMPARED = 100;

/**
 * How many executions the child of this unit may be, itself and all below it. What an execution was allowed it shares
 * out evenly among those of its nodes that may have a child at the same time, so that nobody has to be asked, and there
 * are never more of them than the root was allowed. Below 1 there is no child.
 */
export function childAllowance(state: ExecutionState, unit: number): number {
  const node = state.isItem(unit) ? state.mapOf(unit).node : unit;
  return shareOf(state, Math.max(1, wants(state, node)), node);
}

/** How many items of a map may be under way at the same time. */
export function mapAllowance(state: ExecutionState, node: number): number {
  return hasCallingItems(state, node) ? Math.max(1, shareOf(state, 1, node)) : Infinity;
}

function hasCallingItems(state: ExecutionState, node: number): boolean {
  const { item, graphs } = state.planOf(node);
  return graphs!.item !== null || item!.spec.handler === "workflow";
}

function shareOf(state: ExecutionState, own: number, node: number): number {
  let sharers = own;
  for (const other of rivals(state.plan, node)) if (!state.isNodeEnded(other)) sharers += wants(state, other);
  return Math.floor(left(state) / sharers);
}

function left(state: ExecutionState): number {
  let leftOver = state.parent === null ? MAX_OPEN_BELOW : (state.parent.allowance ?? MAX_OPEN_BELOW);
  for (const unit of state.children) leftOver -= state.runs[unit]!.child!.holds ?? 1;
  return leftOver;
}

/** How many more children a node may want, besides those it has. Of a map that is not open nobody knows. */
function wants(state: ExecutionState, node: number): number {
  const map = state.maps.get(node);
  if (map === undefined || map.again !== null) return state.children.has(node) ? 0 : 1;
  if (!map.chunked && !hasCallingItems(state, node)) return 0;
  let open = 0;
  for (const unit of state.children) if (state.isItem(unit) && state.mapOf(unit) === map) open++;
  return Math.max(0, Math.min(map.concurrency, map.count - map.completed - map.failed) - open);
}

const WAITS_FOR_ALL: ReadonlySet<string> = new Set(["none_failed", "all_success", "all_done"]);

const RIVALS = new WeakMap<Plan, Map<number, readonly number[]>>();

/** The nodes that may have a child while this one has; those before it have ended by then. */
function rivals(plan: Plan, node: number): readonly number[] {
  if (plan.callers.length > MAX_COMPARED) return plan.callers.filter((other) => other !== node);
  let known = RIVALS.get(plan);
  if (known === undefined) RIVALS.set(plan, (known = new Map()));
  let found = known.get(node);
  if (found === undefined) {
    const after = behind(plan, node);
    found = plan.callers.filter((other) => other !== node && !after.has(other));
    known.set(node, found);
  }
  return found;
}

/**
 * What cannot begin before this node has ended. Whatever waits for all of its parents cannot; what comes after that can,
 * if it may have been skipped or given up by then.
 */
function behind({ graph, nodes }: Plan, node: number): Set<number> {
  const routed = new Set(nodes.flatMap((router) => router.routed));
  const reached = new Set<number>();
  const work = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    for (let k = graph.childStart[next]!; k < graph.childStart[next + 1]!; k++) {
      const child = graph.edgeChild[graph.childEdge[k]!]!;
      const { join, join_timeout_seconds: giveUp } = nodes[child]!.spec;
      if (reached.has(child) || !WAITS_FOR_ALL.has(join)) continue;
      reached.add(child);
      const endsEarly = giveUp !== undefined || routed.has(child);
      if (!endsEarly) work.push(child);
    }
  }
  return reached;
}
