import { entityKey } from "../entity.ts";
import type { Context } from "../machine.ts";
import type { Message } from "../message.ts";
import { openBudgetReviews } from "./budget-review.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import type { Repaired } from "./events.ts";
import { labelListings } from "./label-listing.ts";
import { openReview } from "./review-listing.ts";
import { cancelRequest } from "./nodes/child.ts";
import type { ExecutionState } from "./state.ts";
import { awaitedGate } from "./asks.ts";

/**
 * The store was lost and made anew from the journals. Mail that was on its way is gone: a call that a child never got, or
 * an end that its parent never heard of. So whoever waits for a child calls it again, and whoever waits at a gate asks
 * anew. Lists are gone too, and are given again with the first call of this; it is called until it gives no more events.
 */
export function recovered(state: ExecutionState, context: Context): ExecutionDecision {
  if (state.isEnded) return NOTHING;
  const reviews = Array.from(state.reviews, (unit) => {
    const { wait, startedAtMs } = state.runs[unit]!;
    return openReview(state, { node: state.nameOf(unit), wait: wait!, atMs: startedAtMs ?? context.nowMs });
  });
  const listings = [...reviews, ...openBudgetReviews(state), ...labelListings(state, state.labels ?? {})];
  const waiting = [...state.asks.keys()].filter((unit) => awaitedGate(state, unit) !== undefined);
  const unheard = [
    ...Array.from(state.children, (unit) => ({ unit, what: "its child may not have heard of it" })),
    ...waiting.map((unit) => ({ unit, what: "its gate may not have heard of it" })),
  ];
  if (state.entry?.status === "asked") {
    return decided(state, context, [{ kind: "entryLeft", atMs: context.nowMs }], { listings });
  }
  const events = unheard.slice(0, context.maxEvents).map(({ unit, what }): Repaired => {
    return { kind: "repaired", atMs: context.nowMs, node: state.nameOf(unit), what };
  });
  return events.length === 0 ? { ...NOTHING, listings } : decided(state, context, events, { listings });
}

export function callerOf(state: ExecutionState): string | null {
  return state.parent?.entity ?? null;
}

/** The children that its nodes have called last. What they called in an earlier generation, with another input, is not known here. */
export function called({ runs }: ExecutionState): string[] {
  return runs.flatMap((run) => (run?.child ? [entityKey("execution", run.child.execution)] : []));
}

/** A parent that is called off calls its children off, and waits for none of them: nobody would say it again. */
export function calledOff(state: ExecutionState): Message {
  const { id, trace, tenant } = state;
  const request = cancelRequest(id, state.parent?.call ?? 1);
  const by = callerOf(state) ?? "";
  return { id: request, to: entityKey("execution", id), by, trace, tenant, body: { kind: "cancel", request } };
}
