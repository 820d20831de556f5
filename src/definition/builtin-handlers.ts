import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import {
  ANY,
  FLAG,
  type BuiltinHandler,
  IDS,
  JSON_SCHEMA,
  LIMIT_SECONDS,
  NAME,
  OBJECT,
  SCALAR,
  SECONDS,
  STRING,
  TEXT,
  closed,
  exactlyOne,
  integer,
  listOf,
  mapOf,
  object,
  oneOf,
} from "./config-schema.ts";
import { isDate } from "./dates.ts";
import { DOCUMENT_HANDLERS } from "./document-handlers.ts";

/** The model where none is named: cheap, and every key of OpenAI may use it. */
export const DEFAULT_MODEL = "gpt-4o-mini";

const HTTP_OUTPUT = closed("status", "headers", "body");
const LLM_OUTPUT = closed("text", "model", "finish_reason", "usage");
/** With `result`, as the source documents read what a service has answered. */
const HTTP_OUTPUT_AND_RESULT = closed("status", "headers", "body", "result");
const LLM_OUTPUT_AND_RESULT = closed("text", "model", "finish_reason", "usage", "result");
const ROUTER_OUTPUT = closed("chosen");
const REVIEW_FIELDS = ["decision", "data", "by", "at", "comment"];

const BUILTINS: Readonly<Record<string, BuiltinHandler>> = {
  input: { engine: true, mockable: false, config: OBJECT },
  output: {
    engine: true,
    mockable: false,
    config: OBJECT,
    outputFields: (config) => (Object.keys(config).length > 0 ? config : undefined),
  },
  http: {
    engine: false,
    defaultTimeoutSeconds: 120,
    mockable: true,
    config: object({
      url: TEXT,
      "method?": oneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
      "headers?": mapOf(SCALAR),
      "query?": mapOf({ anyOf: [SCALAR, listOf(SCALAR), { type: "null" }] }),
      "json?": ANY,
      "body?": STRING,
      "expect?": listOf(integer(100, 599), 1),
      "result?": FLAG,
    }),
    also: ({ json, body }) =>
      json !== undefined && body !== undefined ? 'must have only one of "json" or "body"' : undefined,
    output: ({ result }) => (result === true ? HTTP_OUTPUT_AND_RESULT : HTTP_OUTPUT),
  },
  llm: {
    engine: false,
    defaultTimeoutSeconds: 180,
    mockable: true,
    config: object({
      "prompt?": STRING,
      "messages?": listOf(
        { type: "object", properties: { role: STRING, content: ANY }, required: ["role", "content"] },
        1,
      ),
      "model?": TEXT,
      "temperature?": { type: "number", minimum: 0, maximum: 2 },
      "max_tokens?": integer(1),
      "output_schema?": JSON_SCHEMA,
      "result?": FLAG,
    }),
    also: (config) => exactlyOne(config, "prompt", "messages"),
    output: ({ output_schema, result }) => output_schema ?? (result === true ? LLM_OUTPUT_AND_RESULT : LLM_OUTPUT),
  },
  transform: {
    engine: false,
    mockable: true,
    config: object({ "value?": ANY, "expression?": TEXT, "fields?": mapOf(STRING) }),
    also: (config) => exactlyOne(config, "value", "expression", "fields"),
    // In the canonical form, where expression and fields have become a value.
    outputFields: ({ value }) => (isJsonObject(value) ? value : undefined),
  },
  router: {
    engine: true,
    mockable: false,
    config: object({
      "mode?": oneOf("exclusive", "inclusive"),
      routes: listOf(object({ when: TEXT, to: IDS }), 1),
      "else?": IDS,
      "on_error?": oneOf("fail", "skip"),
    }),
    output: () => ROUTER_OUTPUT,
  },
  map: {
    engine: true,
    mockable: false,
    config: object({
      items: listOf(ANY),
      "handler?": NAME,
      "config?": OBJECT,
      "nodes?": { anyOf: [listOf(ANY), OBJECT] },
      "max_concurrency?": integer(1, 1_000, 10),
      "tolerated_failures?": {
        default: 0,
        anyOf: [integer(0), { type: "string", pattern: "^(100|[0-9]{1,2})(\\.[0-9]+)?%$" }],
      },
      "retry?": OBJECT,
      "collect?": { type: "boolean" },
    }),
    also: (config) =>
      config["nodes"] !== undefined && config["config"] !== undefined
        ? 'must not have "config" beside "nodes": each node has its own'
        : exactlyOne(config, "handler", "nodes"),
    output: ({ collect }) => {
      // A template says nothing before it is resolved.
      if (typeof collect === "string") return undefined;
      return collect === false ? closed("total", "completed", "failed") : { type: "array" };
    },
  },
  workflow: {
    engine: true,
    mockable: true,
    config: object({ name: NAME, "version?": { anyOf: [integer(1), TEXT] }, "input?": { default: {} } }),
  },
  wait: {
    engine: true,
    mockable: false,
    config: object({ "seconds?": SECONDS, "until?": TEXT, "signal?": NAME, "timeout_seconds?": LIMIT_SECONDS }),
    also: (config) =>
      config["timeout_seconds"] !== undefined && config["signal"] === undefined
        ? 'must have "timeout_seconds" only with "signal"'
        : (exactlyOne(config, "seconds", "until", "signal") ?? dateOrTemplate(config["until"])),
  },
  delay: { engine: true, mockable: false, config: object({ seconds: SECONDS }) },
  review: {
    engine: true,
    mockable: true,
    config: object({
      "form?": JSON_SCHEMA,
      "title?": STRING,
      "assignees?": listOf(STRING),
      "values?": { type: "object" },
      "confidence?": ANY,
      "source?": ANY,
      "four_eyes?": { type: "boolean" },
      "due_seconds?": { default: 604_800, ...LIMIT_SECONDS },
      "escalate?": object({ after_seconds: LIMIT_SECONDS, assignees: listOf(STRING) }),
      "on_due?": {
        default: "fail",
        anyOf: [
          { type: "string", const: "fail" },
          object({ decision: { type: "string", enum: ["approve", "reject"] }, "data?": ANY }),
        ],
      },
    }),
    output: ({ values, four_eyes: fourEyes }) =>
      closed(
        ...REVIEW_FIELDS,
        ...(values === undefined ? [] : ["locks"]),
        ...(fourEyes === undefined ? [] : ["first"]),
      ),
  },
  end: {
    engine: true,
    mockable: false,
    config: object({ "status?": oneOf("COMPLETED", "FAILED"), "output?": ANY, "message?": STRING }),
  },
  ...DOCUMENT_HANDLERS,
};

