import type { Json, JsonObject } from "../json/json.ts";
import { MAX_SECONDS } from "./fields.ts";

/** A node type that comes with Millrace. */
export interface BuiltinHandler {
  /** Runs in the engine, without a worker. */
  readonly engine: boolean;
  /** Of nodes that run on a worker; 30 s if it says nothing. */
  readonly defaultTimeoutSeconds?: number;
  /** `config.mock` stands for the handler's result, and is taken off before the config is checked. */
  readonly mockable: boolean;
  /** JSON Schema of the config. Written as such: to load a library for it would cost every short command its time. */
  readonly config: JsonObject;
  /** Rules between fields, which a schema cannot say in words that help. */
  readonly also?: (config: JsonObject) => string | undefined;
  /** JSON Schema of the output, if it is known from the config. */
  readonly output?: (config: JsonObject) => Json | undefined;
  /** An object with the fields of the output, where the config itself shows them. */
  readonly outputFields?: (config: JsonObject) => JsonObject | undefined;
}

/** The words that the schemas of built-in configs are written in. */
export const ANY: JsonObject = {};
export const STRING: JsonObject = { type: "string" };
export const TEXT: JsonObject = { type: "string", minLength: 1 };
export const NAME: JsonObject = { type: "string", minLength: 1, maxLength: 128 };
export const OBJECT: JsonObject = { type: "object" };
export const FLAG: JsonObject = { type: "boolean" };
export const SCALAR: JsonObject = { type: ["string", "number", "boolean"] };
export const SECONDS: JsonObject = { type: "number", minimum: 0, maximum: MAX_SECONDS };
export const LIMIT_SECONDS: JsonObject = { type: "number", exclusiveMinimum: 0, maximum: MAX_SECONDS };
export const IDS: JsonObject = { anyOf: [STRING, listOf(STRING, 1)] };
export const JSON_SCHEMA: JsonObject = { anyOf: [OBJECT, { type: "boolean" }] };

/** An object with these properties and no others; a name that ends in `?` may be missing. */
export function object(properties: JsonObject): JsonObject {
  const names = Object.keys(properties);
  const required = names.filter((name) => !name.endsWith("?"));
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ""), properties[name]!])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

export function mapOf(values: JsonObject): JsonObject {
  return { type: "object", additionalProperties: values };
}

export function listOf(items: JsonObject, minItems = 0): JsonObject {
  return { ...(minItems > 0 && { minItems }), type: "array", items };
}

/** The first is the default. */
export function oneOf(...names: readonly [string, ...string[]]): JsonObject {
  return { default: names[0], type: "string", enum: names };
}

export function integer(minimum: number, maximum?: number, standing?: number): JsonObject {
  const more = { ...(maximum !== undefined && { maximum }) };
  return { ...(standing !== undefined && { default: standing }), type: "integer", minimum, ...more };
}

/** Any field but these is unknown. `closed` turns names into the schema of such an output. */
export function closed(...names: readonly string[]): JsonObject {
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, true])),
    additionalProperties: false,
  };
}

export function exactlyOne(config: JsonObject, ...names: readonly string[]): string | undefined {
  const given = names.filter((name) => config[name] !== undefined);
  if (given.length === 1) return undefined;
  const list = names.map((name) => `"${name}"`).join(" or ");
  return given.length === 0 ? `must have ${list}` : `must have only one of ${list}`;
}
