import type { Context } from "../../machine.ts";
import type { Message, Start } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import { deadlineOf } from "../end.ts";
import type { Accepted, ExecutionEvent, Started } from "../events.ts";
import { firstLabels } from "../label-listing.ts";
import { cancelRequest } from "../nodes/child.ts";
import type { ExecutionState } from "../state.ts";
import { openFailed } from "./retry.ts";

/**
 * Accept an execution and set it running, unless it is held.
 *
 * Moves the execution `new → pending → running`. The same start again is the same execution: with the same body it gets
 * the same answer, with another one the key was used for something else. From a parent, a later call of the same child.
 */
export function start(state: ExecutionState, message: Message, body: Start, context: Context): ExecutionDecision {
  if (state.status !== "new") {
    if (body.parent !== undefined && state.parent !== null && body.parent.entity === state.parent.entity) {
      return calledAgain(state, body, context) ?? repeated(state, body);
    }
    return repeated(state, body);
  }
  // A token is made of it, and taken apart again at the colons.
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(state.id)) return { ...NOTHING, reply: { refused: "INVALID_ID" } };
  const held = body.hold === true;
  const events: ExecutionEvent[] = [acceptance(state, message, body, context)];
  if (!held) events.push(startedNow(state, context));
  const status = held ? "PENDING" : "RUNNING";
  return decided(state, context, events, { reply: { ok: { execution_id: state.id, status } } });
}

function repeated(state: ExecutionState, body: Start): ExecutionDecision {
  if (state.bodyHash !== body.bodyHash) return { ...NOTHING, reply: { refused: "IDEMPOTENCY_KEY_REUSED" } };
  const status = body.hold === true ? "PENDING" : "RUNNING";
  return { ...NOTHING, reply: { ok: { execution_id: state.id, status } } };
}

/** The parent wants the result anew: what failed is tried again; what is there is sent again. */
function calledAgain(state: ExecutionState, body: Start, context: Context): ExecutionDecision | undefined {
  const { input, around, parent } = body;
  const call = parent?.call ?? 1;
  const known = state.parent?.call ?? 1;
  // Mail comes once; a start that is sent again comes from somebody who does not number his calls.
  const isForgotten = parent?.call === known && state.isEnded;
  if (call < known || (call === known && !isForgotten)) return undefined;
  // It was called off, and that has overtaken the call: nobody waits for what would come of it.
  if (isCalledOff(state, call)) return NOTHING;
  // The parent has forgotten that it called, or that it was answered: its store was lost, and what had come of it was not.
  if (isForgotten) return decided(state, context, [{ kind: "parentCalled", atMs: context.nowMs, call }]);
  if (state.startedAtMs === null && state.isEnded) {
    // It was called off before it was called, and what it works on comes only now.
    const given = { input, ...(around !== undefined && { around }) };
    return decided(state, context, [{ ...openFailed(state, context), call, ...given }]);
  }
  if (state.end?.status === "completed" && !hasFailedParts(state)) {
    return decided(state, context, [{ kind: "parentCalled", atMs: context.nowMs, call }]);
  }
  if (state.isEnded) return decided(state, context, [{ ...openFailed(state, context), call }]);
  return decided(state, context, [{ kind: "parentCalled", atMs: context.nowMs, call }]);
}

/** This call, or a later one: whoever called again was done with the call before. */
function isCalledOff(state: ExecutionState, call: number): boolean {
  if (state.requests.has(cancelRequest(state.id, call))) return true;
  const prefix = cancelRequest(state.id, 0).slice(0, -1);
  return state.requests
    .keys()
    .some((request) => request.startsWith(prefix) && Number(request.slice(prefix.length)) > call);
}

function hasFailedParts(state: ExecutionState): boolean {
  if (state.plan.workflow["x-millrace-part"] !== true) return false;
  return state.maps.values().some((map) => map.failures > 0);
}

export function acceptance(state: ExecutionState, message: Message, body: Start, context: Context): Accepted {
  return {
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
    ...(body.around !== undefined && { around: body.around }),
    ...(body.fork !== undefined && { fork: body.fork }),
    ...firstLabels(state.plan.workflow, body),
  };
}

export function startedNow(state: ExecutionState, context: Context): Started {
  return { kind: "started", atMs: context.nowMs, deadlineAtMs: deadlineOf(state, context) };
}
