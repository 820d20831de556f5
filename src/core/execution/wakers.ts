import type { ExecutionState } from "./state.ts";
import { awaitedGate } from "./asks.ts";

/**
 * What will move an open unit: parents that end, a place in line, a task and its deadline, a timer, a date, a child, the
 * items of a map, the answer of a gate. An open unit without one would wait for ever: the most common failure of engines of this kind.
 */
export type Waker = "parents" | "line" | "skips" | "task" | "timer" | "date" | "child" | "items" | "gate";

/** The waker of an open unit; null if it has none, which is a bug of ours. */
export function wakerOf(state: ExecutionState, unit: number): Waker | null {
  if (state.inLine[unit] === 1) return "line";
  if (awaitedGate(state, unit) !== undefined) return "gate";
  const due = isTimed(state, unit);
  switch (state.statusOf(unit)) {
    case "pending":
      return pendingWaker(state, unit);
    case "queued":
    case "running":
      if (state.planOf(unit).item !== null) return (state.maps.get(unit)?.open ?? 0) > 0 ? "items" : null;
      return state.live.has(unit) && due ? "task" : null;
    case "waiting": {
      const wait = state.runs[unit]!.wait;
      if (wait?.for === "child") return state.children.has(unit) ? "child" : null;
      if (wait && "calendarAtMs" in wait && wait.calendarAtMs !== undefined) return "date";
      return due ? "timer" : null;
    }
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      return null;
  }
}

function pendingWaker(state: ExecutionState, unit: number): Waker | null {
  if (state.isItem(unit)) {
    const map = state.mapOf(unit);
    return unit - map.base >= map.next ? "items" : null;
  }
  if (state.skipReasons.has(unit)) return "skips";
  return state.joined[unit] === 0 && state.undecided[unit]! > 0 ? "parents" : null;
}

/** An open unit that nothing would move, or whose deadline nobody would keep. */
export interface Stuck {
  readonly unit: number;
  readonly lost: "waker" | "deadline";
}

/** All that is stuck in an execution that is under way. What lines and heaps hold is looked at, not only what units say. */
export function stuckUnits(state: ExecutionState): Stuck[] {
  const stuck: Stuck[] = [];
  if (state.isEnded || (state.status !== "running" && state.status !== "paused")) return stuck;
  const inLine = new Set(state.ready.toArrays().flat());
  const timers = new Set(state.timers.due(Infinity, Infinity));
  const dates = new Set(state.calendar.due(Infinity, Infinity));
  for (let unit = 0; unit < state.runs.length; unit++) {
    if (!isOpen(state, unit)) continue;
    const waker = wakerOf(state, unit);
    if (waker === null || (waker === "line" && !inLine.has(unit))) stuck.push({ unit, lost: "waker" });
    else if (isTimed(state, unit) && !timers.has(unit)) stuck.push({ unit, lost: "deadline" });
    else if (waker === "date" && !dates.has(unit)) stuck.push({ unit, lost: "deadline" });
  }
  return stuck;
}

function isTimed(state: ExecutionState, unit: number): boolean {
  return (state.runs[unit]?.dueAtMs ?? null) !== null;
}

function isOpen(state: ExecutionState, unit: number): boolean {
  if (state.isNodeEnded(unit)) return false;
  if (!state.isItem(unit)) return true;
  // What an earlier generation knew of a map's items is only remembered, until the map is opened again.
  const { node } = state.mapOf(unit);
  const map = state.maps.get(node)!;
  const belongs = unit >= map.base && unit < map.base + map.count;
  return belongs && state.statusOf(node) === "running";
}
