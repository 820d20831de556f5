import type { ListingDraft } from "../machine.ts";
import type { NodeWaiting } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** Open reviews are listed apart, so that people find them without knowing the execution. */
export const REVIEWS = "review";

/** Leads back to the node instance that waits. */
export function reviewId(execution: string, generation: number, instance: string): string {
  return `${execution}:${generation}:${instance}`;
}

export function parseReviewId(
  id: string,
): { readonly execution: string; readonly generation: number; readonly instance: string } | undefined {
  const parts = /^([^:]+):([1-9]\d{0,14}):(.+)$/.exec(id);
  return parts === null ? undefined : { execution: parts[1]!, generation: Number(parts[2]), instance: parts[3]! };
}

/** What is shown of a review that waits for somebody. */
export interface ListedReview {
  readonly execution: string;
  readonly generation: number;
  readonly node: string;
  readonly workflow: string;
  readonly title?: string;
  readonly form?: unknown;
  readonly assignees?: readonly string[];
  readonly openedAtMs: number;
  /** By the store's clock. */
  readonly dueAtMs: number;
}

export function openReview(state: ExecutionState, event: NodeWaiting): ListingDraft {
  if (event.wait.for !== "review") throw new Error(`${event.node} does not wait for a review`);
  const { onDue: _, ...shown } = event.wait.review;
  const listed: ListedReview = {
    execution: state.id,
    generation: state.generation,
    node: event.node,
    workflow: state.plan.workflow.name,
    ...shown,
    openedAtMs: event.atMs,
    dueAtMs: event.wait.calendarAtMs,
  };
  return { list: REVIEWS, id: reviewId(state.id, state.generation, event.node), text: JSON.stringify(listed) };
}

/** The review of a unit, and those of the items of a map, are open no more. */
export function closedReviews(state: ExecutionState, name: string): ListingDraft[] {
  const unit = state.unitOf(name)!;
  const map = state.maps.get(unit);
  const units =
    map === undefined ? [unit] : [...state.reviews].filter((open) => state.isItem(open) && state.mapOf(open) === map);
  return units.filter((open) => state.reviews.has(open)).map((open) => closedReview(state, state.nameOf(open)));
}

export function closedReview(state: ExecutionState, name: string): ListingDraft {
  return { list: REVIEWS, id: reviewId(state.id, state.generation, name), text: null };
}
