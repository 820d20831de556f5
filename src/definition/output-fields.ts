import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { resolveRef } from "../json/schema-faults.ts";

/** A part of a path that leads nowhere, and the names that would lead on. */
export interface UnknownField {
  readonly field: string;
  readonly known: readonly string[];
}

export function unknownKey(fields: JsonObject, step: string | number): UnknownField | undefined {
  if (typeof step !== "string" || Object.hasOwn(fields, step)) return undefined;
  return { field: step, known: Object.keys(fields) };
}

/**
 * Follows a path through the schema of an output. A schema that lists properties means those, unless it says that there
 * may be others; where it offers alternatives, or says nothing, every field may exist.
 */
export function unknownInSchema(root: Json, path: readonly (string | number)[]): UnknownField | undefined {
  let schema: Json | undefined = root;
  for (const step of path) {
    // A schema may refer to itself in a circle without ever saying anything.
    for (let hops = 0; isJsonObject(schema) && typeof schema["$ref"] === "string" && hops < 10; hops++) {
      schema = resolveRef(root, schema["$ref"]);
    }
    if (!isJsonObject(schema) || "anyOf" in schema || "oneOf" in schema || "allOf" in schema) return undefined;
    if (typeof step === "number") {
      schema = schema["items"];
      continue;
    }
    const { properties, patternProperties, additionalProperties } = schema;
    if (!isJsonObject(properties)) return undefined;
    if (Object.hasOwn(properties, step)) schema = properties[step];
    else if (
      patternProperties !== undefined ||
      (additionalProperties !== undefined && additionalProperties !== false)
    ) {
      return undefined;
    } else return { field: step, known: Object.keys(properties) };
  }
  return undefined;
}
