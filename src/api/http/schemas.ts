import { z } from "zod";
import { isLongerThan } from "../../json/characters.ts";
import {
  DEFAULT_LEASE_SECONDS,
  DEFAULT_BATCH_CONCURRENCY,
  DEFAULT_PAGE,
  MAX_BATCH_CONCURRENCY,
  MAX_BATCH_ITEMS,
  MAX_BULK_REPLAYS,
  MAX_BULK_STARTS,
  MAX_LEASE_SECONDS,
  MAX_LEASE_WAIT_MS,
  MAX_LEASED,
  MAX_PAGE,
  MAX_QUEUES,
  MAX_RESULTS,
} from "../limits.ts";
import { ITEM_STATUSES } from "../service/batches.ts";
import { OWN_LABEL_RULE, parseLabels } from "../service/labels.ts";
import {
  LABEL_NAME,
  LABEL_NAME_RULE,
  LABEL_VALUE,
  LABEL_VALUE_RULE,
  MAX_LABELS,
  OWN_LABELS,
} from "../../definition/labels.ts";
import { NODE_STATUSES, type Status, STATUSES } from "../service/executions.ts";

/** Any JSON. (`z.json()` makes a recursive schema that OpenAPI tools refuse.) */
export const anyJson = z.unknown();
const time = z.iso.datetime().meta({ description: "ISO 8601, UTC, with milliseconds" });
const statuses = Object.keys(STATUSES) as [Status, ...Status[]];

// ── query parameters: all are text when they arrive ───────────────────────────────────────────────────────────────

/** Nothing is not taken for a yes or a no: `?dry_run` must not do what it was to try. */
const flag = z
  .enum(["true", "false", "1", "0"])
  .transform((text) => text === "true" || text === "1")
  .optional();

const pageFields = {
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, `must be a number from 1 to ${MAX_PAGE}`)
    .transform(Number)
    .refine((limit) => limit <= MAX_PAGE, `must be a number from 1 to ${MAX_PAGE}`)
    .default(DEFAULT_PAGE)
    .meta({ description: `1 to ${MAX_PAGE}, default ${DEFAULT_PAGE}` }),
  cursor: z.string().optional().meta({ description: "next_cursor of the page before" }),
};

const name = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}]*$/u, "must not contain control characters");
/** As long as the name of a workflow may be, in characters: Zod would count UTF-16 units. */
export const shortName = name
  .refine((text) => !isLongerThan(text, 128), "must have at most 128 characters")
  .meta({ maxLength: 128 });

export const pageQuery = z.strictObject(pageFields);
export const executionsQuery = z.strictObject({
  ...pageFields,
  status: z.enum(statuses).optional(),
  workflow: name.optional(),
  since: z.iso
    .datetime({ offset: true })
    .transform((text) => Date.parse(text))
    .optional()
    .meta({ description: "Created then or later" }),
  label: z
    .string()
    .refine((text) => parseLabels(text) !== undefined, "must be name=value, or several joined by commas")
    .transform((text) => parseLabels(text)!)
    .optional()
    .meta({ description: "name=value; of several, joined by commas, all" }),
});
export const nodesQuery = z.strictObject({ ...pageFields, status: z.enum(NODE_STATUSES).optional() });
export const eventsQuery = z.strictObject({ ...pageFields, after: z.string().optional() });
/** Of lists that are given as a whole unless a page is asked for. */
export const partFields = {
  limit: pageFields.limit
    .unwrap()
    .optional()
    .meta({ description: `1 to ${MAX_PAGE}, default all` }),
  cursor: pageFields.cursor,
};
export const explainQuery = z.strictObject({ ...partFields, node: z.string().optional() });
export const submitQuery = z.strictObject({ start: flag, allow_missing_handlers: flag });
export const validateQuery = z.strictObject({ allow_missing_handlers: flag });
export const retryQuery = z.strictObject({ dry_run: flag });
export const lettersQuery = z.strictObject({
  ...pageFields,
  queue: name.optional(),
  class: z.enum(["poison", "exhausted"]).optional(),
  execution_id: name.optional(),
  status: z.enum(["open", "replayed"]).optional(),
});
export const reviewsQuery = z.strictObject({ ...pageFields, assignee: name.optional() });
export const examplesQuery = z.strictObject({ ...pageFields, workflow: name.optional() });
export const batchItemsQuery = z.strictObject({ ...pageFields, status: z.enum(ITEM_STATUSES).optional() });
export const noQuery = z.strictObject({});

// ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const emptyBody = z.strictObject({});
export const labels = z
  .record(z.string().regex(LABEL_NAME, LABEL_NAME_RULE), z.string().regex(LABEL_VALUE, LABEL_VALUE_RULE))
  .refine((given) => Object.keys(given).length <= MAX_LABELS, `must have at most ${MAX_LABELS} entries`)
  .refine((given) => !Object.keys(given).some((name) => name.startsWith(OWN_LABELS)), OWN_LABEL_RULE)
  .optional()
  .meta({ description: "Names and values to find it by" });
export const triggerBody = z.strictObject({ input_params: anyJson.optional(), labels });
export const version = z.union([z.number().int().min(1), z.string().min(1).max(128)]).optional();
export const startBody = z
  .strictObject({
    input_params: anyJson.optional(),
    inputs: z.array(anyJson).min(1).max(MAX_BULK_STARTS).optional().meta({ description: "Several executions at once" }),
    version,
    labels,
  })
  .refine((body) => body.inputs === undefined || body.input_params === undefined, {
    message: 'must not have both "inputs" and "input_params"',
  });
export const batchBody = z.strictObject({
  workflow: shortName,
  version,
  items: z.array(anyJson).min(1).max(MAX_BATCH_ITEMS).meta({ description: "The input of each execution" }),
  concurrency: z
    .number()
    .int()
    .min(1)
    .max(MAX_BATCH_CONCURRENCY)
    .optional()
    .meta({ description: `How many run at a time, default ${DEFAULT_BATCH_CONCURRENCY}` }),
  labels,
});
export const retryBody = z.strictObject({
  from: z.string().min(1).max(256).optional(),
  scope: z.enum(["failed", "descendants", "node"]).optional(),
  config: z.record(z.string(), anyJson).optional(),
  input_params: anyJson.optional(),
});
export const forkBody = z.strictObject({
  from: z.string().min(1).max(256).optional(),
  input_params: anyJson.optional(),
});
export const signalBody = z.strictObject({ name: shortName, data: anyJson.optional() });
export const reviewBody = z.strictObject({
  decision: z.enum(["approve", "reject"]),
  data: anyJson.optional(),
  comment: z.string().max(10_000).optional(),
});
export const assignBody = z.strictObject({
  assignees: z.array(name).max(100).meta({ description: "Who is to decide; none: anybody" }),
});
export const replayOneBody = z.strictObject({
  config: z
    .record(z.string(), anyJson)
    .optional()
    .meta({ description: "Another config for the node; needs a key with the role admin" }),
});
export const replayBody = z.strictObject({
  filter: z
    .strictObject({
      queue: name.optional(),
      class: z.enum(["poison", "exhausted"]).optional(),
      execution_id: name.optional(),
    })
    .optional(),
  limit: z.number().int().min(1).max(MAX_BULK_REPLAYS).optional(),
  dry_run: z.boolean().optional(),
});
const queues = z.array(shortName).min(1).max(MAX_QUEUES).optional();
export const leaseBody = z
  .strictObject({
    worker_id: shortName.regex(/^[^:]*$/, "must not contain a colon"),
    handlers: queues,
    queues,
    max: z.number().int().min(1).max(MAX_LEASED).default(1),
    wait_ms: z.number().int().min(0).max(MAX_LEASE_WAIT_MS).default(0),
    lease_seconds: z.number().min(0.1).max(MAX_LEASE_SECONDS).default(DEFAULT_LEASE_SECONDS),
  })
  .refine((body) => (body.handlers === undefined) !== (body.queues === undefined), {
    message: 'must have exactly one of "handlers" and "queues"',
  });
export const token = z.string().min(1).max(8_192);
export const usage = z
  .record(z.string(), anyJson)
  .optional()
  .meta({ description: "What it has cost, in the handler's own terms" });
export const close_limit_seconds = z
  .number()
  .min(0)
  .max(31_536_000)
  .optional()
  .meta({ description: "Whoever was called has no more to give for so long: the node's limits let nothing through" });
export const reported = z.strictObject({
  code: z.string().min(1).max(128).optional(),
  message: z.string().optional(),
  retryable: z.boolean().optional(),
  retry_after_seconds: z.number().min(0).max(31_536_000).optional(),
  details: anyJson.optional(),
});
const ONE_OF = { message: 'must have exactly one of "token" and "results"' };
const isOneOf = (body: { token?: unknown; results?: unknown }): boolean =>
  (body.token === undefined) !== (body.results === undefined);

