import { canonicalJson } from "../json/canonical.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";

interface Source {
  readonly name?: string;
  /** As `llm.extract` gives them. */
  readonly fields?: Readonly<Record<string, JsonObject>>;
  readonly values?: JsonObject;
  /** Of fields that bring none of their own. */
  readonly confidence?: number;
}

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface MergeConfig {
  readonly sources: readonly Source[];
  readonly locks?: JsonObject | null | readonly (JsonObject | null)[];
  /** Outputs of `review` nodes: what a person has corrected there is locked. */
  readonly reviews?: readonly (JsonObject | null)[];
  readonly prefer?: "confidence" | "first" | "last";
}

interface Candidate {
  readonly source: string;
  readonly value: Json;
  readonly confidence: number;
  readonly evidence: Json;
}

/**
 * `merge`: one value for each field out of several sources. A field that a person has corrected is locked: no source
 * overwrites it, however sure it is. Where sources disagree, `conflicts` says so.
 */
export const merge: Handler = (call) => {
  const { sources, locks: given = [], reviews = [], prefer = "confidence" } = call.config as unknown as MergeConfig;
  // A later correction is the correction of an earlier one.
  const corrections = [...[given].flat(), ...reviews.map(correctionsOf)];
  const locks: Record<string, Json> = Object.assign({}, ...corrections.filter((each) => each !== null));
  const candidates = candidatesOf(sources);
  const names = [...new Set([...candidates.keys(), ...Object.keys(locks)])];
  const fields: Record<string, JsonObject> = {};
  const conflicts: JsonObject[] = [];
  for (const name of names) {
    const offered = candidates.get(name) ?? [];
    if (Object.hasOwn(locks, name)) {
      fields[name] = { value: locks[name]!, confidence: 1, evidence: null, source: "lock", locked: true };
      continue;
    }
    const chosen = choose(offered, prefer);
    fields[name] = { ...chosen, locked: false };
    const others = offered.filter(({ value }) => value !== null && !isSame(value, chosen.value));
    if (others.length > 0) {
      conflicts.push({ field: name, values: [chosen, ...others].map(({ source, value }) => ({ source, value })) });
    }
  }
  const shares = Object.values(fields).filter(({ value }) => value !== null);
  return {
    fields,
    values: each(fields, "value"),
    confidences: each(fields, "confidence"),
    evidence: each(fields, "evidence"),
    locks,
    confidence: shares.length === 0 ? 0 : Math.min(...shares.map(({ confidence }) => confidence as number)),
    conflicts,
  };
};

function each(fields: Readonly<Record<string, JsonObject>>, part: string): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field[part]!]));
}

/** Of a review that was rejected nothing holds. Without a list of what was changed, all of it was. */
function correctionsOf(review: JsonObject | null): JsonObject | null {
  const data = review?.["data"];
  if (review?.["decision"] !== "approve" || !isJsonObject(data)) return null;
  const { locks } = review;
  if (!Array.isArray(locks)) return data;
  return Object.fromEntries(Object.entries(data).filter(([name]) => (locks as readonly Json[]).includes(name)));
}

function isSame(one: Json, other: Json): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

function candidatesOf(sources: readonly Source[]): ReadonlyMap<string, readonly Candidate[]> {
  const candidates = new Map<string, Candidate[]>();
  for (const [index, { name, fields = {}, values = {}, confidence: usual = 1 }] of sources.entries()) {
    const source = name ?? `source ${index + 1}`;
    const add = (field: string, value: Json, confidence: Json | undefined, evidence: Json | undefined): void => {
      const share = typeof confidence === "number" ? confidence : usual;
      const list = candidates.get(field) ?? [];
      candidates.set(field, list);
      list.push({ source, value, confidence: share, evidence: evidence ?? null });
    };
    for (const [field, given] of Object.entries(fields)) {
      if (isJsonObject(given)) add(field, given["value"] ?? null, given["confidence"], given["evidence"]);
    }
    for (const [field, value] of Object.entries(values)) add(field, value, undefined, undefined);
  }
  return candidates;
}

/** A value that is there comes before one that is not, whatever else is preferred. */
function choose(offered: readonly Candidate[], prefer: "confidence" | "first" | "last"): Candidate {
  const present = offered.filter(({ value }) => value !== null);
  const pool = present.length > 0 ? present : offered;
  if (prefer === "first") return pool[0]!;
  if (prefer === "last") return pool.at(-1)!;
  return pool.reduce((best, each) => (each.confidence > best.confidence ? each : best));
}
