import { isJsonObject, type Json } from "../json/json.ts";
import { CACHE_FIELDS } from "./fields.ts";
import type { ProblemList } from "./problems.ts";
import { fieldReader, readFields, wrongType } from "./read-fields.ts";
import type { CacheSpec } from "./workflow.ts";

const CACHE = fieldReader("A cache", CACHE_FIELDS);

/** How the outputs of a node are kept; undefined if they are not, or there is nothing to go by. */
export function loadCache(raw: Json, pointer: string, problems: ProblemList): CacheSpec | undefined {
  if (raw === false) return undefined;
  if (raw !== true && !isJsonObject(raw)) {
    wrongType("cache", "true, false or an object", raw, pointer, problems);
    return undefined;
  }
  const given = raw === true ? {} : readFields(CACHE, raw, () => pointer, problems);
  const { key, ttl_seconds: ttl = CACHE_FIELDS["ttl_seconds"]!.default as number } = given as Partial<CacheSpec>;
  return { ...(key !== undefined && { key }), ttl_seconds: ttl };
}
