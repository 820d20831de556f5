import { RE2JS } from "re2js";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { patternSize } from "./pattern-size.ts";
import { pointerStep } from "./pointer.ts";
import { typeName, withArticle } from "./type-name.ts";

export interface SchemaFault {
  /** Of the value in a check, of the keyword when compiling. */
  readonly pointer: string;
  /** Completes "… must …", for instance `"url" must be a string`. */
  readonly reason: string;
  readonly keyword: string;
  /** The missing or unknown property. */
  readonly property?: string;
  /** The properties there could be, for a hint. */
  readonly known?: readonly string[];
}

export const MAX_FAULTS = 20;

/** How large the programs may be that patterns become: one, and all of a schema. */
const MAX_PATTERN_SIZE = 10_000;
const MAX_PATTERNS_SIZE = 100_000;

const SUBSCHEMA = ["items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"] as const;
const SUBSCHEMA_LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"] as const;
const SUBSCHEMA_MAPS = ["properties", "patternProperties", "dependentSchemas", "$defs"] as const;
export const TYPES: ReadonlySet<string> = new Set([
  "null",
  "boolean",
  "number",
  "integer",
  "string",
  "array",
  "object",
]);

/** Keywords of one kind of value each: written otherwise they would say nothing, and let everything through. */
const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] as const;
const COUNTS = [
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
] as const;

/** Keywords that are not checked by. To pass over them would let through what their author meant to refuse. */
const UNSUPPORTED: ReadonlyMap<string, string> = new Map([
  ["unevaluatedProperties", 'is not supported: list every field in one place, and say "additionalProperties": false'],
  ["unevaluatedItems", 'is not supported: say "items": false beside "prefixItems"'],
  ["$dynamicRef", 'is not supported: use "$ref"'],
  ["$recursiveRef", 'is not supported: use "$ref"'],
]);

/** Lists that are a choice: nothing fits an empty one. */
const CHOICES = ["type", "enum", "anyOf", "oneOf"] as const;

export interface FaultOptions {
  readonly most?: number;
  /** Also finds what can be checked by, but cannot have been meant. */
  readonly isNew?: boolean;
}

