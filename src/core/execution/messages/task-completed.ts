import type { Context } from "../../machine.ts";
import type { TaskCompleted } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { TaskCompletedEvent } from "../events.ts";
import type { ExecutionState } from "../state.ts";
import { closing } from "../asks.ts";
import { claim } from "./dispatch.ts";
import { ignoredResult } from "./ignored-result.ts";
import { startOf } from "./task-started.ts";

const ACCEPTED = { ok: { accepted: true } };

/**
 * A handler returned. Its output counts from any delivery of the current attempt; the first one wins.
 *
 * Moves the node `queued | running → completed`.
 */
export function taskCompleted(state: ExecutionState, body: TaskCompleted, context: Context): ExecutionDecision {
  const claimed = claim(state, body.token);
  if (claimed.kind === "taken") return { ...NOTHING, reply: ACCEPTED };
  if (claimed.kind === "late") {
    const { unit, token } = claimed;
    const { attempt, delivery } = token;
    const reply = { ok: { accepted: false, recorded: true } };
    // The same late result twice is one record.
    if (state.runs[unit]!.late !== null) return { ...NOTHING, reply };
    const event = { atMs: context.nowMs, node: state.nameOf(unit), attempt, delivery, output: body.output };
    return decided(state, context, [{ kind: "lateResult", ...event }], { reply });
  }
  if (claimed.kind !== "current") return ignoredResult(state, body.token, claimed.kind, context);

  const { run, token, unit } = claimed;
  const event: { -readonly [Field in keyof TaskCompletedEvent]: TaskCompletedEvent[Field] } = {
    kind: "taskCompleted",
    atMs: context.nowMs,
    node: state.nameOf(unit),
    attempt: token.attempt,
    delivery: token.delivery,
    startedAtMs: startOf(run.queuedAtMs, context.nowMs, body.runningMs),
    output: body.output,
  };
  if (body.usage !== undefined) event.usage = body.usage;
  if (body.closeForMs !== undefined) Object.assign(event, closing(state.planOf(unit), body.closeForMs));
  // Nearly always: nothing follows from it but itself.
  const isPlain = token.delivery === run.delivery && state.reviews.size === 0 && state.stalled.size === 0;
  return isPlain ? { events: [event], reply: ACCEPTED } : decided(state, context, [event], { reply: ACCEPTED });
}
