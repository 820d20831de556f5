import type { Context } from "../machine.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import type { Repaired } from "./events.ts";
import type { ExecutionState } from "./state.ts";
import { isMapDone, placeItems } from "./maps.ts";
import { rejoin } from "./spread.ts";
import { returnAsks } from "./asks.ts";
import { dequeue, endWait, enqueue, isClosing, setDue, setLive } from "./units.ts";
import { stuckUnits } from "./wakers.ts";

/**
 * Proves that every open wait has its waker, and sets going what has none. It finds something only if there is a bug in
 * this engine, or was one in the release that wrote the journal; then it says so, and the execution ends all the same.
 */
export function sweep(state: ExecutionState, context: Context): ExecutionDecision {
  const stuck = stuckUnits(state).slice(0, context.maxEvents);
  if (stuck.length === 0) return NOTHING;
  const events = stuck.map(({ unit, lost }): Repaired => {
    const what = `${state.statusOf(unit)} without ${lost === "waker" ? "a waker" : "its deadline"}`;
    const at = { kind: "repaired", atMs: context.nowMs, node: state.nameOf(unit), what } as const;
    return lost === "waker" ? at : { ...at, refiled: true };
  });
  return decided(state, context, events);
}

/**
 * The unit gets a waker again: its deadline, the next delivery, the next attempt, its items, its parents or its turn.
 * Harmless to one that is well: a later release may fold the journal without the fault. Only for `evolve`.
 */
export function repair(state: ExecutionState, unit: number, refiled: boolean): void {
  if (refiled) return refile(state, unit);
  dequeue(state, unit, isClosing(state, unit));
  returnAsks(state, unit);
  const { item, until } = state.planOf(unit);
  switch (state.statusOf(unit)) {
    case "pending":
      return state.isItem(unit) ? enqueue(state, unit) : rejoin(state, unit);
    case "queued":
    case "running": {
      const map = item === null ? undefined : state.maps.get(unit);
      if (map !== undefined) return isMapDone(map) ? enqueue(state, unit) : placeItems(state, map);
      setLive(state, unit, false);
      setDue(state, unit, null);
      state.setStatus(unit, "queued");
      return enqueue(state, unit);
    }
    case "waiting": {
      const { error, wait } = state.runs[unit]!;
      const isJudged = until !== null && error === null && wait?.for !== "child";
      setDue(state, unit, null);
      if (!isJudged) {
        endWait(state, unit);
        state.setStatus(unit, "pending");
      }
      return enqueue(state, unit);
    }
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      return;
  }
}

function refile(state: ExecutionState, unit: number): void {
  const run = state.runs[unit];
  if (run === undefined) return;
  if (run.dueAtMs !== null) state.timers.push(run.dueAtMs, unit);
  if (run.wait && "calendarAtMs" in run.wait && run.wait.calendarAtMs !== undefined) {
    state.calendar.push(run.wait.calendarAtMs, unit);
  }
}
