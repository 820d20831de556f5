import { added, AMOUNT_UNITS, type Amounts } from "./amounts.ts";
import type { BudgetRule } from "./rule.ts";
import { type GateState, heldKey } from "./state.ts";

/** Less than this is missing only because numbers are rounded. */
const ROUNDING = 1e-9;

/** Somebody in line whose time has come. */
export interface Chosen {
  readonly execution: string;
  readonly ask: number;
  readonly node: string;
}

/** What is to be said to those in line. */
export interface BudgetStep {
  readonly granted: readonly Chosen[];
  /** More than is left: they are sent away, or told that they wait for a person. */
  readonly over: readonly Chosen[];
}

/**
 * Who of those in line may go, and who asks for more than is left. Nobody is judged by what others have only reserved: as
 * long as that could settle for less, everybody waits.
 */
export function budgetStep(state: GateState, rule: BudgetRule, most: number): BudgetStep {
  const granted: Chosen[] = [];
  const over: Chosen[] = [];
  if (state.isTripped) return { granted, over };
  let reserved = state.reserved;
  for (const { execution, ask } of state.line.inTurn(state.lastAtMs)) {
    if (granted.length + over.length >= most) break;
    const chosen = { execution, ask: ask.ask, node: ask.node };
    const estimate = ask.estimate ?? {};
    if (!fits(rule, state.spent, estimate)) {
      if (!state.stalled.has(heldKey(execution, ask.ask))) over.push(chosen);
      continue;
    }
    if (!fits(rule, added(state.spent, reserved), estimate)) break;
    reserved = added(reserved, estimate);
    granted.push(chosen);
  }
  return { granted, over };
}

function fits({ limits }: BudgetRule, used: Amounts, estimate: Amounts): boolean {
  return AMOUNT_UNITS.every((unit) => {
    const limit = limits[unit];
    if (limit === undefined) return true;
    const sum = (used[unit] ?? 0) + (estimate[unit] ?? 0);
    return sum <= limit + ROUNDING * Math.max(1, limit);
  });
}

/** Whether there is somebody to be told something. */
export function hasBudgetWork(state: GateState): boolean {
  const rule = state.ruling;
  if (rule?.kind !== "budget" || state.line.length === 0) return false;
  const { granted, over } = budgetStep(state, rule, 1);
  return granted.length + over.length > 0;
}
