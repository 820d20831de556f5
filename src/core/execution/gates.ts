import type { Json } from "../../json/json.ts";
import { entityKey } from "../entity.ts";
import { gateEntity, type GateName, type GateRule } from "../gate/rule.ts";
import type { Context, Need } from "../machine.ts";
import type { ErrorValue, GateAsk, GateReturn, Message } from "../message.ts";
import { decided, type ExecutionDecision } from "./decision.ts";
import type { GateAsked, GateReturned } from "./events.ts";
import type { PlanGate } from "./plan-gates.ts";
import { type Prepared, templateError } from "./prepare.ts";
import { estimateOf } from "./spending.ts";
import { scopeOf } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

/** One ask, before those of one gate are put into one message. */
export interface AskDraft {
  readonly gate: string;
  readonly name: GateName;
  readonly rule: GateRule;
  readonly ask: GateAsk;
}

const REFUSED: ErrorValue = {
  code: "CONCURRENCY_LIMIT",
  message: "As many as may run at a time do, and it was not to wait",
  retryable: false,
};

type Next =
  /** It has passed all its gates. */
  | { readonly kind: "passed" }
  | { readonly kind: "asks"; readonly event: GateAsked; readonly draft: AskDraft }
  | { readonly kind: "needs"; readonly needs: readonly Need[] }
  | { readonly kind: "failed"; readonly error: ErrorValue };

/**
 * The next gate that a unit has to pass before its task goes out. Every delivery passes them anew: a lost worker may have
 * called whoever is behind the gate, and the next one calls again.
 *
 * @param before asks of this decision that the state does not know of yet
 */
export function askNext(
  state: ExecutionState,
  unit: number,
  before: number,
  prepared: Prepared,
  context: Context,
): Next {
  const asked = state.asks.get(unit) ?? [];
  if (asked.at(-1)?.status === "refused") return { kind: "failed", error: REFUSED };
  const passed = asked.length;
  const gate = state.planOf(unit).gates[passed];
  if (gate === undefined) return { kind: "passed" };
  const resolved = resolveKey(state, unit, gate, context);
  if (resolved.kind !== "resolved") return resolved;
  const { rule, wait, until, cost } = gate;
  const name: GateName = {
    kind: rule.kind,
    tenant: state.tenant,
    name: gate.name,
    ...(resolved.key !== undefined && { key: resolved.key }),
  };
  const entity = gateEntity(name);
  const ask = state.askCount + before + 1;
  const node = state.nameOf(unit);
  const estimate = gate.estimate === null ? undefined : estimateOf(gate.estimate, prepared);
  return {
    kind: "asks",
    event: { kind: "gateAsked", atMs: context.nowMs, node, gate: entity, ask, wait, until },
    draft: { gate: entity, name, rule, ask: { ask, node, ...(cost !== 1 && { cost }), ...(estimate && { estimate }) } },
  };
}

function resolveKey(
  state: ExecutionState,
  unit: number,
  { key }: PlanGate,
  context: Context,
): { readonly kind: "resolved"; readonly key?: string } | Extract<Next, { kind: "needs" | "failed" }> {
  if (key === null) return { kind: "resolved" };
  const resolution = key.resolve(scopeOf(state, unit, context));
  if (resolution.kind === "failed") return { kind: "failed", error: templateError(resolution.failure) };
  if (resolution.kind === "needs") return { kind: "needs", needs: resolution.blobs.map((blob) => ({ blob })) };
  if (resolution.holes.length > 0) {
    const message = 'The "key" of a concurrency can be neither a secret nor a large value';
    return { kind: "failed", error: { code: "CONFIG_INVALID", message, retryable: false } };
  }
  return { kind: "resolved", key: keyText(resolution.value) };
}

function keyText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function askMail(state: ExecutionState, drafts: readonly AskDraft[]): Message[] {
  const execution = entityKey("execution", state.id);
  const byGate = Map.groupBy(drafts, ({ gate }) => gate);
  return Array.from(byGate, ([gate, own]) => {
    const { name, rule } = own[0]!;
    const asks = own.map(({ ask }) => ask);
    return gateMail(state, gate, `gateAcquire:${execution}:${asks[0]!.ask}`, {
      kind: "gateAcquire",
      name,
      rule,
      execution,
      asks,
    });
  });
}

/** Gives back what is not needed any more, so much at a time. */
export function returnToGates(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.returns.length === 0) return undefined;
  const returns = state.returns.slice(0, context.maxEvents);
  return decided(state, context, [{ kind: "gatesReturned", atMs: context.nowMs, returns }], {
    mail: returnMail(state, returns),
  });
}

export function returnMail(state: ExecutionState, returns: readonly GateReturned[]): Message[] {
  const execution = entityKey("execution", state.id);
  const byGate = Map.groupBy(returns, ({ gate }) => gate);
  return Array.from(byGate, ([gate, own]) => {
    const asks = [...new Set(own.map(({ ask }) => ask))];
    const closeForMs = Math.max(0, ...own.map((one) => one.closeForMs ?? 0));
    return gateMail(state, gate, `gateReturn:${execution}:${state.version}:${asks[0]}`, {
      kind: "gateReturn",
      execution,
      asks,
      ...endedSo(own, "good"),
      ...endedSo(own, "bad"),
      ...usedBy(own),
      ...(closeForMs > 0 && { closeForMs }),
    });
  });
}

function endedSo(returns: readonly GateReturned[], outcome: "good" | "bad"): { readonly [outcome: string]: number[] } {
  const asks = returns.filter((one) => one.outcome === outcome).map(({ ask }) => ask);
  return asks.length === 0 ? {} : { [outcome]: asks };
}

function usedBy(returns: readonly GateReturned[]): Pick<GateReturn, "used"> {
  const used = returns.flatMap((one) => (one.used === undefined ? [] : [{ ask: one.ask, used: one.used }]));
  return used.length === 0 ? {} : { used };
}

function gateMail(state: ExecutionState, to: string, id: string, body: Message["body"]): Message {
  return { id, to, by: entityKey("execution", state.id), trace: state.trace, tenant: state.tenant, body };
}
