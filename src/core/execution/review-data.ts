import { canonicalJson } from "../../json/canonical.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { FirstDecision, ReviewSpec } from "./events.ts";

/**
 * What a decision is about: whoever approves without a word takes what was proposed. To the second of two that is what the
 * first has approved, with his corrections; undefined if those were too large to be kept.
 */
export function decidedData(
  { values }: ReviewSpec,
  decision: "approve" | "reject",
  data: Json,
  first?: FirstDecision,
): Json | undefined {
  if (data !== null || decision === "reject") return data;
  return first?.decision === "approve" ? first.data : (values ?? null);
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
