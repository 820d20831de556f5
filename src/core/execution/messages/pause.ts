import type { Context } from "../../machine.ts";
import type { Message, Pause, Resume } from "../../message.ts";
import { command } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { ExecutionState } from "../state.ts";

/**
 * Nothing new starts until it is resumed. What is under way goes on, and its results count; deadlines run on.
 *
 * Moves the execution `running → paused`.
 */
export function pause(state: ExecutionState, message: Message, body: Pause, context: Context): ExecutionDecision {
  return command(state, { ...message, body }, context, () => {
    if (state.status === "paused") return { events: [] };
    if (state.status !== "running") return { refused: state.isEnded ? "ALREADY_TERMINAL" : "NOT_RUNNING" };
    return { events: [{ kind: "paused", atMs: context.nowMs }], status: "PAUSED" };
  });
}

/** Moves the execution `paused → running`. */
export function resume(state: ExecutionState, message: Message, body: Resume, context: Context): ExecutionDecision {
  return command(state, { ...message, body }, context, () => {
    if (state.status !== "paused") return { refused: "NOT_PAUSED" };
    return { events: [{ kind: "resumed", atMs: context.nowMs }], status: "RUNNING" };
  });
}
