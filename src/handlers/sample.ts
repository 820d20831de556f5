import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { resolveRef } from "../json/schema-faults.ts";
import { Schema } from "../json/schema.ts";

const MAX_DEPTH = 20;
/** Deeper down an object has only what it must have, so that one which may contain itself comes to an end. */
const MAX_OPTIONAL_DEPTH = 3;

/**
 * A plain value that fits a JSON Schema: what a mock returns for it. The same schema gives the same value. undefined if
 * it asks for more than can be made up, such as a text that matches a pattern.
 */
export function sampleOf(schema: Json): Json | undefined {
  const compiled = Schema.compile(schema);
  if (!(compiled instanceof Schema)) return undefined;
  const sample = make(schema, schema, 0);
  return compiled.check(sample).length === 0 ? sample : undefined;
}

function make(root: Json, schema: Json, depth: number): Json {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) return null;
  const { $ref, examples, anyOf, oneOf, allOf, enum: options, const: constant, default: standard } = schema;
  for (const said of [constant, standard, first(examples), first(options)]) if (said !== undefined) return said;
  if (typeof $ref === "string") return make(root, resolveRef(root, $ref) ?? true, depth + 1);
  const alternative = first(anyOf) ?? first(oneOf);
  if (alternative !== undefined) return make(root, alternative, depth + 1);
  if (Array.isArray(allOf)) {
    const parts = [schema, ...(allOf as readonly Json[])].filter((part) => isJsonObject(part));
    const { allOf: _, ...merged } = Object.assign({}, ...parts.map(({ allOf: __, ...part }) => part)) as JsonObject;
    return make(root, merged, depth + 1);
  }
  return ofType(root, schema, depth);
}

function ofType(root: Json, schema: JsonObject, depth: number): Json {
  const { type = isJsonObject(schema["properties"]) ? "object" : "null" } = schema;
  switch ((Array.isArray(type) ? (type as readonly Json[])[0] : type) as string) {
    case "object":
      return object(root, schema, depth);
    case "array":
      return Array.from({ length: numberOf(schema["minItems"], 0) }, () =>
        make(root, schema["items"] ?? true, depth + 1),
      );
    case "string":
      return "mock".padEnd(numberOf(schema["minLength"], 0), "k").slice(0, numberOf(schema["maxLength"], Infinity));
    case "boolean":
      return true;
    case "integer":
      return Math.ceil(lowest(schema));
    case "number":
      return lowest(schema);
    default:
      return null;
  }
}

/** With every property it may have, so that whoever reads one finds it. */
function object(root: Json, { properties, required }: JsonObject, depth: number): Json {
  if (!isJsonObject(properties)) return {};
  const needed = new Set(Array.isArray(required) ? (required as readonly Json[]) : []);
  const shown = Object.entries(properties).filter(([name]) => depth <= MAX_OPTIONAL_DEPTH || needed.has(name));
  return Object.fromEntries(shown.map(([name, inner]) => [name, make(root, inner, depth + 1)] as const));
}

function lowest({ minimum, exclusiveMinimum, maximum }: JsonObject): number {
  const least = numberOf(minimum, numberOf(exclusiveMinimum, -1) + 1);
  return Math.min(least, numberOf(maximum, least));
}

function numberOf(value: Json | undefined, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function first(list: Json | undefined): Json | undefined {
  return Array.isArray(list) ? (list as readonly Json[])[0] : undefined;
}
