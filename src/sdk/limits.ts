import type { Json, JsonObject } from "../json/json.ts";
import { type Duration, durationSeconds } from "./duration.ts";
import type { Expr, Ref } from "./expression.ts";

/** What something is counted or kept by: each value has its own. */
type Key = string | Expr<unknown>;
/** Of a whole workflow, where nothing is there yet but the input. */
type InputKey<In> = string | ((input: Ref<In>) => Expr<unknown>);

/** A limit that nodes share: a rate, a number of places, a breaker, or several of them. */
export interface Limit {
  readonly rate?: number;
  /** The time that `rate` is about; a second by default. */
  readonly per?: "second" | "minute" | "hour";
  /** How many may go out at once after a quiet time; what the rate gives in a second, by default. */
  readonly burst?: number;
  /** LLM tokens: reserved by an estimate, settled by what was used. */
  readonly tokensPerMinute?: number;
  readonly tokensBurst?: number;
  /** How many tasks may be under way at a time. */
  readonly concurrency?: number;
  /** Lets nothing through for a while once too many calls have failed. */
  readonly breaker?: boolean | Breaker;
}

export interface Breaker {
  /** Which part of the last calls must have failed: 0 to 1; half of them by default. */
  readonly failureRate?: number;
  /** How many of the last calls count; 20 by default. */
  readonly window?: number;
  /** Of fewer calls nothing is concluded; 10 by default. */
  readonly minCalls?: number;
  /** 30 s by default. */
  readonly openFor?: Duration;
}

/** The name of a limit of the workflow or of the server's settings, or a limit of the node's own. */
export type NodeLimit =
  | string
  | (Taking & { readonly name: string } & { readonly [Field in keyof Limit]?: never })
  | (Taking & Limit & { readonly name?: never });

interface Taking {
  /** How much of the rate one task takes; 1 by default. */
  readonly cost?: number;
  /** How many LLM tokens one task may use; by default an estimate by what it is given. */
  readonly tokens?: number;
}

/** How many tasks of a node may be under way at a time, in all runs. */
export interface Concurrency {
  readonly limit: number;
  readonly key?: Key;
  /** A task for which there is no room waits (the default), or its node fails. */
  readonly onConflict?: "queue" | "reject";
}

/** How many runs of a workflow may be under way at a time. */
export interface WorkflowConcurrency<In> {
  readonly limit: number;
  readonly key?: InputKey<In>;
  /** A run for which there is no room waits (the default), has the oldest cancelled, or fails. */
  readonly onConflict?: "queue" | "cancel_old" | "reject";
}

/** What may be used up in all: at least one of the amounts. */
interface BudgetTerms {
  readonly usd?: number;
  readonly tokens?: number;
  readonly calls?: number;
  readonly seconds?: number;
  /** What becomes of a task for which too little is left; its node fails by default. */
  readonly onLimit?: "fail" | "fallback" | "pause";
  /** The model to use then. */
  readonly fallback?: string;
  /** What one task is thought to use. */
  readonly estimate?: { readonly usd?: number; readonly tokens?: number; readonly seconds?: number };
  /** US dollars for a million tokens, by model. */
  readonly prices?: { readonly [model: string]: { readonly input?: number; readonly output?: number } };
}

/** Of one run, or of all with the same key. */
export interface Budget extends BudgetTerms {
  readonly key?: Key;
}

export interface WorkflowBudget<In> extends BudgetTerms {
  readonly key?: InputKey<In>;
}

export interface Cache {
  /** What makes two pieces of work of this node the same; by default all that it is given. */
  readonly key?: Key;
  /** How long an output may be used again; a day by default. */
  readonly ttl?: Duration;
}

/** Of a node whose tasks workers run. */
export interface NodeLimits {
  readonly limit?: NodeLimit;
  readonly concurrency?: Concurrency | number;
  readonly budget?: Budget;
  readonly cache?: boolean | Cache;
}

export interface WorkflowLimits<In> {
  readonly limits?: { readonly [name: string]: Limit };
  readonly budget?: WorkflowBudget<In>;
  readonly concurrency?: WorkflowConcurrency<In>;
}

type Embed = (value: unknown) => Json;

/** As a definition holds them. A number for `concurrency` is that of a map, and stands elsewhere. */
export function nodeLimitFields({ limit, concurrency, budget, cache }: NodeLimits, embed: Embed): JsonObject {
  return {
    ...(limit !== undefined && { limit: typeof limit === "string" ? limit : nodeLimitField(limit) }),
    ...(typeof concurrency === "object" && { concurrency: concurrencyFields(concurrency, embed) }),
    ...(budget !== undefined && { budget: budgetFields(budget, embed) }),
    ...(cache !== undefined && { cache: typeof cache === "boolean" ? cache : cacheFields(cache, embed) }),
  };
}

export function workflowLimitFields<In>(
  { limits, budget, concurrency }: WorkflowLimits<In>,
  input: Ref<In>,
  embed: Embed,
): JsonObject {
  const keyed = (key: unknown): Json =>
    embed(typeof key === "function" ? (key as (input: Ref<In>) => unknown)(input) : key);
  return {
    ...(limits !== undefined && {
      limits: Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, limitFields(limit)])),
    }),
    ...(budget !== undefined && { budget: budgetFields(budget, keyed) }),
    ...(concurrency !== undefined && { concurrency: concurrencyFields(concurrency, keyed) }),
  };
}

/** The names that nodes use and their workflow does not define. */
export function foreignLimits(nodes: readonly JsonObject[], own: object = {}): readonly string[] {
  const names = nodes.map(({ limit }) => (typeof limit === "object" ? (limit as JsonObject | null)?.["name"] : limit));
  return names.filter((name): name is string => typeof name === "string" && !Object.hasOwn(own, name));
}

function nodeLimitField({ name, cost, tokens, ...limit }: Exclude<NodeLimit, string>): JsonObject {
  return given({ name, cost, tokens, ...limitFields(limit) });
}

function limitFields({ tokensPerMinute, tokensBurst, breaker, ...limit }: Limit): JsonObject {
  return given({
    ...limit,
    tokens_per_minute: tokensPerMinute,
    tokens_burst: tokensBurst,
    breaker: typeof breaker === "object" ? breakerFields(breaker) : breaker,
  });
}

function breakerFields({ failureRate, minCalls, openFor, ...breaker }: Breaker): JsonObject {
  return given({
    ...breaker,
    failure_rate: failureRate,
    min_calls: minCalls,
    open_seconds: openFor === undefined ? undefined : durationSeconds(openFor, "openFor"),
  });
}

function concurrencyFields(
  { key, onConflict, ...rest }: Concurrency | WorkflowConcurrency<never>,
  embed: Embed,
): JsonObject {
  return given({ ...rest, key: keyField(key, embed), on_conflict: onConflict });
}

function budgetFields({ key, onLimit, ...rest }: Budget | WorkflowBudget<never>, embed: Embed): JsonObject {
  return given({ ...rest, key: keyField(key, embed), on_limit: onLimit });
}

function cacheFields({ key, ttl, ...rest }: Cache, embed: Embed): JsonObject {
  const seconds = ttl === undefined ? undefined : durationSeconds(ttl, "ttl");
  return given({ ...rest, key: keyField(key, embed), ttl_seconds: seconds });
}

function keyField(key: unknown, embed: Embed): Json | undefined {
  return key === undefined ? undefined : embed(key);
}

/** Without what was not said. */
function given(fields: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}
