import { returnDelivery } from "./asks.ts";
import { NodeRun } from "./node-run.ts";
import { ENGINE_LINE } from "./ready-lines.ts";
import type { ExecutionState } from "./state.ts";

/** Small changes to one unit, a node or an item of a map, that keep what is counted about it true. Only for `evolve`. */

/** What only has to be judged or closed needs no worker, whatever it was: it waits for no room, and for no resume. */
export function enqueue(state: ExecutionState, unit: number): void {
  state.inLine[unit] = 1;
  const closing = isClosing(state, unit);
  if (closing) state.closing++;
  state.ready.push(closing ? ENGINE_LINE : state.lineOf(unit), unit);
}

/** Stands in line only to be judged or closed. */
export function isClosing(state: ExecutionState, unit: number): boolean {
  const status = state.statusOf(unit);
  return status === "waiting" || status === "running";
}

/** Most units that end stand in no line; looking through it for them would make a wide fan quadratic. */
export function dequeue(state: ExecutionState, unit: number, wasClosing = false): void {
  if (state.inLine[unit] === 0) return;
  state.inLine[unit] = 0;
  if (wasClosing) state.closing--;
  state.ready.remove(wasClosing ? ENGINE_LINE : state.lineOf(unit), unit);
}

export function setLive(state: ExecutionState, unit: number, live: boolean): void {
  if (state.live.has(unit) === live) return;
  const { queue } = state.planOf(unit).spec;
  if (live) state.live.add(unit);
  else {
    state.live.delete(unit);
    returnDelivery(state, unit);
  }
  // A queue that none is out in stays: taking it out and putting it back with every step of a chain costs more.
  state.liveByQueue.set(queue, (state.liveByQueue.get(queue) ?? 0) + (live ? 1 : -1));
}

export function setDue(state: ExecutionState, unit: number, dueAtMs: number | null): void {
  const run = state.run(unit);
  if (run.dueAtMs === null && dueAtMs !== null) state.timedCount++;
  if (run.dueAtMs !== null && dueAtMs === null) state.timedCount--;
  run.dueAtMs = dueAtMs;
  if (dueAtMs !== null) state.timers.push(dueAtMs, unit);
}

/** What a unit waits for is no more. */
export function endWait(state: ExecutionState, unit: number): void {
  const wait = state.runs[unit]?.wait;
  if (!wait) return;
  if (wait.for === "signal") {
    const left = state.signalWaits.get(wait.signal)!.filter((other) => other !== unit);
    if (left.length === 0) state.signalWaits.delete(wait.signal);
    else state.signalWaits.set(wait.signal, left);
  }
  state.reviews.delete(unit);
  state.children.delete(unit);
  state.runs[unit]!.wait = null;
}

/** Takes up what a unit waits for, in the indexes by which it is found. */
export function indexWait(state: ExecutionState, unit: number): void {
  const wait = state.runs[unit]!.wait!;
  if (wait.for === "signal") {
    const waits = state.signalWaits.get(wait.signal);
    if (waits === undefined) state.signalWaits.set(wait.signal, [unit]);
    else waits.push(unit);
  }
  if (wait.for === "review") state.reviews.add(unit);
  if (wait.for === "child") state.children.add(unit);
  if ("calendarAtMs" in wait && wait.calendarAtMs !== undefined) state.calendar.push(wait.calendarAtMs, unit);
}

/** The last part of the key that the handler gets in this round. */
export function keyNumber(run: NodeRun | undefined, round: number): number {
  return run?.unsure.find((unsure) => unsure.round === round)?.rerun ?? run?.rerun ?? 1;
}

/**
 * A unit as a new generation begins it: nothing done yet, with what is remembered of the work so far. The key that the
 * handler gets stays the same as long as nobody knows whether the work was done; of a node that repeats that is the
 * round it was cut off in, for those before it have answered.
 */
export function reopenedRun(
  state: ExecutionState,
  unit: number,
  how: { readonly edited: boolean; readonly sameChild: boolean; readonly useLate: boolean; readonly anew?: boolean },
): NodeRun {
  const old = state.runs[unit];
  const run = new NodeRun(state.generation);
  if (how.anew === true) run.anew = true;
  if (old === undefined) return run;
  const isUnsure = !how.edited && !old.answered;
  run.rerun = old.rerun + (isUnsure && old.round <= 1 ? 0 : 1);
  // A round that was begun and not dispatched has changed nothing about what an earlier generation did in it.
  const reached = old.attempt === 0 ? old.round - 1 : old.round;
  if (!how.edited) run.unsure = old.unsure.filter(({ round }) => round > reached);
  if (isUnsure && old.round > 1) {
    run.unsure = [...run.unsure, { round: old.round, rerun: keyNumber(old, old.round) }];
  }
  run.late = how.useLate && !how.edited ? old.late : null;
  run.child = how.sameChild ? old.child : null;
  return run;
}

/** Whether the handler itself has answered: after these nobody knows what it did. */
export function isDefinite(code: string): boolean {
  return code !== "TIMEOUT" && code !== "QUEUE_TIMEOUT" && code !== "POISON_TASK";
}
