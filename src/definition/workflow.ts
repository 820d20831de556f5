import type { Json, JsonObject } from "../json/json.ts";

/**
 * The canonical form of a definition: one shape whatever was written, every default written out, so that a later
 * release with other defaults runs a stored workflow as it was accepted. Field names are those of the format itself.
 */
export interface Workflow {
  readonly name: string;
  readonly description?: string;
  readonly labels?: JsonObject;
  readonly input_schema?: Json;
  readonly on_error: OnError;
  /** 0 = the author says none. Default 7 days. */
  readonly timeout_seconds: number;
  /** null = unlimited. */
  readonly max_parallel_nodes: number | null;
  readonly dlq: DlqPolicy;
  readonly priority: number;
  readonly limits?: Readonly<Record<string, LimitSpec>>;
  readonly budget?: BudgetSpec;
  readonly concurrency?: WorkflowConcurrency;
  readonly nodes: readonly WorkflowNode[];
  readonly [extension: `x-${string}`]: Json;
}

export interface WorkflowNode {
  readonly id: string;
  readonly name?: string;
  readonly type?: string;
  readonly handler: string;
  readonly config: JsonObject;
  /** A bare id means `on: completed`. Never twice the same parent with the same `on`. */
  readonly dependencies: readonly Dependency[];
  /** null for nodes that run in the engine. */
  readonly timeout_seconds: number | null;
  readonly queue_timeout_seconds: number;
  readonly retry: RetryPolicy;
  /** Without `{{ }}`. */
  readonly condition?: string;
  readonly condition_on_error: "fail" | "skip";
  readonly join: Join;
  readonly join_timeout_seconds?: number;
  readonly on_error: OnError;
  /** Hand the outputs of the COMPLETED parents to the handler as `inputs`. */
  readonly inputs: boolean;
  readonly repeat?: RepeatPolicy;
  readonly limit?: string | NodeLimit;
  readonly concurrency?: ConcurrencySpec;
  readonly budget?: BudgetSpec;
  readonly cache?: CacheSpec;
  readonly queue: string;
  readonly priority: number;
  readonly dlq: DlqPolicy;
  readonly [extension: `x-${string}`]: Json;
}

/** What is shared by everything that names it: a rate, a number of places, or both. */
export interface LimitSpec {
  readonly rate?: number;
  readonly per?: "second" | "minute" | "hour";
  readonly burst?: number;
  readonly tokens_per_minute?: number;
  readonly tokens_burst?: number;
  readonly concurrency?: number;
  readonly breaker?: BreakerSpec;
}

export interface BreakerSpec {
  readonly failure_rate: number;
  readonly window: number;
  readonly min_calls: number;
  readonly open_seconds: number;
}

/** A limit by its name, or one of the node's own. */
export interface NodeLimit extends LimitSpec {
  readonly name?: string;
  readonly cost?: number;
  /** How many LLM tokens a call may use, as far as its author knows. */
  readonly tokens?: number;
}

export interface ConcurrencySpec {
  readonly limit: number;
  /** May hold templates. */
  readonly key?: string;
  readonly on_conflict: "queue" | "reject";
}

export interface WorkflowConcurrency {
  readonly limit: number;
  /** May hold templates of the input. */
  readonly key?: string;
  readonly on_conflict: "queue" | "cancel_old" | "reject";
}

export interface CacheSpec {
  /** May hold templates. Without it: the handler and all that it is given. */
  readonly key?: string;
  readonly ttl_seconds: number;
}

/** What may be spent, and what happens when there is too little left. */
export interface BudgetSpec {
  readonly tokens?: number;
  readonly usd?: number;
  readonly calls?: number;
  readonly seconds?: number;
  /** May hold templates. Without it each execution has a budget of its own. */
  readonly key?: string;
  readonly on_limit: "fail" | "fallback" | "pause";
  /** The model to do with when the budget is not enough for the node's own. */
  readonly fallback?: string;
  readonly estimate?: { readonly tokens?: number; readonly usd?: number; readonly seconds?: number };
  readonly prices?: Prices;
  /** Of a part of a map: what the budget is called that it has its share of. */
  readonly name?: string;
}

/** By model, or `*` for any other: US dollars for a million tokens that are read, and that are written. */
export type Prices = Readonly<Record<string, { readonly input: number; readonly output: number }>>;

export type Dependency = string | { readonly id: string; readonly on: DependencyOn };
export type DependencyOn = "completed" | "failed" | "done";
export type OnError = "fail_fast" | "fail_branch" | "continue";
export type DlqPolicy = "all" | "non_retryable" | "exhausted" | "none";
export type Join = "none_failed" | "all_success" | "all_done" | "one_success" | `quorum:${number}`;

export interface RetryPolicy {
  readonly max_attempts: number;
  readonly base_delay_seconds: number;
  readonly max_delay_seconds: number;
  readonly exponential_base: number;
  /** 0 to 1: the delay is multiplied by 1 + U(0, jitter). */
  readonly jitter: number;
}

export interface RepeatPolicy {
  readonly until: string;
  readonly every_seconds: number;
  readonly max: number;
}

/** The nodes that the engine runs itself, without a worker. */
export const ENGINE_HANDLERS: ReadonlySet<string> = new Set([
  "input",
  "output",
  "router",
  "map",
  "workflow",
  "wait",
  "delay",
  "review",
  "end",
]);
