import * as z from "zod";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { MAX_SECONDS } from "./fields.ts";

/** A node type that comes with Millrace. */
export interface BuiltinHandler {
  /** Runs in the engine, without a worker. */
  readonly engine: boolean;
  /** Of nodes that run on a worker; 30 s if it says nothing. */
  readonly defaultTimeoutSeconds?: number;
  /** `config.mock` stands for the handler's result, and is taken off before the config is checked. */
  readonly mockable: boolean;
  readonly config: z.ZodType;
  /** Rules between fields, which a schema cannot say in words that help. */
  readonly also?: (config: JsonObject) => string | undefined;
  /** JSON Schema of the output, if it is known from the config. */
  readonly output?: (config: JsonObject) => Json | undefined;
  /** An object with the fields of the output, where the config itself shows them. */
  readonly outputFields?: (config: JsonObject) => JsonObject | undefined;
}

const seconds = z.number().min(0).max(MAX_SECONDS);
const ids = z.union([z.string(), z.array(z.string()).min(1)]);
const jsonSchema = z.union([z.record(z.string(), z.unknown()), z.boolean()]);
const headerValue = z.union([z.string(), z.number(), z.boolean()]);

const HTTP_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Any field but these is unknown. `closed` turns names into the schema of such an output. */
function closed(...names: readonly string[]): JsonObject {
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, true])),
    additionalProperties: false,
  };
}

const HTTP_OUTPUT = closed("status", "headers", "body");
const LLM_OUTPUT = closed("text", "model", "finish_reason", "usage");
const ROUTER_OUTPUT = closed("chosen");
const REVIEW_OUTPUT = closed("decision", "data", "by", "at", "comment");

function exactlyOne(config: JsonObject, ...names: readonly string[]): string | undefined {
  const given = names.filter((name) => config[name] !== undefined);
  if (given.length === 1) return undefined;
  const list = names.map((name) => `"${name}"`).join(" or ");
  return given.length === 0 ? `must have ${list}` : `must have only one of ${list}`;
}

const BUILTINS: Readonly<Record<string, BuiltinHandler>> = {
  input: { engine: true, mockable: false, config: z.record(z.string(), z.unknown()) },
  output: {
    engine: true,
    mockable: false,
    config: z.record(z.string(), z.unknown()),
    outputFields: (config) => (Object.keys(config).length > 0 ? config : undefined),
  },
  http: {
    engine: false,
    defaultTimeoutSeconds: 120,
    mockable: true,
    config: z.strictObject({
      url: z.string().min(1),
      method: z.enum(HTTP_METHODS).default("GET"),
      headers: z.record(z.string(), headerValue).optional(),
      query: z.record(z.string(), z.union([headerValue, z.array(headerValue), z.null()])).optional(),
      json: z.unknown().optional(),
      body: z.string().optional(),
      expect: z.array(z.int().min(100).max(599)).min(1).optional(),
    }),
    also: ({ json, body }) =>
      json !== undefined && body !== undefined ? 'must have only one of "json" or "body"' : undefined,
    output: () => HTTP_OUTPUT,
  },
  llm: {
    engine: false,
    defaultTimeoutSeconds: 180,
    mockable: true,
    config: z.strictObject({
      prompt: z.string().optional(),
      messages: z
        .array(z.looseObject({ role: z.string(), content: z.unknown() }))
        .min(1)
        .optional(),
      model: z.string().min(1).optional(),
      temperature: z.number().min(0).max(2).optional(),
      max_tokens: z.int().min(1).optional(),
      output_schema: jsonSchema.optional(),
    }),
    also: (config) => exactlyOne(config, "prompt", "messages"),
    output: ({ output_schema }) => output_schema ?? LLM_OUTPUT,
  },
  transform: {
    engine: false,
    mockable: true,
    config: z.strictObject({
      value: z.unknown().optional(),
      expression: z.string().min(1).optional(),
      fields: z.record(z.string(), z.string()).optional(),
    }),
    also: (config) => exactlyOne(config, "value", "expression", "fields"),
    // In the canonical form, where expression and fields have become a value.
    outputFields: ({ value }) => (isJsonObject(value) ? value : undefined),
  },
  router: {
    engine: true,
    mockable: false,
    config: z.strictObject({
      mode: z.enum(["exclusive", "inclusive"]).default("exclusive"),
      routes: z.array(z.strictObject({ when: z.string().min(1), to: ids })).min(1),
      else: ids.optional(),
      on_error: z.enum(["fail", "skip"]).default("fail"),
    }),
    output: () => ROUTER_OUTPUT,
  },
  map: {
    engine: true,
    mockable: false,
    config: z.strictObject({
      items: z.array(z.unknown()),
      handler: z.string().min(1).max(128).optional(),
      config: z.record(z.string(), z.unknown()).optional(),
      nodes: z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())]).optional(),
      max_concurrency: z.int().min(1).max(1_000).default(10),
      tolerated_failures: z.union([z.int().min(0), z.string().regex(/^(100|[0-9]{1,2})(\.[0-9]+)?%$/)]).default(0),
      retry: z.record(z.string(), z.unknown()).optional(),
    }),
    also: (config) =>
      config["nodes"] !== undefined && config["config"] !== undefined
        ? 'must not have "config" beside "nodes": each node has its own'
        : exactlyOne(config, "handler", "nodes"),
    output: () => ({ type: "array" }),
  },
  workflow: {
    engine: true,
    mockable: true,
    config: z.strictObject({
      name: z.string().min(1).max(128),
      version: z.union([z.int().min(1), z.string().min(1)]).optional(),
      input: z.unknown().optional(),
    }),
  },
  wait: {
    engine: true,
    mockable: false,
    config: z.strictObject({
      seconds: seconds.optional(),
      until: z.string().min(1).optional(),
      signal: z.string().min(1).max(128).optional(),
      timeout_seconds: z.number().gt(0).max(MAX_SECONDS).optional(),
    }),
    also: (config) =>
      config["timeout_seconds"] !== undefined && config["signal"] === undefined
        ? 'must have "timeout_seconds" only with "signal"'
        : exactlyOne(config, "seconds", "until", "signal"),
  },
  delay: { engine: true, mockable: false, config: z.strictObject({ seconds }) },
  review: {
    engine: true,
    mockable: true,
    config: z.strictObject({
      form: jsonSchema.optional(),
      title: z.string().optional(),
      assignees: z.array(z.string()).optional(),
      due_seconds: z.number().gt(0).max(MAX_SECONDS).default(604_800),
      on_due: z
        .union([
          z.literal("fail"),
          z.strictObject({ decision: z.enum(["approve", "reject"]), data: z.unknown().optional() }),
        ])
        .default("fail"),
    }),
    output: () => REVIEW_OUTPUT,
  },
  end: {
    engine: true,
    mockable: false,
    config: z.strictObject({
      status: z.enum(["COMPLETED", "FAILED"]).default("COMPLETED"),
      output: z.unknown().optional(),
      message: z.string().optional(),
    }),
  },
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
    case "wait":
      return config["signal"] === undefined ? undefined : { timeout_seconds: 604_800 };
    case "end":
      return { status: "COMPLETED" };
    default:
      return undefined;
  }
}
