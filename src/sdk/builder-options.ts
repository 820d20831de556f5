import type { After } from "./given.ts";
import type { Names } from "./known-options.ts";
import type {
  EndOptions,
  FailOptions,
  MapOptions,
  NodeOptions,
  Placing,
  RepeatOptions,
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
const TASKS: Names<Tasks> = {
  timeout: true,
  queueTimeout: true,
  queue: true,
  priority: true,
  dlq: true,
  limit: true,
  budget: true,
};
const REVIEW: Names<ReviewOptions<unknown, After, unknown, boolean, unknown, StandardSchema>> = {
  ...PLACING,
  title: true,
  form: true,
  values: true,
  confidence: true,
  source: true,
  assignees: true,
  fourEyes: true,
  escalate: true,
  expiresIn: true,
  onExpire: true,
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
    retry: true,
    dlq: true,
    priority: true,
    limits: true,
    budget: true,
    concurrency: true,
  } satisfies Names<WorkflowOptions<StandardSchema>>,
  node: { ...PLACING, ...TASKS, retry: true, concurrency: true, cache: true } satisfies Names<
    NodeOptions<unknown, After, unknown, boolean, unknown>
  >,
  repeat: { ...PLACING, ...TASKS, retry: true, concurrency: true, every: true, max: true } satisfies Names<
    RepeatOptions<unknown, After, unknown, boolean, unknown>
  >,
  map: {
    ...PLACING,
    ...TASKS,
    retry: true,
    over: true,
    concurrency: true,
    cache: true,
    toleratedFailures: true,
  } satisfies Names<MapOptions<unknown, After, unknown, boolean, unknown, unknown, unknown>>,
  task: {
    ...PLACING,
    ...TASKS,
    handler: true,
    config: true,
    concurrency: true,
    cache: true,
    output: true,
    retry: true,
    repeat: true,
  } satisfies Names<TaskOptions<unknown, After, unknown, boolean, unknown, StandardSchema>>,
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
