import type { Context, Decision } from "../machine.ts";
import { formatToken } from "../token.ts";
import { budgetReviews } from "./budget-review.ts";
import { endMail } from "./end.ts";
import type { ExecutionEvent } from "./events.ts";
import { labelListings } from "./label-listing.ts";
import { deadLetterOf } from "./letters.ts";
import { cancelChild } from "./nodes/child.ts";
import { changedReview, closedReview, closedReviews, openReview } from "./review-listing.ts";
import { instanceOf } from "./instance.ts";
import type { ExecutionState } from "./state.ts";

export type ExecutionDecision = Decision<ExecutionEvent>;

export const NOTHING: ExecutionDecision = { events: [] };

type Extras = Omit<ExecutionDecision, "events">;

/** Nearly all events: they entail nothing. */
function isPlain(state: ExecutionState, event: ExecutionEvent): boolean {
  const { kind } = event;
  if (kind === "taskCompleted") return event.delivery === runOf(state, event.node).delivery;
  if (kind === "accepted" || kind === "started") return event.labels === undefined;
  if (kind === "executionEnded") return state.parent === null;
  return kind === "taskDispatched" || kind === "taskStarted" || kind === "nodeSkipped";
}

function arePlain(state: ExecutionState, events: readonly ExecutionEvent[]): boolean {
  for (const event of events) if (!isPlain(state, event)) return false;
  return true;
}

/**
 * A decision with all that its events entail: dead letters, tasks to withdraw, mail to the parent, open reviews. What comes
 * with them is the caller's own, and becomes the decision where they entail nothing.
 */
export function decided(
  state: ExecutionState,
  context: Context,
  events: readonly ExecutionEvent[],
  extras: Extras = {},
): ExecutionDecision {
  if (state.reviews.size === 0 && state.stalled.size === 0 && arePlain(state, events)) {
    (extras as { events?: readonly ExecutionEvent[] }).events = events;
    return extras as ExecutionDecision;
  }
  const deadLetters = extras.deadLetters?.slice() ?? [];
  const mail = extras.mail?.slice() ?? [];
  const revoke = extras.revoke?.slice() ?? [];
  const listings = extras.listings?.slice() ?? [];
  /** Reviews that these events open: the state does not know of them yet. */
  let opened: Set<string> | undefined;
  for (const event of events) {
    if (event.kind === "nodeFailed" || (event.kind === "taskFailed" && event.retryAtMs === null)) {
      const letter = deadLetterOf(state, state.unitOf(event.node)!, event.error, context);
      if (letter !== undefined) deadLetters.push(letter);
    }
    if (event.kind === "taskFailed" && event.deadline !== undefined) revoke.push(newestToken(state, event.node));
    // The attempt was won by an earlier delivery while a later one is out: nobody needs that any more.
    if (event.kind === "taskCompleted" && event.delivery !== runOf(state, event.node).delivery) {
      revoke.push(newestToken(state, event.node));
    }
    // The items of a map that has failed are of no use any more.
    if (event.kind === "nodeFailed") revoke.push(...itemTokens(state, event.node));
    if (event.kind === "accepted" || event.kind === "started") {
      listings.push(...labelListings(state, event.labels ?? {}));
    }
    if (event.kind === "nodeWaiting" && event.wait.for === "review") {
      (opened ??= new Set()).add(event.node);
      listings.push(openReview(state, event));
    }
    if (event.kind === "reviewChanged" || event.kind === "reviewEscalated") listings.push(changedReview(state, event));
    if (opened !== undefined && (event.kind === "executionEnded" || event.kind === "nodeFailed")) {
      for (const name of opened) {
        const ends = event.kind === "executionEnded" || isWithin(name, event.node);
        if (ends && opened.delete(name)) listings.push(closedReview(state, name));
      }
    }
    if (state.reviews.size > 0 && (event.kind === "nodeCompleted" || event.kind === "nodeFailed")) {
      listings.push(...closedReviews(state, event.node));
    }
    // Once its node begins anew nobody would know of the child any more, nor of the task that is still out.
    if (event.kind === "generationOpened") {
      for (const unit of state.orphans) mail.push(cancelChild(state, unit, state.runs[unit]!.child!));
      for (const unit of state.live) revoke.push(newestToken(state, state.nameOf(unit)));
    }
    if (event.kind === "executionEnded") {
      // One who gives its output to its parent has gathered that before.
      if (!mail.some(({ body }) => body.kind === "childEnded")) mail.push(...endMail(state, event));
      for (const unit of state.reviews) listings.push(...closedReviews(state, state.nameOf(unit)));
    }
  }
  listings.push(...budgetReviews(state, events));
  return { ...extras, events, mail, deadLetters, revoke, ...(listings.length > 0 && { listings }) };
}

/** The name of the dispatch that is out for this unit, or was out last. */
export function newestToken(state: ExecutionState, name: string): string {
  const unit = state.unitOf(name)!;
  const run = state.runs[unit]!;
  return formatToken({
    nonce: run.nonces.at(-1) ?? "",
    execution: state.id,
    generation: run.generation,
    instance: instanceOf(state, unit),
    attempt: run.attempt,
    delivery: run.delivery,
  });
}

/** A unit itself, or an item of it. */
function isWithin(name: string, node: string): boolean {
  return name === node || name.startsWith(`${node}[`);
}

function itemTokens(state: ExecutionState, node: string): string[] {
  const map = state.maps.get(state.plan.graph.indexOf.get(node) ?? -1);
  if (map === undefined) return [];
  const tokens: string[] = [];
  for (let unit = map.base; unit < map.base + map.count; unit++) {
    if (state.live.has(unit)) tokens.push(newestToken(state, state.nameOf(unit)));
  }
  return tokens;
}

function runOf(state: ExecutionState, name: string): Readonly<{ delivery: number }> {
  return state.runs[state.unitOf(name)!]!;
}
