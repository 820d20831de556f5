import { contentHash } from "../../../json/hash.ts";
import { isJsonObject, type Json } from "../../../json/json.ts";
import { type Context, type Need, needKey } from "../../machine.ts";
import type { ErrorValue } from "../../message.ts";
import { MAX_COLLECTED_BYTES, toValue } from "../../value.ts";
import { mapAllowance } from "../allowance.ts";
import { failedInside, MAP_FAILED } from "../letters.ts";
import { isMapDone, PART_ITEMS, sizeOf } from "../maps.ts";
import type { ExecutionState, MapRun } from "../state.ts";
import { configOf, type EngineNode, type EngineResult, invalid } from "./engine-node.ts";

const MAX_ITEMS = 100_000;
const MAX_CONCURRENCY = 1_000;
/** How many of the items that failed an error names. */
const SHOWN_ITEMS = 20;

/** Opens a map once its items are known, and closes it once they have ended. */
export const mapNode: EngineNode = (state, unit, context) => {
  return state.statusOf(unit) === "running" ? close(state, state.maps.get(unit)!, context) : open(state, unit, context);
};

function open(state: ExecutionState, unit: number, context: Context): EngineResult {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const { items, collect } = resolved.config;
  if (!Array.isArray(items)) return failed("MAP_ITEMS_INVALID", `"items" must be a list, not ${typeName(items)}`);
  if (items.length > MAX_ITEMS) {
    return failed("MAP_TOO_LARGE", `It has ${items.length} items; ${MAX_ITEMS} are allowed. Use a batch for more`);
  }
  if (collect !== undefined && typeof collect !== "boolean") return invalid("/collect", "must be true or false");
  if (items.length === 0) {
    return { kind: "completed", output: collect === false ? { total: 0, completed: 0, failed: 0 } : [] };
  }
  const { max_concurrency: most, tolerated_failures: tolerated } = resolved.config;
  if (!Number.isSafeInteger(most) || (most as number) < 1 || (most as number) > MAX_CONCURRENCY) {
    return invalid("/max_concurrency", `must be a whole number from 1 to ${MAX_CONCURRENCY}`);
  }
  const mayFail = toleratedOf(tolerated, items.length);
  if (mayFail === undefined) return invalid("/tolerated_failures", 'must be a whole number or a share such as "10%"');
  const chunked = items.length > PART_ITEMS;
  const units = chunked ? parts(items as readonly Json[]) : (items as readonly Json[]);
  const { value, blob } = toValue(units);
  const itemsHash = contentHash(JSON.stringify(items)).slice(0, 32);
  const old = state.maps.get(unit);
  const kept = old !== undefined && old.again !== "all" && old.itemsHash === itemsHash && old.chunked === chunked;
  return {
    kind: "opens",
    map: {
      items: value,
      itemsHash,
      count: units.length,
      total: items.length,
      chunked,
      // A part keeps to the limit by itself, so there is one part at a time.
      concurrency: chunked ? 1 : Math.min(most as number, mapAllowance(state, unit)),
      tolerated: mayFail,
      kept,
      seen: state.version,
      ...(collect === false && { collect }),
    },
    blobs: blob === undefined ? [] : [blob],
  };
}

function toleratedOf(tolerated: Json | undefined, total: number): number | undefined {
  if (typeof tolerated === "number") return Number.isSafeInteger(tolerated) && tolerated >= 0 ? tolerated : undefined;
  const share = typeof tolerated === "string" ? /^((?:100|\d{1,2})(?:\.\d+)?)%$/.exec(tolerated) : null;
  return share === null ? undefined : Math.floor((Number(share[1]) / 100) * total);
}

function parts(items: readonly Json[]): Json[] {
  const lists: Json[] = [];
  for (let i = 0; i < items.length; i += PART_ITEMS) lists.push(items.slice(i, i + PART_ITEMS));
  return lists;
}

/**
 * The results in the order of the items; null for a failure that was tolerated. Or only how many there are of each, for
 * whoever reads them one by one: then nothing grows with what they have to say.
 */
function close(state: ExecutionState, map: MapRun, context: Context): EngineResult {
  if (!isMapDone(map)) throw new Error(`map ${state.nameOf(map.node)} is not done`);
  if (map.failures > map.tolerated) return { kind: "failed", error: tooManyFailed(state, map) };
  // What was opened by an earlier release has it in its config only.
  if (map.collect === false || state.planOf(map.node).spec.config["collect"] === false) {
    const { total, failures } = map;
    return { kind: "completed", output: { total, completed: total - failures, failed: failures } };
  }
  const results: Json[] = [];
  const needs: Need[] = [];
  let neededBytes = 0;
  for (let unit = map.base; unit < map.base + map.count; unit++) {
    const output = state.statusOf(unit) === "completed" ? state.runs[unit]!.output : null;
    if (output === null) results.push(null);
    else if ("json" in output) results.push(output.json);
    else {
      const json = context.fetched(needKey(output));
      if (json === undefined) needs.push(output);
      neededBytes += "blob" in output ? output.blob.bytes : output.past.bytes;
      results.push(json ?? null);
    }
  }
  if (neededBytes > MAX_COLLECTED_BYTES) return outputTooLarge(neededBytes);
  if (needs.length > 0) return { kind: "needs", needs };
  const list = map.chunked ? results.flatMap((part, place) => partResults(part, place, state, map)) : results;
  const bytes = JSON.stringify(list).length;
  return bytes > MAX_COLLECTED_BYTES ? outputTooLarge(bytes) : { kind: "completed", output: list };
}

/** A part is an execution with one node, which is the map itself. Of one that failed there is nothing. */
function partResults(part: Json, place: number, state: ExecutionState, map: MapRun): Json[] {
  if (part === null) return Array.from({ length: sizeOf(map, place) }, () => null);
  return (part as { readonly [id: string]: Json[] })[state.plan.graph.ids[map.node]!]!;
}

function tooManyFailed(state: ExecutionState, map: MapRun): ErrorValue {
  const items: number[] = [];
  let first: Json = null;
  for (let place = 0; place < map.count && items.length < SHOWN_ITEMS; place++) {
    const { error } = state.runs[map.base + place] ?? {};
    if (!error || state.statusOf(map.base + place) !== "failed") continue;
    const inside = map.chunked ? failedInside(error) : undefined;
    first ??= inside?.first ?? (error as unknown as Json);
    if (inside === undefined) items.push(map.chunked ? place * PART_ITEMS : place);
    else items.push(...inside.items.map((item) => place * PART_ITEMS + item));
  }
  const shown = items.slice(0, SHOWN_ITEMS);
  const why = isJsonObject(first)
    ? `; ${state.plan.graph.ids[map.node]!}[${shown[0]}]: ${first["message"] as string}`
    : "";
  const message = `${map.failures} of ${map.total} items failed, ${map.tolerated} are tolerated${why}`;
  return { code: MAP_FAILED, message, retryable: false, details: { items: shown, first } };
}

function outputTooLarge(bytes: number): EngineResult {
  const limit = `${MAX_COLLECTED_BYTES} are allowed`;
  return failed("OUTPUT_TOO_LARGE", `The results of its items are ${bytes} bytes together; ${limit}`);
}

function failed(code: string, message: string): Extract<EngineResult, { kind: "failed" }> {
  return { kind: "failed", error: { code, message, retryable: false } };
}

function typeName(value: unknown): string {
  return value === null ? "null" : value === undefined ? "missing" : typeof value;
}
