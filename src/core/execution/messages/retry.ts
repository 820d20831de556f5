import type { Context } from "../../machine.ts";
import type { Message, Retry } from "../../message.ts";
import { command, type Verdict } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import { deadlineOf } from "../end.ts";
import type { GenerationOpened } from "../events.ts";
import { instanceOfLetter, isReopened, replayed } from "../letters.ts";
import type { ExecutionState } from "../state.ts";

export const NEVER_TRIGGERED = "It was cancelled before it was triggered, so no part of it ran. Start another";

/**
 * Somebody wants a part of it run again: a new generation of the same execution, which keeps what completed.
 *
 * Moves the execution `completed | partial | failed | cancelled → running`. Two at once make one generation: the second
 * finds the execution open.
 */
export function retry(state: ExecutionState, message: Message, body: Retry, context: Context): ExecutionDecision {
  return command(state, { ...message, body }, context, () => judge(state, body, context));
}

function judge(state: ExecutionState, body: Retry, context: Context): Verdict {
  const { scope, from, config, input, letters = [] } = body;
  if (!state.isEnded) return { refused: "EXECUTION_OPEN" };
  if (state.startedAtMs === null) return { refused: "NOT_RETRYABLE", detail: NEVER_TRIGGERED };
  if (scope === "failed" && state.end!.status === "completed" && !isBatchWithFailures(state)) {
    return { refused: "NOT_RETRYABLE" };
  }
  if (scope === "descendants" || scope === "node" || config !== undefined) {
    if (from === undefined || !state.plan.graph.indexOf.has(from))
      return { refused: "NOT_FOUND", detail: `There is no node "${from ?? ""}"` };
  }
  for (const { id } of letters) {
    const status = state.letters.get(id);
    if (status === undefined) return { refused: "NOT_FOUND" };
    if (status === "replayed") return { refused: "ALREADY_REPLAYED" };
  }
  const toReplay = letters.filter(({ id }) => !isReopened(state, id));
  if (letters.length > 0 && toReplay.length === 0) return { refused: "ALREADY_REPLAYED" };
  if (scope === "letters" && letters.length === 0) return { refused: "NOT_FOUND" };
  const opened: GenerationOpened = {
    ...openFailed(state, context),
    scope,
    ...(from !== undefined && { from }),
    ...(letters.length > 0 && {
      instances: toReplay.map(({ id }) => instanceOfLetter(id)),
      letters: letters.map(({ id }) => id),
    }),
    ...(config !== undefined && from !== undefined && { config }),
    ...(input !== undefined && { input }),
  };
  return {
    events: [opened],
    status: "RUNNING",
    generation: opened.generation,
    extras: { deadLetters: letters.map(replayed) },
  };
}

/** A batch completes whatever becomes of its items, and those that failed can be tried again. */
export function isBatchWithFailures(state: ExecutionState): boolean {
  if (state.parent !== null || state.plan.workflow["x-millrace-part"] !== true) return false;
  return state.maps.values().some((map) => map.failures > 0);
}

/** The next generation, of what failed. */
export function openFailed(state: ExecutionState, context: Context): GenerationOpened {
  return {
    kind: "generationOpened",
    atMs: context.nowMs,
    generation: state.generation + 1,
    scope: "failed",
    deadlineAtMs: deadlineOf(state, context),
  };
}
