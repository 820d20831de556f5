import type { Json, JsonObject } from "../json/json.ts";

/**
 * Every field of the format, declared once: what it may hold, its default, its other names, and what it is for. The
 * loader checks by this table and `schema/workflow.json` is written from it.
 */
export interface Field {
  readonly rule: Rule;
  readonly doc: string;
  /** What a missing field, or null, means. Missing here: nothing, or something that depends on other fields. */
  readonly default?: Json;
  /** Other names under which the same field is read. */
  readonly aliases?: readonly string[];
}

export type Rule =
  | { readonly kind: "text"; readonly maxLength: number; readonly isExpression?: boolean }
  | {
      readonly kind: "number";
      readonly min: number;
      readonly max: number;
      readonly integer?: boolean;
      /** The value must be more than `min`, not equal to it. */
      readonly above?: boolean;
      readonly code: "INVALID_TIMEOUT" | "INVALID_RETRY_POLICY" | "NUMBER_OUT_OF_RANGE";
    }
  | { readonly kind: "boolean" }
  /** `elsewhere` says to whoever writes a word that this field does not know what to write instead. */
  | {
      readonly kind: "choice";
      readonly choices: readonly string[];
      readonly elsewhere?: Readonly<Record<string, string>>;
    }
  | { readonly kind: "object" }
  | { readonly kind: "any" }
  /** Read by code of its own; `schema` is what an editor may know of it. */
  | { readonly kind: "own"; readonly schema: JsonObject };

export type FieldTable = Readonly<Record<string, Field>>;

export const MAX_NODES = 100_000;
export const MAX_EDGES = 1_000_000;
/** As it is written, in JSON. */
export const MAX_DEFINITION_BYTES: number = 32 * 1_048_576;
/** No timer runs longer than a year: whoever needs more wants a schedule. */
export const MAX_SECONDS = 31_536_000;
export const DEFAULT_TIMEOUT_SECONDS = 30;

export const ID_PATTERN = "^[A-Za-z0-9_][A-Za-z0-9_.#-]{0,127}$";
const ON_ERROR = ["fail_fast", "fail_branch", "continue"];
const DLQ = ["all", "non_retryable", "exhausted", "none"];

const object: Rule = { kind: "object" };
const expression: Rule = { kind: "text", maxLength: 10_000, isExpression: true };

function text(maxLength: number): Rule {
  return { kind: "text", maxLength };
}

function choice(choices: readonly string[], elsewhere?: Readonly<Record<string, string>>): Rule {
  return { kind: "choice", choices, ...(elsewhere && { elsewhere }) };
}

function timeout(min: 0 | "above 0"): Rule {
  return { kind: "number", min: 0, max: MAX_SECONDS, above: min !== 0, code: "INVALID_TIMEOUT" };
}

function count(min: number, max: number): Rule {
  return { kind: "number", min, max, integer: true, code: "NUMBER_OUT_OF_RANGE" };
}

function retryNumber(min: number, max: number, integer = false): Rule {
  return { kind: "number", min, max, integer, code: "INVALID_RETRY_POLICY" };
}

export const WORKFLOW_FIELDS: FieldTable = {
  name: {
    rule: {
      kind: "own",
      schema: {
        type: "string",
        minLength: 1,
        maxLength: 128,
        pattern: "^[^/\\x00-\\x1f\\x7f]+$",
        not: { enum: [".", ".."] },
      },
    },
    doc: "What people call it, 1 to 128 characters without / and control characters, and not . or .. alone. Versions are counted per name.",
  },
  description: { rule: text(10_000), doc: "What it is for, in the author's words." },
  labels: {
    rule: object,
    doc: "Labels that its executions have, for finding them again: `millrace ls --label NAME=VALUE`.",
  },
  input_schema: {
    rule: { kind: "own", schema: { type: ["object", "boolean"] } },
    doc: "JSON Schema of the input. A start with an input that does not fit is refused. `format` is not checked.",
  },
  nodes: {
    rule: { kind: "own", schema: { $ref: "#/$defs/nodes" } },
    doc: "The nodes, as a list or as an object by id.",
    aliases: ["steps"],
  },
  on_error: {
    rule: choice(ON_ERROR),
    default: "fail_fast",
    doc: "What a failed node does to the rest: stop everything, skip what depends on it, or let its children run.",
  },
  timeout_seconds: {
    rule: timeout(0),
    default: 604_800,
    doc: "How long an execution may take in all. 0 = no limit.",
  },
  max_parallel_nodes: {
    rule: count(1, MAX_NODES),
    default: null,
    doc: "How many nodes of one execution may be queued or running at once. null = no limit.",
  },
  retry: {
    rule: { kind: "own", schema: { $ref: "#/$defs/retry" } },
    doc: "The retry policy of nodes that do not say otherwise.",
    aliases: ["retry_config"],
  },
  dlq: {
    rule: choice(DLQ),
    default: "all",
    doc: "Which failed nodes get an entry in the dead letter queue.",
  },
  limits: {
    rule: { kind: "own", schema: { type: "object", additionalProperties: { $ref: "#/$defs/limit" } } },
    doc: "Limits by name, which nodes refer to as `limit`. A name means the same limit in every workflow.",
  },
  budget: {
    rule: { kind: "own", schema: { $ref: "#/$defs/budget" } },
    doc: "What the tasks of one execution may spend in all, or those of all executions with the same key.",
  },
  concurrency: {
    rule: { kind: "own", schema: { $ref: "#/$defs/workflow_concurrency" } },
    doc: "How many executions of this workflow may run at once, and by which key.",
  },
  priority: {
    rule: count(-1_000, 1_000),
    default: 0,
    doc: "Tasks of higher priority are taken first.",
  },
};

