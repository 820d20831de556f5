import type { Context } from "../../machine.ts";
import type { Cancel, Message } from "../../message.ts";
import { command } from "../command.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { ExecutionState } from "../state.ts";
import { acceptance } from "./start.ts";

/**
 * Somebody wants it to stop: one event ends the execution and everything open in it.
 *
 * Moves the execution `pending | running | paused → cancelled`. From a parent it may come before the start does: then it
 * is accepted and ended at once. A cancel of an earlier call means nothing once the parent has called again.
 */
export function cancel(state: ExecutionState, message: Message, body: Cancel, context: Context): ExecutionDecision {
  const { start, entry } = body;
  const ended = { kind: "executionEnded", atMs: context.nowMs, status: "cancelled", reason: "cancel" } as const;
  if (state.status === "new") {
    if (start === undefined) return { ...NOTHING, reply: { refused: "NOT_FOUND" } };
    return decided(state, context, [acceptance(state, message, start, context), ended]);
  }
  if (entry !== undefined && (entry.gate !== state.entry?.gate || entry.ask !== state.entry.ask)) return NOTHING;
  if (start !== undefined && (start.parent?.call ?? 1) < (state.parent?.call ?? 1)) return NOTHING;
  return command(state, { ...message, body }, context, () =>
    state.isEnded ? { refused: "ALREADY_TERMINAL" } : { events: [ended], status: "CANCELLED" },
  );
}
