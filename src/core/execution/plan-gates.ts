import type { BreakerSpec, LimitSpec, NodeLimit, Workflow, WorkflowNode } from "../../definition/workflow.ts";
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
}

/** What the author of a node says that one of its tasks may use. */
export interface EstimateSpec {
  readonly tokens?: number;
}

export const NO_GATES: readonly PlanGate[] = [];

/** What the words of a rate mean. */
export const PER_SECONDS = { second: 1, minute: 60, hour: 3600 } as const;

/**
 * The gates of a node, in the order in which they are passed: places, rate, LLM tokens, breaker. It is the same everywhere, so
 * that no two can wait for each other. A token that was taken is used up, so the rate comes after the places. The breaker comes
 * last: whoever has passed it calls, and while somebody stood in line behind it, it may have opened.
 */
export function planGates(
  spec: WorkflowNode,
  workflow: Workflow,
  nodeIds: { has(id: string): boolean },
): readonly PlanGate[] {
  const { limit, concurrency } = spec;
  if (limit === undefined && concurrency === undefined) return NO_GATES;
  const gates: PlanGate[] = [];
  const own = `${workflow.name}/${spec.id}`;
  const wanted = typeof limit === "string" ? { name: limit } : limit;
  const named = wanted?.name === undefined ? wanted : workflow.limits?.[wanted.name];
  const called = wanted?.name ?? own;
  if (isCount(concurrency?.limit)) {
    const key = concurrency.key === undefined ? null : compileValue(concurrency.key, { nodeIds });
    const onConflict = concurrency.on_conflict === "reject" ? "reject" : "queue";
    const rule = { kind: "concurrency", limit: concurrency.limit, onConflict } as const;
    gates.push({ rule, wait: "concurrency", name: own, key, cost: 1, until: "end", estimate: null });
  }
  if (named !== undefined) gates.push(...limitGates(called, named, wanted));
  if (isCount(named?.breaker?.window)) gates.push(breakerGate(called, named.breaker));
  return gates;
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
