import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
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
  IGNORED_WORKFLOW_FIELDS,
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
 * table that the loader reads by, and takes whatever that takes. Editors offer what stands under `properties`, so the
 * proper names are there; other spellings are `patternProperties`.
 */
export function workflowSchema(): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://millrace.dev/schema/workflow.json",
    title: "Millrace workflow",
    ...objectSchema(WORKFLOW_FIELDS, {
      offered: { $schema: { type: "string" } },
      taken: { ...IGNORED, "^dag$": { $ref: "#/$defs/dag", description: "The workflow, or a part of its fields." } },
    }),
    anyOf: oneRequired("nodes", "steps", "dag"),
    $defs: {
      dag: objectSchema(WORKFLOW_FIELDS, { taken: { ...IGNORED, "^\\$schema$": { type: "string" } } }),
      nodes: {
        anyOf: [
          {
            type: "array",
            minItems: 1,
            maxItems: MAX_NODES,
            items: {
              $ref: "#/$defs/node",
              required: ["handler"],
              anyOf: oneRequired("id", ...NODE_FIELDS["id"]!.aliases!),
            },
          },
          {
            type: "object",
            minProperties: 1,
            maxProperties: MAX_NODES,
            additionalProperties: { $ref: "#/$defs/node", required: ["handler"] },
          },
        ],
      },
      node: {
        ...objectSchema(NODE_FIELDS, {
          required: ["handler"],
          taken: { "^max_retries$": fieldSchema(MAX_RETRIES_FIELD, `Another way to write \`retry.max_attempts\`.`) },
        }),
        allOf: configByHandler(),
      },
      dependency: { anyOf: [{ type: "string" }, objectSchema(DEPENDENCY_FIELDS, { required: ["id"] })] },
      retry: objectSchema(RETRY_FIELDS, {
        offered: { max_retries: fieldSchema(MAX_RETRIES_FIELD) },
        taken: { "^retryable_errors$": NO_EFFECT },
      }),
      repeat: objectSchema(REPEAT_FIELDS, { required: ["until"] }),
      limit: objectSchema(LIMIT_FIELDS),
      breaker: objectSchema(BREAKER_FIELDS),
      node_limit: objectSchema(NODE_LIMIT_FIELDS),
      concurrency: objectSchema(CONCURRENCY_FIELDS, { required: ["limit"] }),
      workflow_concurrency: objectSchema(WORKFLOW_CONCURRENCY_FIELDS, { required: ["limit"] }),
      cache: objectSchema(CACHE_FIELDS),
      budget: objectSchema(BUDGET_FIELDS),
      budget_estimate: objectSchema(ESTIMATE_FIELDS),
      price: objectSchema(PRICE_FIELDS),
      template: { type: "string", pattern: "\\{\\{" },
    },
  };
}

const NO_EFFECT: JsonObject = { description: "Written by the tools of others. It has no effect." };
const IGNORED: JsonObject = { [namedAs(IGNORED_WORKFLOW_FIELDS)]: NO_EFFECT };

function namedAs(names: Iterable<string>): string {
  return `^(${[...names].join("|")})$`;
}

function oneRequired(...names: readonly string[]): Json {
  return names.map((name) => ({ required: [name] }));
}

interface ObjectParts {
  readonly required?: readonly string[];
  /** More fields that an editor may offer. */
  readonly offered?: JsonObject;
  /** Patterns of names that are taken, too. */
  readonly taken?: JsonObject;
}

function objectSchema(table: FieldTable, { required = [], offered = {}, taken = {} }: ObjectParts = {}): JsonObject {
  const properties: Record<string, Json> = {};
  const patterns: Record<string, Json> = {};
  for (const [name, field] of Object.entries(table)) {
    properties[name] = required.includes(name) ? givenSchema(field) : fieldSchema(field);
    if (field.aliases !== undefined) {
      patterns[namedAs(field.aliases)] = fieldSchema(field, `Another name of \`${name}\`.`);
    }
  }
  return {
    type: "object",
    ...(required.length > 0 ? { required } : {}),
    properties: { ...properties, ...offered },
    patternProperties: { ...patterns, ...taken, "^x-": true },
    additionalProperties: false,
  };
}

/** A field that may be left out, and so may be null. */
function fieldSchema(field: Field, prefix?: string): JsonObject {
  const { description, ...schema } = givenSchema(field);
  return { ...orNull(schema), description: prefix === undefined ? description! : `${prefix} ${description as string}` };
}

function givenSchema({ rule, doc, default: standard }: Field): JsonObject {
  return { ...ruleSchema(rule), description: doc, ...(standard === undefined ? {} : { default: standard }) };
}

function orNull(schema: JsonObject): JsonObject {
  const { type, enum: choices, anyOf: alternatives, $ref } = schema;
  if (type !== undefined) return { ...schema, type: [type, "null"].flat() };
  if (Array.isArray(choices)) return { ...schema, enum: [...choices, null] as Json };
  if (Array.isArray(alternatives)) return { ...schema, anyOf: [...alternatives, { type: "null" }] as Json };
  if ($ref === undefined) return schema;
  const { $ref: _, ...rest } = schema;
  return { anyOf: [{ $ref }, { type: "null" }], ...rest };
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
      type: ["object", "null"],
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
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, orTemplate(schema)]));
}

function orTemplate(schema: Json): Json {
  if (!isJsonObject(schema) || Object.keys(schema).length === 0) return schema;
  return { anyOf: [withTemplatesInside(schema), { $ref: "#/$defs/template" }] };
}

function withTemplatesInside(schema: JsonObject): JsonObject {
  const { properties, items, additionalProperties, anyOf: alternatives } = schema;
  return {
    ...schema,
    ...(isJsonObject(properties) && { properties: orTemplates(properties) }),
    ...(items !== undefined && { items: orTemplate(items) }),
    ...(additionalProperties !== undefined && { additionalProperties: orTemplate(additionalProperties) }),
    ...(Array.isArray(alternatives) && {
      anyOf: (alternatives as readonly JsonObject[]).map((each) => withTemplatesInside(each)),
    }),
  };
}

/** The text of schema/workflow.json. */
export function schemaText(): string {
  return `${JSON.stringify(workflowSchema(), undefined, 2)}\n`;
}
