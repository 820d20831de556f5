import { entityKey } from "../entity.ts";
import { type ConcurrencyRule, gateEntity, type GateName } from "../gate/rule.ts";
import type { Context } from "../machine.ts";
import type { ErrorValue, Message } from "../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "./decision.ts";
import type { ExecutionEnded } from "./events.ts";
import { templateError } from "./prepare.ts";
import { inputScopeOf } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

/**
 * Whether it needs a place of its own. What runs inside a place takes no second one: who holds one and waits for another could
 * wait in a circle.
 */
export function needsEntry(state: ExecutionState): boolean {
  return state.plan.entry !== null && state.parent?.within !== true;
}

/** Asks for a place, or waits for one; undefined once it may run. */
export function enter(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.entry?.status === "granted" || !needsEntry(state)) return undefined;
  if (state.entry !== null || state.status === "paused") return NOTHING;
  const { rule, key, name } = state.plan.entry!;
  const resolution = key?.resolve(inputScopeOf(state, context));
  if (resolution?.kind === "failed") {
    const error = templateError(resolution.failure);
    const message = `The "key" of the workflow's concurrency cannot be made of its input: ${error.message}`;
    return fails(state, { ...error, message }, context);
  }
  if (resolution?.kind === "needs") return { ...NOTHING, needs: resolution.blobs.map((blob) => ({ blob })) };
  if (resolution !== undefined && resolution.holes.length > 0) {
    const message = 'The "key" of a concurrency can be neither a secret nor a large value';
    return fails(state, { code: "CONFIG_INVALID", message, retryable: false }, context);
  }
  const value = resolution?.value;
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  const gateName: GateName = {
    kind: "concurrency",
    tenant: state.tenant,
    name,
    ...(resolution !== undefined && { key: shown }),
  };
  const gate = gateEntity(gateName);
  const ask = state.askCount + 1;
  return decided(state, context, [{ kind: "entryAsked", atMs: context.nowMs, gate, ask }], {
    mail: [acquire(state, gate, gateName, rule, ask)],
  });
}

function acquire(state: ExecutionState, gate: string, name: GateName, rule: ConcurrencyRule, ask: number): Message {
  const execution = entityKey("execution", state.id);
  return {
    id: `gateAcquire:${execution}:${ask}`,
    to: gate,
    by: execution,
    trace: state.trace,
    tenant: state.tenant,
    body: { kind: "gateAcquire", name, rule, execution, asks: [{ ask, node: WHOLE }] },
  };
}

/** Stands for the whole execution where others name a node. */
export const WHOLE = "";

/** There was no room, and it was not to wait. */
export function refusedEntry(context: Context): ExecutionEnded {
  const message = "As many executions of this workflow run as may, and it was not to wait";
  return ended({ code: "CONCURRENCY_LIMIT", message, retryable: true }, context);
}

function fails(state: ExecutionState, error: ErrorValue, context: Context): ExecutionDecision {
  return decided(state, context, [ended(error, context)]);
}

function ended(error: ErrorValue, { nowMs: atMs }: Context): ExecutionEnded {
  return { kind: "executionEnded", atMs, status: "failed", reason: "cancel", error };
}
