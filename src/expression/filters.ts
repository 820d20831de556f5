import { ExpressionFailure, tooLarge, unresolved } from "./failure.ts";
import { jsonBytes, MAX_RESOLVED_BYTES } from "./json-size.ts";
import { MISSING } from "./step.ts";
import { typeName } from "./value.ts";
import type { Missing } from "./step.ts";
import type { Json } from "../json/json.ts";

export interface Filter {
  readonly name: string;
  /** Set for `default` only: what stands in for a missing or null value. */
  readonly fallback?: Json;
  apply(value: Json): Json | Missing;
}

const PLAIN_FILTERS: Readonly<Record<string, (value: Json) => Json | Missing>> = {
  json: (value) => compactJson(value),
  upper: (value) => textFor("upper", value).toUpperCase(),
  lower: (value) => textFor("lower", value).toLowerCase(),
  trim: (value) => textFor("trim", value).trim(),
  length: lengthOf,
  first: (value) => listFor("first", value)[0] ?? endOf(value),
  last: (value) => listFor("last", value).at(-1) ?? endOf(value),
};

export const FILTER_NAMES: readonly string[] = ["default", "join", "round", ...Object.keys(PLAIN_FILTERS)].sort();

/** Makes a filter, or says in a sentence why it cannot be made. */
export function compileFilter(name: string, literal: Json | undefined): Filter | string {
  switch (name) {
    case "default":
      if (literal === undefined)
        return 'The filter `default` needs a literal: default(0), default("none"), default([]).';
      return { name, fallback: literal, apply: (value) => value ?? literal };
    case "join":
      if (typeof literal !== "string") return 'The filter `join` needs a separator: join(", ").';
      return { name, apply: (value) => joined(listFor("join", value), literal) };
    case "round": {
      const digits = literal ?? 0;
      if (typeof digits !== "number" || !Number.isInteger(digits) || digits < 0 || digits > 15) {
        return "The filter `round` takes a number of digits from 0 to 15.";
      }
      return { name, apply: (value) => rounded(value, digits) };
    }
    default:
  }
  const apply = Object.hasOwn(PLAIN_FILTERS, name) ? PLAIN_FILTERS[name] : undefined;
  if (apply === undefined) return `There is no filter \`${name}\`. There are: ${FILTER_NAMES.join(", ")}.`;
  return literal === undefined ? { name, apply } : `The filter \`${name}\` takes no argument.`;
}

/** Runs a value through filters. What is missing or null goes straight to the next `default`, if there is one. */
export function applyFilters(filters: readonly Filter[], start: Json | Missing): Json | Missing {
  let value = start;
  for (let index = 0; index < filters.length; index += 1) {
    const filter = filters[index]!;
    if (value === MISSING || value === null) {
      const next = filters.findIndex((each, at) => at >= index && each.fallback !== undefined);
      if (next !== -1) {
        value = filters[next]!.fallback!;
        index = next;
        continue;
      }
      if (value === MISSING) return MISSING;
    }
    value = filter.apply(value);
  }
  return value;
}

/** Compact JSON of a value. Measured first: a value that is too large must not become a text first. */
function compactJson(value: Json): string {
  if (jsonBytes(value, MAX_RESOLVED_BYTES) > MAX_RESOLVED_BYTES) throw tooLarge();
  return JSON.stringify(value);
}

/** A value inside text: strings as they are, all else as compact JSON. */
export function asText(value: Json): string {
  return typeof value === "string" ? value : compactJson(value);
}

function textFor(filter: string, value: Json): string {
  if (typeof value === "string") return value;
  throw unfit(filter, "a text", value);
}

function listFor(filter: string, value: Json): readonly Json[] {
  if (Array.isArray(value)) return value as readonly Json[];
  throw unfit(filter, "a list", value);
}

/** The end of a list is null if null stands there, and missing if the list is empty. */
function endOf(list: Json): Json | Missing {
  return (list as readonly Json[]).length === 0 ? MISSING : null;
}

/** Characters of a text (not UTF-16 units, as in `size()`), elements of a list, keys of an object. */
function lengthOf(value: Json): number {
  if (typeof value === "string") return codePoints(value);
  if (typeof value !== "object" || value === null) throw unfit("length", "a text, list or object", value);
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

export function codePoints(text: string): number {
  let pairs = 0;
  for (let at = 0; at + 1 < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0xd800 && code <= 0xdbff) {
      const next = text.charCodeAt(at + 1);
      if (next >= 0xdc00 && next <= 0xdfff) {
        pairs += 1;
        at += 1;
      }
    }
  }
  return text.length - pairs;
}

function joined(list: readonly Json[], separator: string): string {
  let length = 0;
  const texts: string[] = [];
  for (const element of list) {
    const text = asText(element);
    length += text.length + separator.length;
    if (length > MAX_RESOLVED_BYTES + separator.length) throw tooLarge();
    texts.push(text);
  }
  return texts.join(separator);
}

/** Half away from zero, on the decimal form that people see: 1.005 rounds to 1.01. */
function rounded(value: Json, digits: number): number {
  if (typeof value !== "number") throw unfit("round", "a number", value);
  const size = String(Math.abs(value));
  if (size.includes("e")) return Number(value.toFixed(digits));
  const whole = Math.round(Number(`${size}e${digits}`));
  const result = Number.isSafeInteger(whole) ? Number(`${whole}e-${digits}`) : Math.abs(value);
  return value < 0 && result !== 0 ? -result : result;
}

function unfit(filter: string, wanted: string, value: Json): ExpressionFailure {
  return unresolved(`The filter \`${filter}\` needs ${wanted}, and got ${typeName(value)}.`);
}
