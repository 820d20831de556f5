import type { Value } from "../../core/value.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";

/** Equal as JSON: the order of keys does not matter. */
export function sameJson(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  const [left, right] = [one as Readonly<Record<string, Json>>, other as Readonly<Record<string, Json>>];
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key]!, right[key]!));
}

/** Whether an event's value is this one; a blob is known by the hash of its JSON. */
export function sameValue(value: Value, json: Json | undefined): boolean {
  if ("json" in value) return sameJson(value.json, json ?? null);
  return value.blob.hash === contentHash(JSON.stringify(json ?? null));
}
