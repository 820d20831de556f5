import { contentHash } from "./hash.ts";
import type { Json, JsonObject } from "./json.ts";

/** Far above MAX_JSON_DEPTH; only a value that refers to itself gets here. */
const DEPTH_LIMIT = 1_000;

/**
 * JSON text that is the same for equal values: no spaces, keys sorted by UTF-16 code unit. Keys that are array indexes
 * ("0", "17") come before the others in numeric order, because JavaScript objects cannot hold them otherwise.
 */
export function canonicalJson(value: Json): string {
  return JSON.stringify(withSortedKeys(value));
}

/** SHA-256 of the canonical text, in hexadecimal. */
export function canonicalHash(value: Json): string {
  return contentHash(canonicalJson(value));
}

interface Frame {
  readonly source: JsonObject | readonly Json[];
  /** The keys of an object in sorted order, null for an array. */
  readonly keys: readonly string[] | null;
  /** The values so far, in order; only written out if one of them changed or the keys were out of order. */
  readonly values: Json[];
  changed: boolean;
}

/**
 * The same value with sorted keys. What is sorted already is not copied, and JSON.stringify does the writing: ten times
 * faster than a writer of our own on a definition of 30 MB. The walk keeps its own stack.
 */
export function withSortedKeys(value: Json): Json {
  if (isFlat(value)) return value;
  const stack: Frame[] = [frameOf(value as JsonObject | readonly Json[])];
  for (;;) {
    const frame = stack.at(-1)!;
    const count = frame.keys === null ? (frame.source as readonly Json[]).length : frame.keys.length;
    let next: JsonObject | readonly Json[] | undefined;
    while (frame.values.length < count) {
      const child = memberOf(frame, frame.values.length);
      if (!isFlat(child)) {
        next = child as JsonObject | readonly Json[];
        break;
      }
      frame.values.push(child);
    }
    if (next !== undefined) {
      if (stack.length >= DEPTH_LIMIT) throw new RangeError("canonicalJson: the value refers to itself");
      stack.push(frameOf(next));
      continue;
    }
    stack.pop();
    const done = frame.changed ? rebuild(frame) : frame.source;
    const parent = stack.at(-1);
    if (parent === undefined) return done;
    if (done !== frame.source) parent.changed = true;
    parent.values.push(done);
  }
}

function memberOf(frame: Frame, index: number): Json {
  return frame.keys === null
    ? (frame.source as readonly Json[])[index]!
    : (frame.source as JsonObject)[frame.keys[index]!]!;
}

/** Nothing below it can be out of order. */
function isFlat(value: Json): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (!Array.isArray(value)) return false;
  for (const item of value as readonly Json[]) if (typeof item === "object" && item !== null) return false;
  return true;
}

function frameOf(source: JsonObject | readonly Json[]): Frame {
  if (Array.isArray(source)) return { source, keys: null, values: [], changed: false };
  const keys = Object.keys(source);
  for (let i = 1; i < keys.length; i++) {
    if (keys[i - 1]! > keys[i]!) return { source, keys: keys.sort(), values: [], changed: true };
  }
  return { source, keys, values: [], changed: false };
}

function rebuild(frame: Frame): Json {
  if (frame.keys === null) return frame.values;
  const sorted: Record<string, Json> = {};
  for (let i = 0; i < frame.keys.length; i++) {
    const key = frame.keys[i]!;
    // Assigning to this one name would set the prototype and lose the value.
    if (key === "__proto__") Object.defineProperty(sorted, key, { value: frame.values[i], enumerable: true });
    else sorted[key] = frame.values[i]!;
  }
  return sorted;
}