/** Written by the tools of others. They change nothing, so that such a document loads as it is. */
export const IGNORED_WORKFLOW_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "workflow_id",
  "metadata",
  "entry_points",
  "terminal_points",
]);

export const NODE_FIELDS: FieldTable = {
  id: {
    rule: { kind: "own", schema: { type: "string", pattern: ID_PATTERN } },
    doc: "How other nodes refer to it. Letters, digits, _ . # and -, at most 128, case-sensitive.",
    aliases: ["node_id", "step_id"],
  },
  name: { rule: text(256), doc: "What people call it." },
  type: { rule: text(128), doc: "A free label for the kind of step.", aliases: ["step_type"] },
  handler: {
    rule: { kind: "own", schema: { type: "string", minLength: 1, maxLength: 128 } },
    doc: "What runs it: a built-in node, or the name under which a worker registered its function.",
  },
  config: {
    rule: object,
    default: {},
    doc: "What the handler gets. Strings may hold templates: {{ other_node.field }}.",
  },
  dependencies: {
    rule: { kind: "own", schema: { type: "array", items: { $ref: "#/$defs/dependency" } } },
    default: [],
    doc: "The nodes that come before it.",
  },
  timeout_seconds: {
    rule: timeout("above 0"),
    doc: "How long one attempt may run: 30 by default, 120 for http, 180 for llm, no limit for nodes of the engine.",
  },
  queue_timeout_seconds: {
    rule: timeout("above 0"),
    default: 86_400,
    doc: "How long a task may wait for a worker.",
  },
  retry: {
    rule: { kind: "own", schema: { $ref: "#/$defs/retry" } },
    doc: "When a failed attempt is repeated. What is not given comes from the workflow's `retry`.",
    aliases: ["retry_config"],
  },
  condition: { rule: expression, doc: "An expression. If it is false the node is skipped." },
  condition_on_error: {
    rule: choice(["fail", "skip"]),
    default: "fail",
    doc: "What happens if the condition cannot be evaluated.",
  },
  join: {
    rule: {
      kind: "own",
      schema: {
        anyOf: [
          { enum: ["none_failed", "all_success", "all_done", "one_success"] },
          { type: "string", pattern: "^quorum:[1-9][0-9]*$" },
        ],
      },
    },
    default: "none_failed",
    doc: "When it runs, given how its parents ended.",
  },
  join_timeout_seconds: {
    rule: timeout("above 0"),
    doc: "How long it waits for the other parents once the first has finished.",
  },
  on_error: { rule: choice(ON_ERROR), doc: "As on the workflow, for this node." },
  inputs: {
    rule: { kind: "boolean" },
    default: false,
    doc: "Hand the outputs of the completed parents to the handler as `inputs`.",
  },
  repeat: {
    rule: { kind: "own", schema: { $ref: "#/$defs/repeat" } },
    doc: "Run it again until an expression is true.",
  },
  limit: {
    rule: { kind: "own", schema: { anyOf: [{ type: "string" }, { $ref: "#/$defs/node_limit" }] } },
    doc: "The limit it counts against: the name of one of `limits`, or an object.",
  },
  concurrency: {
    rule: { kind: "own", schema: { $ref: "#/$defs/concurrency" } },
    doc: "How many of its tasks may be under way at once, in all executions, and by which key.",
  },
  budget: {
    rule: { kind: "own", schema: { $ref: "#/$defs/budget" } },
    doc: "What it may spend in one execution, all attempts and items together, or in all with the same key.",
  },
  cache: {
    rule: { kind: "own", schema: { anyOf: [{ type: "boolean" }, { $ref: "#/$defs/cache" }] } },
    doc: "For how long its output may be used instead of doing the same work again. true = a day.",
  },
  queue: { rule: text(128), doc: "The queue its tasks go to. By default that of its handler." },
  priority: { rule: count(-1_000, 1_000), doc: "As on the workflow, for this node." },
  dlq: { rule: choice(DLQ), doc: "As on the workflow, for this node." },
};

