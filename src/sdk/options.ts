import type { DlqPolicy } from "../definition/workflow.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Duration } from "./duration.ts";
import type { Expr, Ref } from "./expression.ts";
import type { After, Asked, Embedded, Given } from "./given.ts";
import type { Cache, Concurrency, NodeLimits, WorkflowLimits } from "./limits.ts";
import type { InputOf, StandardSchema } from "./standard-schema.ts";

/** Of a whole workflow. */
export interface WorkflowOptions<S extends StandardSchema> extends WorkflowLimits<InputOf<S>> {
  /** The schema of its input, of any library that speaks Standard Schema. Without it there is no input. */
  readonly input?: S;
  readonly description?: string;
  readonly labels?: JsonObject;
  /**
   * What a failed node does to the rest: stop everything (the default), or skip what depends on it. To let dependants
   * run after a failure, say so on the node: it changes what they are given.
   */
  readonly onError?: "fail_fast" | "fail_branch";
  /** How long a run may take in all; 7 days by default, 0 = no limit. */
  readonly timeout?: Duration;
  /** How many nodes of one run may be queued or running at once. */
  readonly maxParallelNodes?: number;
  /** The retry policy of nodes that do not say otherwise. */
  readonly retry?: Retry;
  readonly dlq?: DlqPolicy;
  readonly priority?: number;
}

/** How often a node is tried in all, and how long the waits are; 3 times, 1 s, doubled each time, by default. */
export type Retry = number | RetryPolicy;

export interface RetryPolicy {
  readonly attempts?: number;
  /** The wait before the second attempt. */
  readonly backoff?: Duration;
  /** Each wait is this many times the one before. */
  readonly factor?: number;
  /** The longest wait. */
  readonly max?: Duration;
  /** By which part a wait may be longer, at random: 0 to 1. */
  readonly jitter?: number | boolean;
}

/** Of a node that runs a function: which errors are worth another attempt. */
export interface FunctionRetryPolicy extends RetryPolicy {
  readonly retryIf?: (error: unknown) => boolean;
}

/** Where a node stands and when it runs. */
export interface Placing<I, D extends After, J, W extends boolean, E> {
  /** What it comes after. The names are those under which its functions are given the values. */
  readonly after?: D & { readonly input?: never; readonly ctx?: never };
  /** When it runs, given how what it comes after ended. */
  readonly join?: J;
  /** How long it waits for the others once the first has finished. */
  readonly joinTimeout?: Duration;
  /** If this is false it is skipped, and dependants are given undefined. A function runs in a worker, as a task of its own. */
  readonly when?: Asked<I, D, J, W>;
  /** As on the workflow; with "continue" dependants run after a failure too, and are given a Result. */
  readonly onError?: E;
  /** What people call it. */
  readonly name?: string;
}

/** How its tasks are handed to workers. */
export interface Tasks extends Pick<NodeLimits, "limit" | "budget"> {
  /** How long one attempt may run; 30 s by default. */
  readonly timeout?: Duration;
  /** How long a task may wait for a worker; a day by default. */
  readonly queueTimeout?: Duration;
  /** Only workers that name this queue take them. */
  readonly queue?: string;
  readonly priority?: number;
  readonly dlq?: DlqPolicy;
}

interface FunctionOptions<I, D extends After, J, W extends boolean, E> extends Placing<I, D, J, W, E>, Tasks {
  readonly retry?: number | FunctionRetryPolicy;
}

export interface NodeOptions<I, D extends After, J, W extends boolean, E> extends FunctionOptions<I, D, J, W, E> {
  /** How many of its tasks may be under way at a time, in all runs. */
  readonly concurrency?: Concurrency;
  /** The same work is done once. Its code is no part of what makes it the same: a changed function needs another key. */
  readonly cache?: boolean | Cache;
}

export interface RepeatOptions<I, D extends After, J, W extends boolean, E> extends FunctionOptions<I, D, J, W, E> {
  readonly concurrency?: Concurrency;
  /** The wait between two rounds; 10 s by default. */
  readonly every?: Duration;
  /** The number of rounds after which it fails; 100 by default. */
  readonly max?: number;
}

export interface MapOptions<I, D extends After, J, W extends boolean, E, Item, F> extends FunctionOptions<
  I,
  D,
  J,
  W,
  E
> {
  /** The items. A function runs in a worker and may give 1 MiB; an expression runs in the engine. */
  readonly over: Asked<I, D, J, readonly Item[]> | readonly Item[];
  /** How many items may be under way at once in a run; 10 by default. For all runs together: `limit: { concurrency }`. */
  readonly concurrency?: number;
  /** Of each item. */
  readonly cache?: boolean | Cache;
  /** How many items may fail, or which part of them, such as "10%"; their places hold null. */
  readonly toleratedFailures?: F;
}

