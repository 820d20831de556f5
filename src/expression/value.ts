import { exceeded } from "./meter.ts";
import { unresolved } from "./failure.ts";
import type { Json } from "../json/json.ts";

/** A value inside an expression: JSON, and CEL's integers, which are never the same as JSON's numbers. */
export type Value = null | boolean | number | bigint | string | readonly Value[] | { readonly [key: string]: Value };

/** What expressions build may be as deep as a config; what they read was checked before. */
const MAX_RESULT_DEPTH = 160;

/** The result of an expression as JSON. Integers beyond 2^53 and numbers such as 1/0.0 have no JSON form. */
export function toJson(value: Value, depth = 0): Json {
  if (typeof value === "bigint") {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return number;
    throw unresolved(`The integer ${value} is too large for JSON: it would lose digits.`);
  }
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw unresolved(`The result is ${value}, which JSON cannot carry.`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_RESULT_DEPTH) throw exceeded(`a result more than ${MAX_RESULT_DEPTH} deep`);
  return containerToJson(value, depth);
}

/** A container that is JSON already is handed on as it is: most results are a part of an output. */
function containerToJson(value: readonly Value[] | { readonly [key: string]: Value }, depth: number): Json {
  if (Array.isArray(value)) {
    const list = value as readonly Value[];
    const result = list.map((element) => toJson(element, depth + 1));
    return result.every((element, index) => element === list[index]) ? (list as readonly Json[]) : result;
  }
  let changed = false;
  const result: { [key: string]: Json } = {};
  for (const [key, member] of Object.entries(value)) {
    const json = toJson(member, depth + 1);
    changed ||= json !== member;
    put(result, key, json);
  }
  return changed ? result : (value as Json);
}

/** Sets an own property. A plain assignment to `__proto__` would change the object's prototype instead. */
export function put<Member>(object: { [key: string]: Member }, key: string, value: Member): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[key] = value;
  }
}

export function typeName(value: Value): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "bigint" || typeof value === "number") return "a number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
