import type { Answer, Context } from "../machine.ts";
import type { Json } from "../../json/json.ts";
import type { Message } from "../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import type { ExecutionEvent } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** What a command comes to: refused with a code, or applied, with what follows and what its sender is told. */
export type Verdict =
  | { readonly refused: string; readonly detail?: string; readonly errors?: Json }
  | {
      readonly events: readonly ExecutionEvent[];
      /** The state that the answer names; that of now if not said. */
      readonly status?: string;
      readonly generation?: number;
      readonly extras?: Omit<ExecutionDecision, "events" | "reply">;
    };

/**
 * Decides what somebody has asked for, once: a request that was answered before gets the same answer again, and its id
 * used for something else is refused.
 */
export function command(
  state: ExecutionState,
  message: Message & { readonly body: { readonly request: string; readonly bodyHash?: string } },
  context: Context,
  judge: () => Verdict,
): ExecutionDecision {
  const { kind, request, bodyHash } = message.body;
  const known = state.requests.get(request);
  if (known !== undefined) {
    if (known.bodyHash !== undefined && bodyHash !== undefined && known.bodyHash !== bodyHash) {
      return { ...NOTHING, reply: { refused: "IDEMPOTENCY_KEY_REUSED" } };
    }
    const { status = shownStatus(state), generation = state.generation } = known.applied ? known : {};
    return { ...NOTHING, reply: known.applied ? applied(state, status, generation) : refused(state, known) };
  }
  const asked = {
    command: kind,
    request,
    by: message.by,
    atMs: context.nowMs,
    ...(bodyHash !== undefined && { bodyHash }),
  };
  const verdict = judge();
  if ("refused" in verdict) {
    const { refused: code, detail, errors } = verdict;
    const told = { code, ...(detail !== undefined && { detail }), ...(errors !== undefined && { errors }) };
    return decided(state, context, [{ kind: "commandRefused", ...asked, ...told }], { reply: refused(state, told) });
  }
  const { status = shownStatus(state), generation = state.generation } = verdict;
  return decided(state, context, [{ kind: "commandApplied", ...asked, status, generation }, ...verdict.events], {
    ...verdict.extras,
    reply: applied(state, status, generation),
  });
}

function applied(state: ExecutionState, status: string, generation: number): Answer {
  return { ok: { execution_id: state.id, status, generation } };
}

function refused(
  state: ExecutionState,
  { code, detail, errors }: { readonly code: string; readonly detail?: string; readonly errors?: Json },
): Answer {
  const execution = { execution_id: state.id, status: shownStatus(state), generation: state.generation };
  return {
    refused: code,
    execution,
    ...(detail !== undefined && { detail }),
    ...(errors !== undefined && { errors }),
  };
}

function shownStatus(state: ExecutionState): string {
  return state.status.toUpperCase();
}
