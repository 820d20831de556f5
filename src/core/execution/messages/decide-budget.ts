import type { Amounts } from "../../gate/amounts.ts";
import { entityKey } from "../../entity.ts";
import type { Context } from "../../machine.ts";
import type { DecideReview, Message } from "../../message.ts";
import { awaitedGate } from "../asks.ts";
import { budgetOf, raiseForm } from "../budget-review.ts";
import type { Verdict } from "../command.ts";
import { afterFailure } from "../failure.ts";
import { refusal } from "../gates.ts";
import { formRefusal } from "../review-data.ts";
import type { ExecutionState } from "../state.ts";

/**
 * A person has decided about a budget: it is raised, which lets through whom there is enough for now; or the node fails.
 * undefined if nothing of that name waits for a budget.
 */
export function judgeBudget(
  state: ExecutionState,
  message: Message,
  body: DecideReview,
  context: Context,
): Verdict | undefined {
  const unit = state.unitOf(body.instance);
  if (unit === undefined || body.generation !== state.generation || state.isEnded) return undefined;
  const asked = state.stalled.has(unit) ? awaitedGate(state, unit) : undefined;
  if (asked?.stalled === undefined) return undefined;
  const node = state.nameOf(unit);
  const budget = budgetOf(state, node)!;
  if (body.decision === "reject") {
    const error = refusal(budget, { standing: asked.stalled });
    const failed = { kind: "nodeFailed", atMs: context.nowMs, node, error } as const;
    return { events: [failed, ...afterFailure(state, unit, error, context)] };
  }
  const refused = formRefusal(raiseForm(asked.stalled), body.data);
  if (refused !== undefined) return refused;
  const raise: Message = {
    id: `gateCommand:${entityKey("execution", state.id)}:${body.request}`,
    to: asked.gate,
    by: message.by,
    trace: state.trace,
    tenant: state.tenant,
    body: {
      kind: "gateCommand",
      request: `${state.id}:${body.request}`,
      action: "override",
      amounts: body.data as Amounts,
      atLeast: true,
    },
  };
  return { events: [], extras: { mail: [raise] } };
}
