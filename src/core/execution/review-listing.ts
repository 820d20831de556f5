import type { ListingDraft, ListPlace } from "../machine.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import { isLarge } from "../value.ts";
import type {
  ExecutionEvent,
  FirstDecision,
  NodeWaiting,
  ReviewChanged,
  ReviewEscalated,
  ReviewSpec,
  Wait,
} from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** Open reviews are listed apart, so that people find them without knowing the execution. */
export const REVIEWS = "review";
/** And those that were decided, if they had something to correct. */
export const EXAMPLES = "reviewed";

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
  readonly values?: Json;
  readonly confidence?: Json;
  readonly source?: Json;
  readonly fourEyes?: true;
  readonly first?: FirstDecision;
  readonly openedAtMs: number;
  /** By the store's clock: when others are to be asked too, if nobody has decided. */
  readonly escalatesAtMs?: number;
  /** By the store's clock; null if it may wait for ever. */
  readonly dueAtMs: number | null;
}

/** What was proposed and what a person made of it: the output of the review stands beside the rest. */
export interface ListedExample {
  readonly execution: string;
  readonly generation: number;
  readonly node: string;
  readonly workflow: string;
  readonly title?: string;
  readonly values: Json;
  readonly confidence?: Json;
  readonly source?: Json;
  /** What he filled in was too large to be kept here. */
  readonly isCut?: true;
  readonly [field: string]: Json | undefined;
}

export function openReview(state: ExecutionState, event: Pick<NodeWaiting, "node" | "wait" | "atMs">): ListingDraft {
  if (event.wait.for !== "review") throw new Error(`${event.node} does not wait for a review`);
  const { review, calendarAtMs, first } = event.wait;
  const { onDue: _, escalate, ...shown } = review;
  const listed: ListedReview = {
    execution: state.id,
    generation: state.generation,
    node: event.node,
    workflow: state.plan.workflow.name,
    ...shown,
    openedAtMs: event.atMs,
    ...(escalate !== undefined && { escalatesAtMs: calendarAtMs }),
    dueAtMs: reviewDueMs(event.wait),
    ...(first !== undefined && { first }),
  };
  return { list: REVIEWS, id: reviewId(state.id, state.generation, event.node), text: JSON.stringify(listed) };
}

/** When a review is due, by the store's clock. Before that others may be asked. */
export function reviewDueMs({ review, calendarAtMs }: Extract<Wait, { for: "review" }>): number {
  return review.escalate?.dueAtMs ?? calendarAtMs;
}

/** The same review, as it stands after a change. */
export function changedReview(state: ExecutionState, event: ReviewChanged | ReviewEscalated): ListingDraft {
  const run = state.runs[state.unitOf(event.node)!]!;
  return openReview(state, {
    node: event.node,
    wait: withChange(run.wait!, event),
    atMs: run.startedAtMs ?? event.atMs,
  });
}

/** What a review waits for after a change. */
export function withChange(wait: Wait, event: ReviewChanged | ReviewEscalated): Wait {
  if (wait.for !== "review") throw new Error(`${event.node} does not wait for a review`);
  if (event.kind === "reviewEscalated") {
    const { escalate, ...rest } = wait.review;
    const calendarAtMs = escalate?.dueAtMs ?? wait.calendarAtMs;
    return { ...wait, calendarAtMs, review: { ...rest, assignees: event.assignees } };
  }
  const { assignees, first } = event;
  const review = assignees === undefined ? wait.review : { ...wait.review, assignees };
  return { ...wait, review, ...(first !== undefined && { first }) };
}

/** What a person made of what was proposed, kept for whoever wants to learn from it. A large answer is left out. */
export function reviewedExample(
  state: ExecutionState,
  node: string,
  { values, confidence, source, title }: ReviewSpec,
  output: { readonly [name: string]: Json },
): ListingDraft {
  const id = reviewId(state.id, state.generation, node);
  const { first, ...said } = output;
  const example: ListedExample = {
    execution: state.id,
    generation: state.generation,
    node,
    workflow: state.plan.workflow.name,
    ...(title !== undefined && { title }),
    values: values!,
    ...(confidence !== undefined && { confidence }),
    ...(source !== undefined && { source }),
    ...said,
    ...(isLarge(JSON.stringify(said["data"])) && { data: null, isCut: true as const }),
    ...(first !== undefined && { first: withoutData(first) }),
  };
  return { list: EXAMPLES, id, text: JSON.stringify(example) };
}

/** What the first of two filled in is in the output; here it would take the room of what came of it. */
function withoutData(first: Json): Json {
  if (!isJsonObject(first)) return first;
  const { data: _, ...rest } = first;
  return rest;
}

/**
 * The decisions about what was proposed, of the events behind the first `before`: each has left an example. What was decided
 * because nobody did in time is among them, and has left none.
 */
export function lastingExamples(id: string, events: readonly ExecutionEvent[], before: number): ListPlace[] {
  const places: ListPlace[] = [];
  const proposed = new Set<string>();
  let generation = 1;
  for (const [i, event] of events.entries()) {
    if (event.kind === "generationOpened") ({ generation } = event);
    if (event.kind === "nodeWaiting" && event.wait.for === "review" && event.wait.review.values !== undefined) {
      proposed.add(event.node);
    }
    if (event.kind === "nodeCompleted" && proposed.delete(event.node) && i >= before) {
      places.push({ list: EXAMPLES, id: reviewId(id, generation, event.node) });
    }
  }
  return places;
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
