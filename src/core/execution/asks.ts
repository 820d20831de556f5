import type { Amounts } from "../gate/amounts.ts";
import type { GateAsked, GateGranted, GateReturned, GateStalled } from "./events.ts";
import type { ExecutionState, UnitAsk } from "./state.ts";

/** What units have asked of gates, and what has to be given back. All that changes something is for `evolve` only. */

/** The gate that a unit waits at. */
export function awaitedGate(state: ExecutionState, unit: number): UnitAsk | undefined {
  return state.asks.size === 0 ? undefined : state.asks.get(unit)?.find(({ status }) => status === "asked");
}

/** What gates may learn from how a dispatch has ended. */
export type DispatchEnd = Pick<GateReturned, "outcome" | "used" | "keeps"> & {
  readonly closeForMs?: number | undefined;
  readonly hasFailed?: boolean;
};

/** It was out, and nobody says what it has used: as much as was reserved for it. */
export const AS_RESERVED: { readonly used: Amounts } = { used: {} };

/** The longest that whoever was called is believed to want no calls. */
const MAX_CLOSE_MS = 3_600_000;

/** What the end of a task says to its gates of whoever it has called. */
export function closing(
  plan: { readonly gates: readonly unknown[] },
  ...wishesMs: readonly (number | undefined)[]
): {
  readonly closeForMs?: number;
} {
  const closeForMs = Math.min(Math.max(0, ...wishesMs.map((ms) => ms ?? 0)), MAX_CLOSE_MS);
  return plan.gates.length > 0 && closeForMs > 0 ? { closeForMs } : {};
}

/** The dispatch is over, or will not come: whatever gates have granted for it, or may yet grant, is given back. */
export function returnAsks(state: ExecutionState, unit: number, end: DispatchEnd = {}): void {
  const { closeForMs, outcome, used, keeps, hasFailed } = end;
  if (state.asks.size === 0) return;
  for (const { gate, ask, status, wait, until } of state.asks.get(unit) ?? []) {
    const asksForPeace = wait === "rate_limit" && closeForMs !== undefined;
    // Whoever is behind a rate wants to be left alone, though that call may have given its grant back before.
    if (status === "refused" || (status === "returned" && !asksForPeace)) continue;
    state.returns.push({
      gate,
      ask,
      ...(asksForPeace && { closeForMs }),
      ...(wait === "breaker" && outcome !== undefined && { outcome }),
      ...(isReserved({ wait, until }) && used !== undefined && { used }),
      ...(wait === "cache" && keeps !== undefined && { keeps }),
      ...(wait === "cache" && hasFailed === true && { outcome: "bad" as const }),
    });
  }
  state.asks.delete(unit);
  state.stalled.delete(unit);
}

/** Gates of these kinds keep something for a task until it is known what it has used. */
function isReserved({ wait, until }: Pick<UnitAsk, "wait" | "until">): boolean {
  return wait === "budget" || (wait === "rate_limit" && until === "end");
}

/** The delivery is over, and the same attempt may go out again: leave to do the work holds for all of them. */
export function returnDelivery(state: ExecutionState, unit: number, end: DispatchEnd = AS_RESERVED): void {
  const leave = state.asks.get(unit)?.filter(({ wait }) => wait === "cache") ?? [];
  for (const asked of leave) asked.status = "returned";
  returnAsks(state, unit, end);
  for (const asked of leave) asked.status = "granted";
  if (leave.length > 0) state.asks.set(unit, leave);
}

/** The work has begun: what was granted for the beginning only is given back. */
export function returnStarted(state: ExecutionState, unit: number): void {
  if (state.asks.size === 0) return;
  for (const asked of state.asks.get(unit) ?? []) {
    if (asked.until !== "start" || asked.status !== "granted") continue;
    asked.status = "returned";
    state.returns.push({ gate: asked.gate, ask: asked.ask });
  }
}

/** The unit stands at the gate. */
export function addAsk(
  state: ExecutionState,
  unit: number,
  { gate, ask, wait, until, atMs, fallback }: GateAsked,
): void {
  state.askCount = Math.max(state.askCount, ask);
  const asked = {
    gate,
    ask,
    wait,
    until,
    askedAtMs: atMs,
    status: "asked" as const,
    ...(fallback !== undefined && { fallback }),
  };
  const own = state.asks.get(unit);
  if (own === undefined) state.asks.set(unit, [asked]);
  else own.push(asked);
}

export function answerAsk(state: ExecutionState, unit: number, { kind, node, ask, budget }: GateGranted): void {
  const asked = state.asks.get(unit)?.find((one) => one.ask === ask);
  if (asked === undefined) throw new Error(`${node} was answered what it has not asked for`);
  asked.status = kind === "gateGranted" ? "granted" : "refused";
  if (budget !== undefined) asked.standing = budget;
  delete asked.stalled;
  state.stalled.delete(unit);
}

/** A person is wanted. */
export function stallAsk(state: ExecutionState, unit: number, { ask, budget, atMs }: GateStalled): void {
  const asked = state.asks.get(unit)?.find((one) => one.ask === ask);
  if (asked === undefined) return;
  asked.stalled = { ...budget, atMs };
  state.stalled.add(unit);
}

/** It has passed a gate that holds something for it until it has begun. */
export function isRated(state: ExecutionState, unit: number): boolean {
  return state.asks.size > 0 && state.asks.get(unit)?.some(({ until }) => until === "start") === true;
}

/** The model that a unit has to do with, because its budget is not enough for its own. */
export function fallbackModel(state: ExecutionState, unit: number): string | undefined {
  return state.asks.size === 0
    ? undefined
    : state.asks.get(unit)?.findLast((one) => one.fallback !== undefined)?.fallback;
}

/** The cache had the result, and expects nothing of us. */
export function forgetCache(state: ExecutionState, unit: number): void {
  for (const asked of state.asks.get(unit) ?? []) if (asked.wait === "cache") asked.status = "returned";
}

/** They are the first in line, unless a gate has granted what was not wanted any more. */
export function gatesReturned(state: ExecutionState, told: readonly GateReturned[]): void {
  const isFront = told.every((one, place) => {
    const next = state.returns[place];
    return next !== undefined && nameReturn(next) === nameReturn(one);
  });
  if (isFront) {
    state.returns = state.returns.slice(told.length);
    return;
  }
  const names = new Set(told.map(nameReturn));
  state.returns = state.returns.filter((one) => !names.has(nameReturn(one)));
}

function nameReturn({ gate, ask, closeForMs = 0, outcome, ifWaiting }: GateReturned): string {
  return `${gate} ${ask} ${closeForMs} ${outcome ?? ""} ${ifWaiting ?? ""}`;
}

/** The execution that spends: a part of a map spends for the one that the map is in. */
export function accountOf(state: ExecutionState): string {
  return state.parent?.account ?? state.id;
}