/** Looks through a schema for what cannot be checked, up to `most` faults, and compiles its patterns. Keeps its own stack. */
export function schemaFaults(
  root: Json,
  patterns: Map<string, RE2JS>,
  { most = MAX_FAULTS, isNew = false }: FaultOptions = {},
): readonly SchemaFault[] {
  const faults: SchemaFault[] = [];
  const left: { schema: Json; pointer: string }[] = [{ schema: root, pointer: "" }];
  // A reference may lead to where no keyword does, such as to "definitions", and many lead to the same place.
  const seen = new Set<Json>();
  const room: PatternRoom = { left: MAX_PATTERNS_SIZE };
  for (let next = left.pop(); next !== undefined && faults.length < most; next = left.pop()) {
    const { schema, pointer } = next;
    const fault = (keyword: string, reason: string): number =>
      faults.push({ pointer: keyword === "" ? pointer : pointer + pointerStep(keyword), keyword, reason });
    if (typeof schema === "boolean") continue;
    if (!isJsonObject(schema)) {
      fault("", `must be a JSON Schema, not ${withArticle(typeName(schema))}`);
      continue;
    }
    if (seen.has(schema)) continue;
    seen.add(schema);
    const { type, pattern, required } = schema;
    const types: readonly Json[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
    if (!types.every((name) => typeof name === "string" && TYPES.has(name))) {
      fault("type", `must be one of ${[...TYPES].join(", ")}`);
    }
    if (isNew) checkChoices(schema, fault);
    pushReferred(schema, root, left, fault);
    if (required !== undefined && !areNames(required)) fault("required", "must be a list of names");
    checkKeywords(schema, fault);
    if (pattern !== undefined) addPattern(pattern, patterns, room, (reason) => fault("pattern", reason));
    const { patternProperties } = schema;
    if (isJsonObject(patternProperties)) {
      for (const key of Object.keys(patternProperties)) {
        addPattern(key, patterns, room, (reason) => fault("patternProperties", reason));
      }
    }
    pushSubschemas(schema, pointer, left, fault);
    pushDependencies(schema, pointer, left, fault);
  }
  return faults;
}

function areNames(value: Json): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

function pushReferred(
  { $ref }: JsonObject,
  root: Json,
  left: { schema: Json; pointer: string }[],
  fault: (keyword: string, reason: string) => void,
): void {
  if ($ref === undefined) return;
  const target = typeof $ref === "string" ? resolveRef(root, $ref) : undefined;
  if (target === undefined) fault("$ref", 'must point into the same schema, as in "#/$defs/name"');
  else left.push({ schema: target, pointer: ($ref as string).slice(1) });
}

function checkChoices(schema: JsonObject, fault: (keyword: string, reason: string) => void): void {
  for (const keyword of CHOICES) {
    const list = schema[keyword];
    if (Array.isArray(list) && list.length === 0) fault(keyword, "must not be empty: nothing would fit");
  }
}

function checkKeywords(schema: JsonObject, fault: (keyword: string, reason: string) => void): void {
  const { multipleOf, enum: options, uniqueItems } = schema;
  for (const keyword of NUMBERS) {
    if (!isMissing(schema[keyword]) && typeof schema[keyword] !== "number") fault(keyword, "must be a number");
  }
  for (const keyword of COUNTS) {
    const count = schema[keyword];
    if (!isMissing(count) && !(Number.isInteger(count) && (count as number) >= 0)) {
      fault(keyword, "must be a whole number, 0 or more");
    }
  }
  if (!isMissing(multipleOf) && !(typeof multipleOf === "number" && multipleOf > 0)) {
    fault("multipleOf", "must be a number above 0");
  }
  if (!isMissing(options) && !Array.isArray(options)) fault("enum", "must be a list of values");
  for (const [keyword, reason] of UNSUPPORTED) {
    // `unevaluatedProperties: true` allows what is allowed anyway.
    if (!isMissing(schema[keyword]) && schema[keyword] !== true) fault(keyword, reason);
  }
  if (!isMissing(uniqueItems) && typeof uniqueItems !== "boolean") fault("uniqueItems", "must be true or false");
}

/** Some tools write null for what they do not say. */
function isMissing(value: Json | undefined): boolean {
  return value === undefined || value === null;
}

function pushSubschemas(
  schema: JsonObject,
  pointer: string,
  left: { schema: Json; pointer: string }[],
  fault: (keyword: string, reason: string) => void,
): void {
  for (const keyword of SUBSCHEMA) {
    const inner = schema[keyword];
    if (inner !== undefined) left.push({ schema: inner, pointer: `${pointer}/${keyword}` });
  }
  for (const keyword of SUBSCHEMA_LISTS) {
    const list = schema[keyword];
    if (list === undefined) continue;
    if (!Array.isArray(list)) fault(keyword, "must be a list of schemas");
    else list.forEach((inner: Json, i) => left.push({ schema: inner, pointer: `${pointer}/${keyword}/${i}` }));
  }
  for (const keyword of SUBSCHEMA_MAPS) {
    const map = schema[keyword];
    if (map === undefined) continue;
    if (!isJsonObject(map)) {
      fault(keyword, "must be an object of schemas");
      continue;
    }
    for (const [name, inner] of Object.entries(map)) {
      left.push({ schema: inner, pointer: `${pointer}/${keyword}${pointerStep(name)}` });
    }
  }
}

/** What a field brings with it: names of others, or in `dependencies` of earlier drafts also a schema. */
function pushDependencies(
  { dependentRequired, dependencies }: JsonObject,
  pointer: string,
  left: { schema: Json; pointer: string }[],
  fault: (keyword: string, reason: string) => void,
): void {
  if (!isMissing(dependentRequired)) {
    const isMap = isJsonObject(dependentRequired) && Object.values(dependentRequired).every(areNames);
    if (!isMap) fault("dependentRequired", "must be an object of lists of names");
  }
  if (isMissing(dependencies)) return;
  if (!isJsonObject(dependencies)) return fault("dependencies", "must be an object of lists of names, or of schemas");
  for (const [name, needed] of Object.entries(dependencies)) {
    if (!areNames(needed)) left.push({ schema: needed, pointer: `${pointer}/dependencies${pointerStep(name)}` });
  }
}

/** What is left for patterns that are not compiled yet. */
interface PatternRoom {
  left: number;
}

function addPattern(
  pattern: Json,
  patterns: Map<string, RE2JS>,
  room: PatternRoom,
  fault: (reason: string) => void,
): void {
  if (typeof pattern !== "string" || pattern.length > 1_000) {
    fault("must be a regular expression of at most 1,000 characters");
    return;
  }
  if (patterns.has(pattern)) return;
  const size = patternSize(pattern);
  if (size > MAX_PATTERN_SIZE || size > room.left) {
    fault("must be simpler: it repeats too much, alone or together with the other patterns of the schema");
    return;
  }
  room.left -= size;
  try {
    patterns.set(pattern, RE2JS.compile(RE2JS.translateRegExp(pattern)));
  } catch (error) {
    fault(`must be a regular expression without lookahead and back references (${(error as Error).message})`);
  }
}

/** What a local reference points to. */
export function resolveRef(root: Json, ref: string): Json | undefined {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at: Json | undefined = root;
  for (const step of ref.slice(2).split("/")) {
    if (typeof at !== "object" || at === null) return undefined;
    const key = decodeStep(step);
    at = Object.hasOwn(at, key) ? (at as JsonObject)[key] : undefined;
  }
  return at;
}

function decodeStep(step: string): string {
  const plain = step.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}
