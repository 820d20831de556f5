import type { After } from "./given.ts";
import { EACH, type Names } from "./known-options.ts";
import type { Breaker, Budget, Cache, Concurrency, Limit, NodeLimit, WorkflowConcurrency } from "./limits.ts";
import type {
  EndOptions,
  FailOptions,
  FunctionRetryPolicy,
  MapOptions,
  NodeOptions,
  Placing,
  RepeatOptions,
  RetryPolicy,
  ReviewOptions,
  RouterOptions,
  SignalOptions,
  SleepOptions,
  SubOptions,
  TaskOptions,
  Tasks,
  WorkflowOptions,
} from "./options.ts";
import type { StandardSchema } from "./standard-schema.ts";

const PLACING: Names<Placing<unknown, After, unknown, boolean, unknown>> = {
  after: true,
  join: true,
  joinTimeout: true,
  when: true,
  onError: true,
  name: true,
};
const RETRY: Names<RetryPolicy> = { attempts: true, backoff: true, factor: true, max: true, jitter: true };
const FUNCTION_RETRY: Names<FunctionRetryPolicy> = { ...RETRY, retryIf: true };
const LIMIT: Names<Limit> = {
  rate: true,
  per: true,
  burst: true,
  tokensPerMinute: true,
  tokensBurst: true,
  concurrency: true,
  breaker: { failureRate: true, window: true, minCalls: true, openFor: true } satisfies Names<Breaker>,
};
const NODE_LIMIT: Names<Exclude<NodeLimit, string>> = { name: true, cost: true, tokens: true, ...LIMIT };
const CONCURRENCY: Names<Concurrency & WorkflowConcurrency<unknown>> = { limit: true, key: true, onConflict: true };
const CACHE: Names<Cache> = { key: true, ttl: true };
const BUDGET: Names<Budget> = {
  usd: true,
  tokens: true,
  calls: true,
  seconds: true,
  onLimit: true,
  fallback: true,
  estimate: { usd: true, tokens: true, seconds: true } satisfies Names<NonNullable<Budget["estimate"]>>,
  prices: { [EACH]: { input: true, output: true } satisfies Names<NonNullable<Budget["prices"]>[string]> },
  key: true,
};
const TASKS: Names<Tasks> = {
  timeout: true,
  queueTimeout: true,
  queue: true,
  priority: true,
  dlq: true,
  limit: NODE_LIMIT,
  budget: BUDGET,
};
type AnyTask = TaskOptions<unknown, After, unknown, boolean, unknown, StandardSchema>;
type AnyReview = ReviewOptions<unknown, After, unknown, boolean, unknown, StandardSchema>;
const REVIEW: Names<AnyReview> = {
  ...PLACING,
  title: true,
  form: true,
  values: true,
  confidence: true,
  source: true,
  assignees: true,
  fourEyes: true,
  escalate: { after: true, assignees: true } satisfies Names<NonNullable<AnyReview["escalate"]>>,
  expiresIn: true,
  onExpire: { approveWith: true } satisfies Names<Extract<AnyReview["onExpire"], object>>,
};
/** The options of a workflow and of its kinds of nodes. */
export const BUILDER_OPTIONS = {
  workflow: {
    input: true,
    description: true,
    labels: true,
    onError: true,
    timeout: true,
    maxParallelNodes: true,
    retry: RETRY,
    dlq: true,
    priority: true,
    limits: { [EACH]: LIMIT },
    budget: BUDGET,
    concurrency: CONCURRENCY,
  } satisfies Names<WorkflowOptions<StandardSchema>>,
  node: { ...PLACING, ...TASKS, retry: FUNCTION_RETRY, concurrency: CONCURRENCY, cache: CACHE } satisfies Names<
    NodeOptions<unknown, After, unknown, boolean, unknown>
  >,
  repeat: {
    ...PLACING,
    ...TASKS,
    retry: FUNCTION_RETRY,
    concurrency: CONCURRENCY,
    every: true,
    max: true,
  } satisfies Names<RepeatOptions<unknown, After, unknown, boolean, unknown>>,
  map: {
    ...PLACING,
    ...TASKS,
    retry: FUNCTION_RETRY,
    over: true,
    concurrency: true,
    cache: CACHE,
    toleratedFailures: true,
  } satisfies Names<MapOptions<unknown, After, unknown, boolean, unknown, unknown, unknown>>,
  task: {
    ...PLACING,
    ...TASKS,
    handler: true,
    config: true,
    concurrency: CONCURRENCY,
    cache: CACHE,
    output: true,
    retry: RETRY,
    repeat: { until: true, every: true, max: true } satisfies Names<NonNullable<AnyTask["repeat"]>>,
  } satisfies Names<AnyTask>,
  sub: { ...PLACING, input: true } satisfies Names<SubOptions<unknown, After, unknown, boolean, unknown, unknown>>,
  review: REVIEW,
  sleep: { ...PLACING, for: true, until: true } satisfies Names<
    SleepOptions<unknown, After, unknown, boolean, unknown>
  >,
  signal: { ...PLACING, signal: true, data: true, timeout: true } satisfies Names<
    SignalOptions<unknown, After, unknown, boolean, unknown, StandardSchema>
  >,
  router: { ...PLACING, routes: true, else: true, mode: true } satisfies Names<
    RouterOptions<unknown, After, unknown, boolean, unknown, string, string>
  >,
  end: { ...PLACING, output: true } satisfies Names<EndOptions<unknown, After, unknown, boolean, unknown>>,
  fail: { ...PLACING, message: true } satisfies Names<FailOptions<unknown, After, unknown, boolean>>,
};