export const completeBody = z
  .strictObject({
    token: token.optional(),
    output: anyJson.optional(),
    usage,
    close_limit_seconds,
    results: z
      .array(z.strictObject({ token, output: anyJson.optional(), usage, close_limit_seconds }))
      .max(MAX_RESULTS)
      .optional(),
  })
  .refine(isOneOf, ONE_OF);
export const failBody = z
  .strictObject({
    token: token.optional(),
    error: reported.optional(),
    usage,
    close_limit_seconds,
    results: z
      .array(z.strictObject({ token, error: reported, usage, close_limit_seconds }))
      .max(MAX_RESULTS)
      .optional(),
  })
  .refine(isOneOf, ONE_OF)
  .refine((body) => body.token === undefined || body.error !== undefined, { message: 'must have "error"' });
export const handBackBody = z
  .strictObject({
    token: token.optional(),
    results: z.array(z.strictObject({ token })).max(MAX_RESULTS).optional(),
  })
  .refine(isOneOf, ONE_OF);
export const workerId = shortName.regex(/^[^:]*$/, "must not contain a colon");
export const heldTokens = z.array(token).max(MAX_LEASED);
export const heartbeatBody = z.strictObject({ worker_id: workerId, tokens: heldTokens });
export const definitionBody = z.union([
  z.strictObject({ definition: z.record(z.string(), anyJson), input_params: anyJson.optional(), labels }),
  z.record(z.string(), anyJson).meta({ description: "A workflow, see /schema/workflow.json of the package" }),
]);

// ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────

export const fault = z.looseObject({
  code: z.string(),
  path: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  line: z.number().optional(),
  column: z.number().optional(),
});
export const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  code: z.string(),
  detail: z.string(),
  errors: z.array(fault).optional(),
  execution: anyJson.optional(),
});
const errorValue = z.looseObject({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  details: anyJson.optional(),
});

export function listOf(item: z.ZodType): z.ZodType {
  return z.looseObject({ items: z.array(item), next_cursor: z.string().nullable() });
}

const incomplete = z.enum(["archive_unavailable"]).optional().meta({
  description: "Only while the archive does not answer: what it alone has is missing",
});

/** Of what the archive has too. */
export function archivedListOf(item: z.ZodType): z.ZodType {
  return z.looseObject({ items: z.array(item), next_cursor: z.string().nullable(), incomplete });
}

export const submitted = z.looseObject({
  workflow_definition_id: z.string(),
  name: z.string(),
  version: z.number(),
  execution_id: z.string(),
  status: z.enum(["PENDING", "RUNNING"]),
  warnings: z.array(fault).optional(),
});
export const validation = z.looseObject({ valid: z.boolean(), errors: z.array(fault), warnings: z.array(fault) });
export const forked = z.looseObject({
  execution_id: z.string(),
  status: z.literal("RUNNING"),
  forked_from: z.string(),
  kept: z.array(z.string()),
});
export const started = z.union([
  z.looseObject({ execution_id: z.string(), status: z.literal("RUNNING") }),
  z.looseObject({
    items: z.array(z.union([z.looseObject({ execution_id: z.string() }), z.looseObject({ error: errorValue })])),
  }),
]);
export const startedBatch = z.looseObject({
  batch_id: z.string(),
  status: z.literal("RUNNING"),
  total: z.number(),
});
export const commandedBatch = z.looseObject({ batch_id: z.string(), status: z.string(), generation: z.number() });
export const shownBatch = z.looseObject({
  batch_id: z.string(),
  workflow: z.string(),
  workflow_definition_id: z.string(),
  status: z.enum(statuses),
  generation: z.number(),
  concurrency: z.number(),
  total: z.number(),
  completed: z.number(),
  failed: z.number(),
  running: z.number(),
  pending: z.number(),
  cancelled: z.number(),
  labels: z.record(z.string(), z.string()),
  created_at: time,
  finished_at: time.nullable(),
});
export const listedBatch = z.looseObject({
  batch_id: z.string(),
  status: z.enum(statuses).meta({ description: "Of the batch itself; it completes whatever becomes of its items" }),
  created_at: time,
  finished_at: time.nullable(),
});
export const batchItem = z.looseObject({
  index: z.number(),
  status: z.enum(ITEM_STATUSES),
  execution_id: z.string().nullable(),
  error: errorValue.nullable(),
  output: anyJson,
});
export const commanded = z.looseObject({ execution_id: z.string(), status: z.string(), generation: z.number() });
export const released = z.looseObject({ released: z.literal(true) });
export const triggered = z.looseObject({ execution_id: z.string(), status: z.string() });
export const dryRun = z.looseObject({ rerun: z.array(z.string()), kept: z.array(z.string()) });
const batchStatus = z
  .enum(statuses)
  .optional()
  .meta({ description: "Of a batch: by its items. As an execution it is COMPLETED, whatever became of them" });
