import type { Context } from "../../machine.ts";
import type { DeliveryLost, TaskHandedBack } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import { afterFailure } from "../failure.ts";
import type { ExecutionState } from "../state.ts";
import { claim } from "./dispatch.ts";

/** A task that has killed this many workers is not given to another. */
export const MAX_LOST_DELIVERIES = 3;

/**
 * A worker vanished, or gave its task back: the same attempt is delivered again.
 *
 * Moves the node `queued | running → queued`; at the third lost worker `→ failed`. Only the newest delivery can be
 * lost: an older one was lost before, and counting it twice would poison a healthy task.
 */
export function deliveryLost(
  state: ExecutionState,
  body: DeliveryLost | TaskHandedBack,
  context: Context,
): ExecutionDecision {
  const claimed = claim(state, body.token);
  if (claimed.kind !== "current" || !claimed.newest) return { ...NOTHING, reply: { refused: "STALE_ATTEMPT" } };
  const { unit, run, token } = claimed;
  const handedBack = body.kind === "taskHandedBack";
  const at = { atMs: context.nowMs, node: state.nameOf(unit), attempt: token.attempt, delivery: token.delivery };
  // A queue that lives in a process may have been given the task back from the state while the word of its loss was on the way.
  // It must not begin beside its successor: what its gates had let through is given back with this.
  const revoke = [body.token];
  if (handedBack || run.lost + 1 < MAX_LOST_DELIVERIES) {
    const reply = { ok: { accepted: true } };
    return decided(state, context, [{ kind: "deliveryLost", ...at, handedBack }], { reply, revoke });
  }
  const message = `The task was lost with its worker ${MAX_LOST_DELIVERIES} times: it may be what kills them`;
  const error = { code: "POISON_TASK", message, retryable: false };
  const failed = { kind: "taskFailed", ...at, error, retryAtMs: null } as const;
  return decided(state, context, [failed, ...afterFailure(state, unit, error, context)], { revoke });
}