export interface TaskOptions<I, D extends After, J, W extends boolean, E, S extends StandardSchema>
  extends Placing<I, D, J, W, E>, Tasks {
  /** A built-in handler such as "http" or "llm", or the name under which a worker registered its own. */
  readonly handler: string;
  readonly config?: Config;
  readonly concurrency?: Concurrency;
  /** The same work is done once. */
  readonly cache?: boolean | Cache;
  /** What it gives; `type<T>()` if it need not be checked. */
  readonly output?: S;
  readonly retry?: Retry;
  readonly repeat?: {
    readonly until: (self: Ref<NonNullable<S["~standard"]["types"]>["output"]>) => Expr<boolean>;
    readonly every?: Duration;
    readonly max?: number;
  };
}

/** The config of a handler: plain data with expressions in it. */
export interface Config {
  readonly [key: string]: ConfigValue;
}
type ConfigValue = Json | Expr<unknown> | readonly ConfigValue[] | Config | undefined;

export interface SubOptions<I, D extends After, J, W extends boolean, E, In> extends Placing<I, D, J, W, E> {
  readonly input: Asked<I, D, J, In> | Embedded<In>;
}

interface ByField {
  readonly [field: string]: Json | Expr<unknown>;
}

/** Some of the fields that a form asks for. */
type Proposed<I, D extends After, J, S extends StandardSchema> =
  | Embedded<Some<InputOf<S>>>
  | Asked<I, D, J, Some<InputOf<S>>>;
type Some<T> = T extends object ? { readonly [Field in keyof T]?: T[Field] } : never;

export interface ReviewOptions<I, D extends After, J, W extends boolean, E, S extends StandardSchema> extends Placing<
  I,
  D,
  J,
  W,
  E
> {
  readonly title: string | Asked<I, D, J, string>;
  /** What the person fills in. */
  readonly form?: S;
  /** What is proposed for the fields of the form. Who approves without data takes it; what is changed is locked. */
  readonly values?: Proposed<I, D, J, S>;
  /** How sure somebody is of each field, and where it was found: shown beside what is proposed. */
  readonly confidence?: ByField | Asked<I, D, J, Json>;
  readonly source?: ByField | Asked<I, D, J, Json>;
  readonly assignees?: readonly string[] | Asked<I, D, J, readonly string[]>;
  /** Two different people have to decide; the second one's word counts. */
  readonly fourEyes?: boolean;
  /** Who else is asked if nobody has decided after a while. */
  readonly escalate?: { readonly after: Duration; readonly assignees: readonly string[] };
  /** 7 days by default. */
  readonly expiresIn?: Duration;
  /** What holds if nobody decides in time: it fails (the default), is rejected, or is approved with this data. */
  readonly onExpire?: "fail" | "reject" | { readonly approveWith: Json };
}

/** One of the two. */
export interface SleepOptions<I, D extends After, J, W extends boolean, E> extends Placing<I, D, J, W, E> {
  /** How long. An expression gives milliseconds. */
  readonly for?: Duration | Expr<number> | ((given: Given<I, D, J>) => Duration | Promise<Duration>);
  /** Until when: a date, or a text such as "2030-01-31T09:00:00Z". */
  readonly until?: Date | string | Expr<string> | ((given: Given<I, D, J>) => Date | string | Promise<Date | string>);
}

export interface SignalOptions<I, D extends After, J, W extends boolean, E, S extends StandardSchema> extends Placing<
  I,
  D,
  J,
  W,
  E
> {
  /** By default the id of the node. */
  readonly signal?: string;
  /** What the signal brings. */
  readonly data?: S;
  /** 7 days by default. */
  readonly timeout?: Duration;
}

export interface RouterOptions<
  I,
  D extends After,
  J,
  W extends boolean,
  E,
  Routes extends string,
  Else extends string,
> extends Placing<I, D, J, W, E> {
  /** Asked in this order. Nodes that come after `router.routes.name` run if it is chosen, and are skipped if not. */
  readonly routes: { readonly [Route in Routes]: Asked<I, D, J, boolean> };
  /** The route that is taken if none fits. */
  readonly else?: Else;
  /** The first that fits (the default), or all that do. */
  readonly mode?: "exclusive" | "inclusive";
}

export interface EndOptions<I, D extends After, J, W extends boolean, T> extends Placing<I, D, J, W, undefined> {
  /** The result of the run. */
  readonly output?: Asked<I, D, J, T> | Embedded<T>;
}

export interface FailOptions<I, D extends After, J, W extends boolean> extends Placing<I, D, J, W, undefined> {
  readonly message: string | Expr<string>;
}
