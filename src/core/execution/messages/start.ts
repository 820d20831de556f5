import type { Context } from "../../machine.ts";
import type { Message, Start } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import type { ExecutionEvent } from "../events.ts";
import type { ExecutionState } from "../state.ts";

/**
 * Accept an execution and set it running.
 *
 * Moves the execution `new → pending → running`. The same start again is the same execution: with the same body it gets
 * the same answer, with another one the key was used for something else.
 */
export function start(state: ExecutionState, message: Message, body: Start, context: Context): ExecutionDecision {
  if (state.status !== "new") {
    if (state.bodyHash !== body.bodyHash) return { ...NOTHING, reply: { refused: "IDEMPOTENCY_KEY_REUSED" } };
    return { ...NOTHING, reply: { ok: { execution_id: state.id, status: "RUNNING" } } };
  }
  // A token is made of it, and taken apart again at the colons.
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(state.id)) return { ...NOTHING, reply: { refused: "INVALID_ID" } };
  const timeoutSeconds = state.plan.workflow.timeout_seconds;
  const events: ExecutionEvent[] = [
    {
      kind: "accepted",
      atMs: context.nowMs,
      workflow: body.workflow,
      definition: body.definition,
      input: body.input,
      bodyHash: body.bodyHash,
      by: message.by,
      tenant: message.tenant,
      trace: message.trace,
      ...(body.parent !== undefined && { parent: body.parent }),
    },
    {
      kind: "started",
      atMs: context.nowMs,
      deadlineAtMs: timeoutSeconds === 0 ? null : context.nowMs + timeoutSeconds * 1000,
    },
  ];
  return decided(state, context, events, { reply: { ok: { execution_id: state.id, status: "RUNNING" } } });
}
