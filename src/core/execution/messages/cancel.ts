import type { Answer, Context } from "../../machine.ts";
import type { Cancel, Message } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { ExecutionState } from "../state.ts";

/**
 * Somebody wants it to stop: one event ends the execution and everything open in it.
 *
 * Moves the execution `pending | running → cancelled`. A request that was answered before gets the same answer.
 */
export function cancel(state: ExecutionState, message: Message, body: Cancel, context: Context): ExecutionDecision {
  const remembered = state.requests.get(body.request);
  if (remembered !== undefined)
    return { ...NOTHING, reply: answer(state, remembered.applied ? null : remembered.code) };

  const command = { command: "cancel", request: body.request, by: message.by, atMs: context.nowMs };
  if (state.isEnded) {
    const code = "ALREADY_TERMINAL";
    return decided(state, context, [{ kind: "commandRefused", ...command, code }], { reply: answer(state, code) });
  }
  return decided(
    state,
    context,
    [
      { kind: "commandApplied", ...command },
      { kind: "executionEnded", atMs: context.nowMs, status: "cancelled", reason: "cancel" },
    ],
    { reply: { ok: { execution_id: state.id, status: "CANCELLED", generation: state.generation } } },
  );
}

function answer(state: ExecutionState, code: string | null): Answer {
  const execution = { execution_id: state.id, status: state.status.toUpperCase(), generation: state.generation };
  return code === null ? { ok: execution } : { refused: code, execution };
}
