import type { Labels } from "../../core/message.ts";
import {
  LABEL_NAME,
  LABEL_NAME_RULE,
  LABEL_VALUE,
  LABEL_VALUE_RULE,
  MAX_LABELS,
  OWN_LABELS,
} from "../../definition/labels.ts";
import { isJsonObject, type Json } from "../../json/json.ts";

export const OWN_LABEL_RULE = `must have no names that begin with ${OWN_LABELS}: those are the engine's own`;

/** Labels as somebody gave them, or what is wrong with them. Those of the engine itself may be asked for, and not given. */
export function readLabels(
  given: Json,
  { isQuery = false } = {},
): { readonly labels: Labels } | { readonly path: string; readonly reason: string } {
  if (!isJsonObject(given)) return { path: "", reason: "must be an object of names and their values" };
  const entries = Object.entries(given);
  if (entries.length > MAX_LABELS) return { path: "", reason: `must have at most ${MAX_LABELS} entries` };
  for (const [name, value] of entries) {
    if (!LABEL_NAME.test(name)) return { path: `/${name.slice(0, 80)}`, reason: LABEL_NAME_RULE };
    if (name.startsWith(OWN_LABELS) && !isQuery) return { path: `/${name}`, reason: OWN_LABEL_RULE };
    if (typeof value !== "string" || !LABEL_VALUE.test(value) || !value.isWellFormed()) {
      return { path: `/${name}`, reason: LABEL_VALUE_RULE };
    }
  }
  return { labels: given as Labels };
}

/** `name=value,name=value`, as queries have it; undefined if it is not that. */
export function parseLabels(text: string): Labels | undefined {
  const pairs = text.split(",").map((pair) => /^([^=]*)=(.*)$/su.exec(pair));
  if (pairs.some((pair) => pair === null)) return undefined;
  const labels = Object.fromEntries(pairs.map((pair) => [pair![1]!, pair![2]!]));
  return "labels" in readLabels(labels, { isQuery: true }) ? labels : undefined;
}
