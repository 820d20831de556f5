import { canonicalJson } from "../../json/canonical.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { ReviewSpec } from "./events.ts";

/** What a decision is about: whoever approves without a word takes the values that were proposed. */
export function decidedData({ values }: ReviewSpec, decision: "approve" | "reject", data: Json): Json {
  return data === null && decision === "approve" && values !== undefined ? values : data;
}

/**
 * The fields that a person has set otherwise than was proposed. Nothing that comes later may overwrite them.
 * Where nothing was proposed nothing was corrected.
 */
export function locksOf({ values }: ReviewSpec, data: Json): { readonly locks?: string[] } {
  if (!isJsonObject(values)) return {};
  if (!isJsonObject(data)) return { locks: [] };
  const isOther = (name: string): boolean =>
    !Object.hasOwn(values, name) || canonicalJson(values[name]!) !== canonicalJson(data[name]!);
  return { locks: Object.keys(data).filter(isOther) };
}