export const listedExecution = z.looseObject({
  execution_id: z.string(),
  workflow: z.string(),
  status: z.enum(statuses),
  batch_status: batchStatus,
  created_at: time,
  finished_at: time.nullable(),
});
const nodeFields = {
  status: z.enum(NODE_STATUSES),
  attempt: z.number(),
  deliveries: z.number(),
  output: anyJson,
  error: errorValue.nullable(),
  reason: z.string().nullable(),
  until: time.nullable(),
  queued_at: time.nullable(),
  started_at: time.nullable(),
  finished_at: time.nullable(),
  usage: anyJson,
  child_execution_id: z.string().nullable(),
  cached_from: z.string().optional(),
  iteration: z.number().optional(),
  items: z.looseObject({ total: z.number(), completed: z.number(), failed: z.number() }).optional(),
};
export const shownNode = z.looseObject({ node_id: z.string(), ...nodeFields });
export const shownExecution = z.looseObject({
  execution_id: z.string(),
  workflow: z.string(),
  version: z.number().nullable(),
  workflow_definition_id: z.string(),
  status: z.enum(statuses),
  batch_status: batchStatus,
  generation: z.number(),
  seq: z.number(),
  labels: z.record(z.string(), z.string()),
  input: anyJson,
  output: anyJson,
  error: errorValue.extend({ node_id: z.string().optional() }).nullable(),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
  retryable_from: z.array(z.string()).optional(),
  nodes: z.record(z.string(), z.looseObject(nodeFields)).optional(),
  nodes_omitted: z.number().optional(),
});
export const shownEvent = z.looseObject({
  seq: z.number(),
  type: z.string(),
  at: time,
  node_id: z.string().optional(),
  attempt: z.number().optional(),
  data: z.record(z.string(), anyJson),
});
export const explanation = z.looseObject({
  node_id: z.string(),
  reason: z.string(),
  sentence: z.string(),
  until: time.optional(),
  details: z.record(z.string(), anyJson),
});
export const shownLetter = z.looseObject({
  id: z.string(),
  class: z.enum(["poison", "exhausted"]),
  queue: z.string(),
  execution_id: z.string().nullable(),
  generation: z.number().nullable(),
  node_id: z.string().nullable(),
  handler: z.string().nullable(),
  attempts: z.number(),
  error: anyJson,
  config: anyJson,
  original_message_id: z.string(),
  rejected_at: time,
  status: z.enum(["open", "replayed"]),
});
export const counted = z.looseObject({ count: z.number(), incomplete });
export const shownReview = z.looseObject({
  id: z.string(),
  status: z.enum(["open", "closed"]),
  execution_id: z.string(),
  generation: z.number(),
  node_id: z.string(),
  workflow: z.string(),
  title: z.string().nullable(),
  form: anyJson,
  assignees: z.array(z.string()),
  values: anyJson.meta({ description: "By field: what was proposed" }),
  confidence: anyJson,
  source: anyJson,
  four_eyes: z.boolean().meta({ description: "Two different people have to decide; the second one's word counts" }),
  first: anyJson.meta({ description: "What the first of two has decided" }),
  opened_at: time.nullable(),
  escalates_at: time.nullable(),
  due_at: time.nullable(),
});
export const shownExample = z.looseObject({
  id: z.string(),
  execution_id: z.string(),
  generation: z.number(),
  node_id: z.string(),
  workflow: z.string(),
  title: z.string().nullable(),
  values: anyJson,
  confidence: anyJson,
  source: anyJson,
  decision: z.string(),
  data: anyJson,
  locks: z.array(z.string()),
  by: z.string(),
  at: time,
  comment: z.string().nullable(),
  first: anyJson.optional(),
  data_omitted: z.literal(true).optional(),
});
export const namedVersion = z.looseObject({
  name: z.string(),
  version: z.number(),
  workflow_definition_id: z.string(),
});
export const storedDefinition = z.record(z.string(), anyJson);
export const shownWorkflow = namedVersion.extend({
  definition: storedDefinition,
  entry_points: z.array(z.string()),
  terminal_points: z.array(z.string()),
  levels: z.array(z.array(z.string())),
});
const shownTask = z.looseObject({
  task_id: z.string(),
  token: z.string(),
  execution_id: z.string(),
  node_id: z.string(),
  handler: z.string(),
  attempt: z.number(),
  generation: z.number(),
  config: anyJson,
  idempotency_key: z.string(),
  deadline: time,
  timeout_seconds: z.number(),
  item: z.number().optional(),
  iteration: z.number().optional(),
  inputs: anyJson.optional(),
  secrets: z.array(z.string()).optional(),
});
export const leased = z.looseObject({
  tasks: z.array(shownTask),
  lease_seconds: z.number(),
  heartbeat_seconds: z.number(),
});
export const settled = z.union([
  z.looseObject({ accepted: z.boolean(), recorded: z.boolean().optional() }),
  z.looseObject({
    results: z.array(z.looseObject({ token: z.string(), accepted: z.boolean(), code: z.string().optional() })),
  }),
]);
export const cancelledTokens = z.looseObject({ cancelled: z.array(z.string()) });
export const shownWorker = z.looseObject({
  worker_id: z.string(),
  handlers: z.array(z.string()),
  queues: z.array(z.string()),
  degraded: z.boolean().optional().meta({ description: "Handlers that do not stop when asked keep some of its slots" }),
  not_stopping: z
    .array(z.looseObject({ handler: z.string(), execution_id: z.string(), node_id: z.string(), attempt: z.number() }))
    .optional()
    .meta({ description: "The first of these handlers" }),
  slots_kept: z.number().optional().meta({ description: "How many there are" }),
  stuck_queues: z
    .array(z.string())
    .optional()
    .meta({ description: "Queues from which it takes nothing until one of them ends" }),
});
export const shownQueue = z.looseObject({
  name: z.string(),
  queued: z.number().meta({ description: "Tasks that wait for a worker" }),
  oldest_seconds: z.number().nullable().meta({ description: "How long the oldest of them waits" }),
  leased: z.number().meta({ description: "Tasks that workers have" }),
  workers: z.number().meta({ description: "Workers that are alive and serve it" }),
  stuck_workers: z
    .number()
    .meta({ description: "Those of them that take nothing, since handlers that do not stop keep all their slots" }),
});
export const shownLimit = z.looseObject({
  name: z.string(),
  kind: z.string(),
  limit: z
    .number()
    .nullable()
    .meta({ description: "Of a rate, of calls or of tokens: how many in `window_seconds`; else how many at a time" }),
  id: z.string().optional().meta({ description: "Of a limit of workflows: what trip, reset and override take" }),
  key: z.string().nullable().optional(),
  window_seconds: z.number().optional(),
  burst: z.number().optional(),
  budget: z
    .record(z.string(), z.looseObject({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() }))
    .optional()
    .meta({ description: "Of a budget, by unit: what may be used, was used, and is kept for what is under way" }),
  in_use: z.number().optional().meta({ description: "Granted and not given back; of a rate: not known to have begun" }),
  waiting: z.number().optional(),
  until: z.string().nullable().optional().meta({ description: "Until when nothing goes through, if that is known" }),
  tripped: z.boolean().optional().meta({ description: "Closed by a person" }),
  overridden: z.boolean().optional().meta({ description: "A person's rule goes before that of the definitions" }),
});
const amounts = {
  usd: z.number().positive().max(1e12).optional(),
  tokens: z.number().positive().max(1e12).optional(),
  calls: z.number().positive().max(1e12).optional(),
  seconds: z.number().positive().max(1e12).optional(),
};
export const overrideBody = z
  .strictObject({
    rate: z.number().positive().max(1_000_000).optional(),
    per: z.enum(["second", "minute", "hour"]).optional(),
    burst: z.int().min(1).max(1_000_000).optional(),
    concurrency: z.int().min(1).max(1_000_000).optional(),
    tokens_per_minute: z.number().positive().max(1e12).optional(),
    tokens_burst: z.int().min(1).max(1e12).optional(),
    ...amounts,
  })
  .refine((body) => body.per === undefined || body.rate !== undefined, { message: 'must have "rate" beside "per"' });
export const raiseBody = z
  .strictObject(amounts)
  .refine((body) => Object.keys(body).length > 0, { message: "must say to what" });
export const health = z.looseObject({ status: z.string(), parts: z.record(z.string(), z.string()).optional() });
