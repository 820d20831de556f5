import type { Line } from "../line.ts";
import { ENGINE_LINE, type ExecutionState } from "./state.ts";

/** How many tasks of an execution may be out at a time, and who may go, or ask for leave to go. */

/** How many more may go out; Infinity if nothing bounds it. */
export function parallelRoom({ plan, live }: ExecutionState): number {
  return (plan.workflow.max_parallel_nodes ?? Infinity) - live.size;
}

/**
 * How many more may ask gates to be let through. Whoever asks goes out as soon as it is let through, and has to have room
 * then: what a gate has granted and nobody uses keeps others waiting, those of other executions too.
 */
export function askingRoom(state: ExecutionState): number {
  const room = parallelRoom(state);
  if (room === Infinity || state.asks.size === 0) return room;
  let asking = 0;
  for (const unit of state.asks.keys()) if (!state.live.has(unit)) asking++;
  return room - asking;
}

/** It has to pass gates, and has not begun to. */
export function isYetToAsk(state: ExecutionState, unit: number): boolean {
  const { gates, cache } = state.planOf(unit);
  return (gates.length > 0 || cache !== null) && !state.asks.has(unit);
}

/** Whether somebody who is ready may go, or ask. */
export function hasWhoMayGo(state: ExecutionState): boolean {
  if (state.readyCount === 0 || parallelRoom(state) <= 0) return false;
  if (askingRoom(state) > 0) return true;
  return state.ready.some((line, number) => number !== ENGINE_LINE && hasOneWhoMayGo(state, line));
}

function hasOneWhoMayGo(state: ExecutionState, line: Line): boolean {
  for (let place = 0; place < line.length; place++) if (!isYetToAsk(state, line.at(place)!)) return true;
  return false;
}