export const RETRY_FIELDS: FieldTable = {
  max_attempts: {
    rule: retryNumber(1, 100, true),
    default: 3,
    doc: "How often it is tried in all. 1 = no retry.",
  },
  base_delay_seconds: {
    rule: retryNumber(0, MAX_SECONDS),
    default: 1,
    doc: "The wait before the second attempt.",
    aliases: ["initial_delay", "initial_delay_seconds", "delay_seconds"],
  },
  max_delay_seconds: {
    rule: retryNumber(0, MAX_SECONDS),
    default: 60,
    doc: "The longest wait.",
    aliases: ["max_delay"],
  },
  exponential_base: {
    rule: retryNumber(1, 100),
    default: 2,
    doc: "Each wait is this many times the one before.",
  },
  jitter: {
    rule: { kind: "own", schema: { anyOf: [{ type: "boolean" }, { type: "number", minimum: 0, maximum: 1 }] } },
    default: 0.1,
    doc: "By which part a wait may be longer, at random, so that failed nodes do not all come back at once. true = 0.1.",
    aliases: ["jitter_factor"],
  },
};

/** `max_retries` does not count the first attempt, so it is not simply another name of `max_attempts`. */
export const MAX_RETRIES_FIELD: Field = {
  rule: retryNumber(0, 99, true),
  doc: "The number of attempts after the first: max_attempts - 1.",
};

export const REPEAT_FIELDS: FieldTable = {
  until: { rule: expression, doc: "An expression that may read this node's own output. Required." },
  every_seconds: { rule: timeout(0), default: 10, doc: "The wait between two rounds." },
  max: { rule: count(1, 10_000), default: 100, doc: "The number of rounds after which the node fails." },
};

const MAX_RATE = 1_000_000;
const MAX_TOKENS = 1_000_000_000_000;

/** A limit: a rate, a number of places, or both. */
export const LIMIT_FIELDS: FieldTable = {
  rate: {
    rule: { kind: "number", min: 0, max: MAX_RATE, above: true, code: "NUMBER_OUT_OF_RANGE" },
    doc: "How many tasks may go out in the time that `per` says.",
  },
  per: { rule: choice(["second", "minute", "hour"]), default: "second", doc: "The time that `rate` is about." },
  burst: {
    rule: count(1, MAX_RATE),
    doc: "How many may go out at once after a quiet time. By default what the rate gives in a second, at least 1.",
  },
  tokens_per_minute: {
    rule: { kind: "number", min: 0, max: MAX_TOKENS, above: true, code: "NUMBER_OUT_OF_RANGE" },
    doc: "How many LLM tokens tasks may use in a minute: reserved by an estimate, settled by what they report.",
  },
  tokens_burst: {
    rule: count(1, MAX_TOKENS),
    doc: "How many LLM tokens may be used at once after a quiet time. By default what a minute gives.",
  },
  concurrency: { rule: count(1, MAX_RATE), doc: "How many tasks may be under way at a time." },
  breaker: {
    rule: { kind: "own", schema: { anyOf: [{ type: "boolean" }, { $ref: "#/$defs/breaker" }] } },
    doc: "Let nothing through for a while once too many calls have failed. true = with the defaults.",
  },
};

export const BREAKER_FIELDS: FieldTable = {
  failure_rate: {
    rule: { kind: "number", min: 0, max: 1, above: true, code: "NUMBER_OUT_OF_RANGE" },
    default: 0.5,
    doc: "Which part of the last calls must have failed, in a way that may pass or by a timeout.",
  },
  window: { rule: count(1, 1_000), default: 20, doc: "How many of the last calls count." },
  min_calls: { rule: count(1, 1_000), default: 10, doc: "Of fewer calls nothing is concluded." },
  open_seconds: {
    rule: timeout("above 0"),
    default: 30,
    doc: "How long nothing goes through. Then one call may try, and if it goes well twice as many, and so on.",
  },
};

export const NODE_LIMIT_FIELDS: FieldTable = {
  name: { rule: text(128), doc: "The name of one of `limits`. Without it the limit is the node's own." },
  cost: { rule: count(1, MAX_RATE), default: 1, doc: "How much of the rate one task takes." },
  tokens: {
    rule: count(1, MAX_TOKENS),
    doc: "How many LLM tokens one task may use. By default a quarter of the characters it is given, and its max_tokens.",
  },
  ...LIMIT_FIELDS,
};