export const BUILTIN_HANDLERS: ReadonlyMap<string, BuiltinHandler> = new Map(Object.entries(BUILTINS));

/** The names under which the source documents know the same handlers. */
export const HANDLER_ALIASES: ReadonlyMap<string, string> = new Map([
  ["call_external_service", "http"],
  ["external_service", "http"],
  ["llm_service", "llm"],
  ["data_processor", "transform"],
]);

/** Schemas that stand inside a config, by handler and key: they are compiled at submit, not when data arrives. */
export const CONFIG_SCHEMAS: ReadonlyMap<string, string> = new Map([
  ["llm", "output_schema"],
  ["llm.extract", "schema"],
  ["validate", "schema"],
  ["review", "form"],
]);

/**
 * Defaults of the nodes that the engine runs, written out at submit: a later release with other defaults must not change
 * what a stored workflow does.
 */
export function engineDefaults(handler: string, config: JsonObject): JsonObject | undefined {
  switch (handler) {
    case "router":
      return { mode: "exclusive", on_error: "fail" };
    case "map":
      return { max_concurrency: 10, tolerated_failures: 0 };
    case "review":
      return { due_seconds: 604_800, on_due: "fail" };
    case "workflow":
      // As a start without an input.
      return { input: {} };
    case "wait":
      return config["signal"] === undefined ? undefined : { timeout_seconds: 604_800 };
    case "end":
      return { status: "COMPLETED" };
    default:
      return undefined;
  }
}

function dateOrTemplate(until: Json | undefined): string | undefined {
  if (typeof until !== "string" || until.includes("{{") || isDate(until)) return undefined;
  return 'must have a date in "until", such as 2030-01-31T09:00:00Z';
}
