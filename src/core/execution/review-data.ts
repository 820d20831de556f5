import { quote } from "../../errors/registry.ts";
import { canonicalJson } from "../../json/canonical.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import { Schema } from "../../json/schema.ts";
import type { FirstDecision, ReviewSpec } from "./events.ts";

/**
 * Why data is refused, by the form of a review; undefined if it fits. Of a form that an earlier release has taken, and this would not,
 * what can be checked is.
 */
export function formRefusal(
  form: Json | undefined,
  data: Json,
): { readonly refused: "REVIEW_INVALID"; readonly detail?: string; readonly errors: Json } | undefined {
  if (form === undefined) return undefined;
  const schema = Schema.ofStored(form);
  const faults = schema.check(data);
  if (faults.length === 0) return undefined;
  const errors = faults.map(({ pointer, reason }) => ({ path: pointer, message: reason }));
  const wanted = data === null ? fieldsOf(schema, form) : [];
  if (wanted.length === 0) return { refused: "REVIEW_INVALID", errors };
  // Who gave nothing is not helped by hearing that nothing is no object.
  const detail = `No data was given, and the form of the review asks for ${wanted.map(quote).join(", ")}`;
  return { refused: "REVIEW_INVALID", detail, errors };
}

/** The fields that a form demands; of one that demands none, those that it has. */
function fieldsOf(schema: Schema, form: Json): string[] {
  const demanded = schema
    .check({})
    .flatMap(({ pointer, property, keyword }) =>
      keyword === "required" && pointer === "" && property !== undefined ? [property] : [],
    );
  if (demanded.length > 0) return demanded;
  const known = isJsonObject(form) ? form["properties"] : undefined;
  return isJsonObject(known) ? Object.keys(known).slice(0, MAX_NAMES) : [];
}

const MAX_NAMES = 20;

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
