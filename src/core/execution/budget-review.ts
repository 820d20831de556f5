import type { Json } from "../../json/json.ts";
import { AMOUNT_UNITS } from "../gate/amounts.ts";
import type { ListingDraft } from "../machine.ts";
import type { BudgetStanding } from "../message.ts";
import { awaitedGate } from "./asks.ts";
import type { ExecutionEvent } from "./events.ts";
import type { PlanGate } from "./plan-gates.ts";
import { type ListedReview, REVIEWS, reviewId } from "./review-listing.ts";
import type { ExecutionState } from "./state.ts";

/** What a person is asked who has to allow more: the new amounts of what the budget is about. */
export function raiseForm({ limits }: BudgetStanding): Json {
  const units = AMOUNT_UNITS.filter((unit) => limits[unit] !== undefined);
  const properties = units.map((unit) => [unit, { type: "number", exclusiveMinimum: 0 }] as const);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    minProperties: 1,
    additionalProperties: false,
  };
}

/** A unit for which too little is left stands in the list of open reviews, and goes on once somebody allows more. */
function budgetReview(
  state: ExecutionState,
  node: string,
  budget: BudgetStanding & { readonly atMs: number },
): ListingDraft {
  const { limits, spent, atMs } = budget;
  const listed: ListedReview = {
    execution: state.id,
    generation: state.generation,
    node,
    workflow: state.plan.workflow.name,
    title: `The budget "${budgetOf(state, node)?.name ?? ""}" is used up. Approve with new amounts to go on, or reject to stop.`,
    form: raiseForm(budget),
    values: { limits: { ...limits }, spent: { ...spent } },
    openedAtMs: atMs,
    dueAtMs: null,
  };
  return { list: REVIEWS, id: reviewId(state.id, state.generation, node), text: JSON.stringify(listed) };
}

/** The budget that a unit stands at. */
export function budgetOf(state: ExecutionState, node: string): PlanGate | undefined {
  const unit = state.unitOf(node)!;
  const passed = (state.asks.get(unit) ?? []).filter(
    ({ status, wait }) => wait !== "cache" && (status === "granted" || status === "returned"),
  ).length;
  return state.planOf(unit).gates[passed];
}

/** The lists as they are after these events: what they open at a budget, and what they close. */
export function budgetReviews(state: ExecutionState, events: readonly ExecutionEvent[]): ListingDraft[] {
  if (state.stalled.size === 0 && !events.some(({ kind }) => kind === "gateStalled")) return [];
  const open = new Set(Array.from(state.stalled, (unit) => state.nameOf(unit)));
  const listings: ListingDraft[] = [];
  for (const event of events) {
    if (event.kind === "gateStalled") {
      const { node, budget, atMs } = event;
      open.add(node);
      listings.push(budgetReview(state, node, { ...budget, atMs }));
      continue;
    }
    const isAll = event.kind === "executionEnded" || event.kind === "paused";
    if (open.size === 0 || (!isAll && !("node" in event)) || event.kind === "gateAsked") continue;
    for (const node of open) {
      const isMeant = isAll || ("node" in event && (node === event.node || node.startsWith(`${event.node}[`)));
      if (!isMeant) continue;
      open.delete(node);
      listings.push({ list: REVIEWS, id: reviewId(state.id, state.generation, node), text: null });
    }
  }
  return listings;
}

/** Those that are open, for lists that were lost. */
export function openBudgetReviews(state: ExecutionState): ListingDraft[] {
  return Array.from(state.stalled).flatMap((unit) => {
    const stalled = awaitedGate(state, unit)?.stalled;
    return stalled === undefined ? [] : [budgetReview(state, state.nameOf(unit), stalled)];
  });
}
