import type { Json, JsonObject } from "../json/json.ts";
import { BUILTIN_HANDLERS } from "./builtin-handlers.ts";
import {
  BREAKER_FIELDS,
  CACHE_FIELDS,
  BUDGET_FIELDS,
  ESTIMATE_FIELDS,
  PRICE_FIELDS,
  CONCURRENCY_FIELDS,
  DEPENDENCY_FIELDS,
  type Field,
  type FieldTable,
  LIMIT_FIELDS,
  MAX_NODES,
  MAX_RETRIES_FIELD,
  NODE_FIELDS,
  NODE_LIMIT_FIELDS,
  REPEAT_FIELDS,
  RETRY_FIELDS,
  type Rule,
  WORKFLOW_CONCURRENCY_FIELDS,
  WORKFLOW_FIELDS,
} from "./fields.ts";

/**
 * The JSON Schema of a definition, for editors: completion, docs and the plain mistakes. It is written from the same
 * table that the loader reads by. It knows the proper names only; other spellings load, but are not offered.
 */
export function workflowSchema(): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://millrace.dev/schema/workflow.json",
    title: "Millrace workflow",
    ...objectSchema(WORKFLOW_FIELDS, ["nodes"], { $schema: { type: "string" } }),
    $defs: {
      nodes: {
        anyOf: [
          {
            type: "array",
            minItems: 1,
            maxItems: MAX_NODES,
            items: { $ref: "#/$defs/node", required: ["id", "handler"] },
          },
          {
            type: "object",
            minProperties: 1,
            maxProperties: MAX_NODES,
            additionalProperties: { $ref: "#/$defs/node", required: ["handler"] },
          },
        ],
      },
      node: { ...objectSchema(NODE_FIELDS, []), allOf: configByHandler() },
      dependency: { anyOf: [{ type: "string" }, objectSchema(DEPENDENCY_FIELDS, ["id"])] },
      retry: objectSchema(RETRY_FIELDS, [], { max_retries: fieldSchema(MAX_RETRIES_FIELD) }),
      repeat: objectSchema(REPEAT_FIELDS, ["until"]),
      limit: objectSchema(LIMIT_FIELDS, []),
      breaker: objectSchema(BREAKER_FIELDS, []),
      node_limit: objectSchema(NODE_LIMIT_FIELDS, []),
      concurrency: objectSchema(CONCURRENCY_FIELDS, ["limit"]),
      workflow_concurrency: objectSchema(WORKFLOW_CONCURRENCY_FIELDS, ["limit"]),
      cache: objectSchema(CACHE_FIELDS, []),
      budget: objectSchema(BUDGET_FIELDS, []),
      budget_estimate: objectSchema(ESTIMATE_FIELDS, []),
      price: objectSchema(PRICE_FIELDS, ["input", "output"]),
      template: { type: "string", pattern: "\\{\\{" },
    },
  };
}

function objectSchema(table: FieldTable, required: readonly string[], more: JsonObject = {}): JsonObject {
  const properties: Record<string, Json> = {};
  for (const [name, field] of Object.entries(table)) properties[name] = fieldSchema(field);
  return {
    type: "object",
    ...(required.length > 0 ? { required } : {}),
    properties: { ...properties, ...more },
    patternProperties: { "^x-": true },
    additionalProperties: false,
  };
}

function fieldSchema({ rule, doc, nullable, default: standard }: Field): JsonObject {
  const schema = ruleSchema(rule);
  const type = nullable ? { type: [schema["type"]!, "null"] } : {};
  return { ...schema, ...type, description: doc, ...(standard === undefined ? {} : { default: standard }) };
}

function ruleSchema(rule: Rule): JsonObject {
  switch (rule.kind) {
    case "text":
      return { type: "string", maxLength: rule.maxLength };
    case "boolean":
      return { type: "boolean" };
    case "object":
      return { type: "object" };
    case "any":
      return {};
    case "choice":
      return { enum: rule.choices };
    case "own":
      return rule.schema;
    case "number":
      return {
        type: rule.integer ? "integer" : "number",
        ...(rule.above ? { exclusiveMinimum: rule.min } : { minimum: rule.min }),
        maximum: rule.max,
      };
  }
}

/** The config of each built-in node, chosen by its handler. A worker's handlers are not known to an editor. */
function configByHandler(): readonly Json[] {
  const conditions: Json[] = [];
  for (const [name, { config, mockable }] of BUILTIN_HANDLERS) {
    const { properties } = config;
    if (properties === undefined) continue;
    // Handlers called by the source documents' names take configs of their own, so only ours are held to the schema.
    const offered: JsonObject = {
      type: "object",
      properties: orTemplates({ ...(properties as JsonObject), ...(mockable ? { mock: {} } : {}) }),
      additionalProperties: false,
    };
    conditions.push({
      if: { properties: { handler: { const: name } }, required: ["handler"] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { properties: { config: offered } },
    });
  }
  return conditions;
}

/** Any value may be a template until it is resolved. */
function orTemplates(properties: JsonObject): JsonObject {
  const result: Record<string, Json> = {};
  for (const [name, schema] of Object.entries(properties)) {
    const open = Object.keys(schema as JsonObject).length === 0;
    result[name] = open ? {} : { anyOf: [schema, { $ref: "#/$defs/template" }] };
  }
  return result;
}

/** The text of schema/workflow.json. */
export function schemaText(): string {
  return `${JSON.stringify(workflowSchema(), undefined, 2)}\n`;
}
