import type { Context } from "../machine.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import type { Repaired } from "./events.ts";
import type { ExecutionState } from "./state.ts";
import { endWait, enqueue, setDue, setLive } from "./units.ts";
import { stuckUnits } from "./wakers.ts";

/**
 * Proves that every open wait has its waker, and sets going what has none. It finds something only if there is a bug in
 * this engine, or was one in the release that wrote the journal; then it says so, and the execution ends all the same.
 */
export function sweep(state: ExecutionState, context: Context): ExecutionDecision {
  const stuck = stuckUnits(state).slice(0, context.maxEvents);
  if (stuck.length === 0) return NOTHING;
  const events = stuck.map((unit): Repaired => {
    const node = state.nameOf(unit);
    return { kind: "repaired", atMs: context.nowMs, node, what: `${state.statusOf(unit)} without a waker` };
  });
  return decided(state, context, events);
}

/** The unit gets a waker again: the next delivery, the next attempt, or its turn. Only for `evolve`. */
export function repair(state: ExecutionState, unit: number): void {
  const status = state.statusOf(unit);
  const isMap = state.planOf(unit).item !== null;
  if (!isMap && (status === "running" || status === "queued")) {
    setLive(state, unit, false);
    setDue(state, unit, null);
    state.setStatus(unit, "queued");
  }
  const isJudged = state.planOf(unit).until !== null && state.runs[unit]?.error === null;
  if (status === "waiting" && !isJudged) {
    endWait(state, unit);
    setDue(state, unit, null);
    state.setStatus(unit, "pending");
  }
  if (!state.isItem(unit)) state.joined[unit] = 1;
  if (state.inLine[unit] === 0) enqueue(state, unit);
}
