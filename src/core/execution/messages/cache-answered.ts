import { entityId } from "../../entity.ts";
import type { Context } from "../../machine.ts";
import type { CacheAnswered } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import { giveBackMail } from "../gates.ts";
import type { ExecutionState } from "../state.ts";
import { askOf } from "./gate-answered.ts";

/**
 * The cache has the result, and the node is done without a task; or it has not, and the node goes on to its gates.
 *
 * Moves the node `pending | queued → completed`. Leave that is not wanted any more is given back; a result is nobody's loss.
 */
export function cacheAnswered(state: ExecutionState, body: CacheAnswered, context: Context): ExecutionDecision {
  const { cache: gate, ask, node, found } = body;
  const atMs = context.nowMs;
  const asked = askOf(state, gate, ask, node);
  if (asked === undefined) {
    if (found !== undefined) return NOTHING;
    const returns = [{ gate, ask }];
    return decided(state, context, [{ kind: "gatesReturned", atMs, returns }], { mail: giveBackMail(state, returns) });
  }
  if (asked.status !== "asked") return NOTHING;
  if (found === undefined) return decided(state, context, [{ kind: "gateGranted", atMs, node, gate, ask }]);
  const { output, from } = found;
  return decided(state, context, [
    { kind: "nodeCompleted", atMs, node, output, reason: "cached", from: entityId(from) },
  ]);
}
