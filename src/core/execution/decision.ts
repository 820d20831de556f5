import type { Context, Decision } from "../machine.ts";
import { formatToken } from "../token.ts";
import { endMail } from "./end.ts";
import type { ExecutionEvent } from "./events.ts";
import { deadLetterOf } from "./failure.ts";
import type { ExecutionState } from "./state.ts";

export type ExecutionDecision = Decision<ExecutionEvent>;

export const NOTHING: ExecutionDecision = { events: [] };

type Extras = Omit<ExecutionDecision, "events" | "mail" | "deadLetters">;

/** A decision with all that its events entail: dead letters, tasks to withdraw, mail to the parent. */
export function decided(
  state: ExecutionState,
  context: Context,
  events: readonly ExecutionEvent[],
  extras: Extras = {},
): ExecutionDecision {
  const deadLetters = [];
  const mail = [];
  const revoke = [...(extras.revoke ?? [])];
  for (const event of events) {
    if (event.kind === "nodeFailed" || (event.kind === "taskFailed" && event.retryAtMs === null)) {
      const letter = deadLetterOf(state, state.plan.graph.indexOf.get(event.node)!, event.error, context);
      if (letter !== undefined) deadLetters.push(letter);
    }
    if (event.kind === "taskFailed" && event.deadline !== undefined) revoke.push(newestToken(state, event.node));
    // The attempt was won by an earlier delivery while a later one is out: nobody needs that any more.
    if (event.kind === "taskCompleted" && event.delivery !== runOf(state, event.node).delivery) {
      revoke.push(newestToken(state, event.node));
    }
    if (event.kind === "executionEnded") mail.push(...endMail(state, event));
  }
  return { ...extras, events, mail, deadLetters, revoke };
}

/** The name of the dispatch that is out for this node, or was out last. */
export function newestToken(state: ExecutionState, id: string): string {
  const run = runOf(state, id);
  return formatToken({
    nonce: run.nonces.at(-1) ?? "",
    execution: state.id,
    generation: state.generation,
    instance: id,
    attempt: run.attempt,
    delivery: run.delivery,
  });
}

function runOf(state: ExecutionState, id: string): Readonly<{ nonces: string[]; attempt: number; delivery: number }> {
  return state.runs[state.plan.graph.indexOf.get(id)!]!;
}
