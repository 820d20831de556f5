import { AMOUNT_UNITS } from "../gate/amounts.ts";
import type {
  BreakerSpec,
  BudgetSpec,
  LimitSpec,
  NodeLimit,
  Prices,
  Workflow,
  WorkflowNode,
} from "../../definition/workflow.ts";
import type { CompiledValue } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import type { GateRule } from "../gate/rule.ts";
import type { GateWait } from "./events.ts";

/** A gate that the tasks of a node have to pass. */
export interface PlanGate {
  readonly rule: GateRule;
  readonly wait: GateWait;
  readonly name: string;
  /** What makes it one of many: each value has a gate of its own. */
  readonly key: CompiledValue | null;
  readonly cost: number;
  readonly until: "start" | "end";
  /** How it is known beforehand what a task may use up; null where nothing is reserved. */
  readonly estimate: EstimateSpec | null;
  /** Each execution has one of its own. */
  readonly isOfExecution?: true;
  /** The model to do with when a budget is not enough for the node's own. */
  readonly fallback?: string;
}

/** What the author of a node says that one of its tasks may use. */
export interface EstimateSpec {
  readonly tokens?: number;
  readonly usd?: number;
  readonly seconds?: number;
  readonly prices?: Prices;
}

export const NO_GATES: readonly PlanGate[] = [];

/** What the words of a rate mean. */
export const PER_SECONDS = { second: 1, minute: 60, hour: 3600 } as const;

/**
 * The gates of a node, in the order in which they are passed: budgets, places, rate, LLM tokens, breaker. It is the same
 * everywhere, so that no two can wait for each other. A token that was taken is used up, so the rate comes after the places. The
 * breaker comes last: whoever has passed it calls, and while somebody stood in line behind it, it may have opened.
 */
export function planGates(
  spec: WorkflowNode,
  workflow: Workflow,
  nodeIds: { has(id: string): boolean },
): readonly PlanGate[] {
  const { limit, concurrency, budget } = spec;
  if ([limit, concurrency, budget, workflow.budget].every((each) => each === undefined)) return NO_GATES;
  const own = `${workflow.name}/${spec.id}`;
  const wanted = typeof limit === "string" ? { name: limit } : limit;
  const named = wanted?.name === undefined ? wanted : workflow.limits?.[wanted.name];
  const called = wanted?.name ?? own;
  const thought = {
    ...workflow.budget?.estimate,
    ...(wanted?.tokens && { tokens: wanted.tokens }),
    ...budget?.estimate,
  };
  const gates: PlanGate[] = [
    ...budgetGates(own, budget, nodeIds, thought),
    ...budgetGates(workflow.name, workflow.budget, nodeIds, thought),
  ];
  if (isCount(concurrency?.limit)) {
    const key = concurrency.key === undefined ? null : compileValue(concurrency.key, { nodeIds });
    const onConflict = concurrency.on_conflict === "reject" ? "reject" : "queue";
    const rule = { kind: "concurrency", limit: concurrency.limit, onConflict } as const;
    gates.push({ rule, wait: "concurrency", name: own, key, cost: 1, until: "end", estimate: null });
  }
  if (named !== undefined) gates.push(...limitGates(called, named, { ...wanted, ...thought }));
  if (isCount(named?.breaker?.window)) gates.push(breakerGate(called, named.breaker));
  return gates;
}

/** A budget comes first: who may have to wait for a person must keep nobody else from a place. */
function budgetGates(
  own: string,
  budget: BudgetSpec | undefined,
  nodeIds: { has(id: string): boolean },
  thought: EstimateSpec,
): PlanGate[] {
  if (budget === undefined) return [];
  const limits = Object.fromEntries(
    AMOUNT_UNITS.flatMap((unit) => (isAmount(budget[unit]) ? [[unit, budget[unit]]] : [])),
  );
  if (Object.keys(limits).length === 0) return [];
  const { key, on_limit: onLimit, fallback, prices, name = own } = budget;
  const rule = { kind: "budget", limits, onLimit: onLimit === "pause" ? "pause" : "fail" } as const;
  return [
    {
      rule,
      wait: "budget",
      name,
      key: typeof key === "string" ? compileValue(key, { nodeIds }) : null,
      cost: 1,
      until: "end",
      estimate: { ...thought, ...(prices !== undefined && { prices }) },
      ...(typeof key !== "string" && { isOfExecution: true as const }),
      ...(onLimit === "fallback" && typeof fallback === "string" && { fallback }),
    },
  ];
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value > 0;
}

/** Definitions of an earlier release hold what was written there, looked at by nobody. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function breakerGate(name: string, breaker: BreakerSpec): PlanGate {
  const rule = {
    kind: "breaker",
    failureRate: breaker.failure_rate,
    window: breaker.window,
    minCalls: breaker.min_calls,
    openMs: breaker.open_seconds * 1000,
  } as const;
  return { rule, wait: "breaker", name, key: null, cost: 1, until: "end", estimate: null };
}

function limitGates(name: string, spec: LimitSpec, { cost = 1, tokens }: NodeLimit = {}): PlanGate[] {
  const { rate, per, burst, concurrency, tokens_per_minute: perMinute, tokens_burst: tokensBurst } = spec;
  const gates: PlanGate[] = [];
  if (isCount(concurrency)) {
    const rule = { kind: "concurrency", limit: concurrency, onConflict: "queue" } as const;
    gates.push({ rule, wait: "concurrency", name, key: null, cost: 1, until: "end", estimate: null });
  }
  if (typeof rate === "number" && rate > 0) {
    const perSecond = rate / PER_SECONDS[per ?? "second"];
    const rule = { kind: "rate", perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond)) } as const;
    gates.push({ rule, wait: "rate_limit", name, key: null, cost, until: "start", estimate: null });
  }
  if (typeof perMinute === "number" && perMinute > 0) {
    const rule = { kind: "tokens", perSecond: perMinute / 60, burst: tokensBurst ?? perMinute } as const;
    const estimate = tokens === undefined ? {} : { tokens };
    gates.push({ rule, wait: "rate_limit", name, key: null, cost: 1, until: "end", estimate });
  }
  return gates;
}