export const CONCURRENCY_FIELDS: FieldTable = {
  limit: { rule: count(1, MAX_RATE), doc: "How many tasks may be under way at a time. Required." },
  key: {
    rule: text(10_000),
    doc: "With templates, what the limit is counted by: each value has a limit of its own. {{ input.customer }}",
  },
  on_conflict: {
    rule: choice(["queue", "reject"], {
      cancel_old:
        "Only whole executions make room for newer ones: say it in the concurrency of the workflow, or let the node's tasks queue.",
    }),
    default: "queue",
    doc: "What becomes of a task for which there is no room: it waits, or its node fails.",
  },
};

export const WORKFLOW_CONCURRENCY_FIELDS: FieldTable = {
  limit: { rule: count(1, MAX_RATE), doc: "How many executions may run at a time. Required." },
  key: {
    rule: text(10_000),
    doc: "With templates of the input, what the limit is counted by: each value has a limit of its own. {{ input.customer }}",
  },
  on_conflict: {
    rule: choice(["queue", "cancel_old", "reject"]),
    default: "queue",
    doc: "What becomes of an execution for which there is no room: it waits, those that came first are cancelled, or it fails.",
  },
};

export const CACHE_FIELDS: FieldTable = {
  key: {
    rule: text(10_000),
    doc: "With templates, what makes two pieces of work of this node the same. By default its handler and all that it is given.",
  },
  ttl_seconds: {
    rule: timeout("above 0"),
    default: 86_400,
    doc: "How long an output may be used again.",
    aliases: ["ttl"],
  },
};

function amount(doc: string): Field {
  return { rule: { kind: "number", min: 0, max: MAX_TOKENS, above: true, code: "NUMBER_OUT_OF_RANGE" }, doc };
}

export const BUDGET_FIELDS: FieldTable = {
  usd: amount("US dollars, by the price table of the settings or of `prices`."),
  tokens: amount("LLM tokens, read and written."),
  calls: amount("Tasks that are handed out, each delivery of an attempt."),
  seconds: amount("Seconds that handlers run, added up."),
  key: {
    rule: text(10_000),
    doc: "With templates, what the budget is counted by: all executions with the same value share one. {{ input.customer }}",
  },
  on_limit: {
    rule: choice(["fail", "fallback", "pause"]),
    default: "fail",
    doc: "What becomes of a task for which too little is left: its node fails, or takes the model `fallback`, or waits as a review until somebody raises the budget.",
  },
  fallback: { rule: text(256), doc: "The model to use then. Only its money is counted." },
  estimate: {
    rule: { kind: "own", schema: { $ref: "#/$defs/budget_estimate" } },
    doc: "What one task is thought to use. By default tokens by what it is given, usd by the price of its model, one second.",
  },
  prices: {
    rule: { kind: "own", schema: { type: "object", additionalProperties: { $ref: "#/$defs/price" } } },
    doc: "US dollars for a million tokens, by model, `*` for any other. What is not here comes from the settings.",
  },
};

export const ESTIMATE_FIELDS: FieldTable = {
  tokens: amount("LLM tokens of one task."),
  usd: amount("US dollars of one task."),
  seconds: amount("Seconds of one task."),
};

const price: Rule = { kind: "number", min: 0, max: MAX_RATE, code: "NUMBER_OUT_OF_RANGE" };

export const PRICE_FIELDS: FieldTable = {
  input: { rule: price, doc: "For a million tokens that the model reads." },
  output: { rule: price, doc: "For a million tokens that it writes." },
};

export const DEPENDENCY_FIELDS: FieldTable = {
  id: { rule: text(10_000), doc: "The node that comes before." },
  on: {
    rule: choice(["completed", "failed", "done"]),
    default: "completed",
    doc: "How that node must have ended for this one to run.",
  },
};

/** What people write who come from elsewhere, for hints only. */
export const FIELD_GUESSES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    depends_on: "dependencies",
    dependsOn: "dependencies",
    needs: "dependencies",
    after: "dependencies",
    parents: "dependencies",
    upstream: "dependencies",
    when: "condition",
    if: "condition",
    params: "config",
    parameters: "config",
    with: "config",
    args: "config",
    uses: "handler",
    task: "handler",
    action: "handler",
    function: "handler",
    timeout: "timeout_seconds",
    retries: "retry",
    attempts: "max_attempts",
    on_failure: "on_error",
    onFailure: "on_error",
    tasks: "nodes",
    jobs: "nodes",
    title: "name",
  }),
);
