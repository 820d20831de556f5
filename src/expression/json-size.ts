import { unresolved } from "./failure.ts";
import type { Json } from "../json/json.ts";

/** The most a config may grow to when its templates are filled in. */
export const MAX_RESOLVED_BYTES = 4 * 1_048_576;

/** A config and a value in it may each be 64 deep. Anything deeper did not come through our JSON parser. */
const MAX_VALUE_DEPTH = 128;

/** UTF-8 bytes. The loop is for keys and words: calling out to count eight characters costs more than the characters. */
export function textBytes(text: string): number {
  const length = text.length;
  if (length > 48) return Buffer.byteLength(text);
  for (let at = 0; at < length; at += 1) if (text.charCodeAt(at) > 127) return Buffer.byteLength(text);
  return length;
}

/**
 * The bytes of a value as compact JSON, not counting escapes. Gives up as soon as `limit` is passed, so that a large
 * value used a thousand times is not measured a thousand times to its end.
 */
export function jsonBytes(value: Json, limit: number): number {
  if (typeof value === "string") return textBytes(value) + 2;
  if (typeof value !== "object" || value === null) return String(value).length;
  const known = measured.get(value);
  if (known !== undefined) return known;

  const bytes = measure(value, limit);
  if (bytes > WORTH_REMEMBERING && bytes <= limit) measured.set(value, bytes);
  return bytes;
}

/** Values never change, and one output may go whole into the configs of a hundred thousand children. */
const measured = new WeakMap<object, number>();
const WORTH_REMEMBERING = 1_024;

function measure(value: Json, limit: number): number {
  let bytes = 0;
  let level: Json[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_VALUE_DEPTH) throw unresolved(`A value is nested more than ${MAX_VALUE_DEPTH} deep.`);
    const next: Json[] = [];
    for (const each of level) {
      bytes += ownBytes(each, next);
      if (bytes > limit) return bytes;
    }
    level = next;
  }
  return bytes;
}

/** The bytes of a value without what is inside it, which is put on `inside`. */
function ownBytes(value: Json, inside: Json[]): number {
  if (typeof value === "string") return textBytes(value) + 2;
  if (typeof value === "number") return Number.isInteger(value) && value >= 0 && value < 10 ? 1 : String(value).length;
  if (typeof value !== "object" || value === null) return String(value).length;
  if (Array.isArray(value)) {
    for (const element of value as readonly Json[]) inside.push(element);
    return 1 + Math.max(1, value.length);
  }
  const keys = Object.keys(value);
  let bytes = 1 + Math.max(1, keys.length);
  for (const key of keys) {
    bytes += textBytes(key) + 3;
    inside.push((value as { [key: string]: Json })[key]!);
  }
  return bytes;
}
