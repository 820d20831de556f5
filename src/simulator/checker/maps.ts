import type { MapOpened, NodeCompleted, NodeFailed } from "../../core/execution/events.ts";
import type { Json } from "../../json/json.ts";
import { shorten } from "./data.ts";
import { isBeginning } from "./graph-order.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { MISSING, type Reader, UNKNOWN, valueOf } from "./reference-path.ts";
import { fieldOf } from "./reference-nodes.ts";
import { toleratedFailures } from "./reference-rules.ts";
import { sameJson, sameValue } from "./same-json.ts";

/** A map with more items than this is made of parts, each an execution of its own. */
const PART_ITEMS = 1000;
const MOST_ITEMS = 100_000;

/** How many items have failed, those inside the parts of a large map included; of a part that failed for another reason all. */
function failuresOf(map: NodeStory): number {
  const { items, opened } = map;
  let failures = 0;
  for (const { status, failures: inside, item } of items) {
    const size = opened?.chunked === true ? Math.min(PART_ITEMS, opened.total - item!.index * PART_ITEMS) : 1;
    failures += status === "failed" && inside <= toleratedOf(map) ? size : inside;
  }
  return failures;
}

/** Nothing more is to come of its items: all have ended, or too many have failed. */
export function isMapOver(map: NodeStory): boolean {
  return failuresOf(map) > toleratedOf(map) || map.items.every((item) => item.end !== null);
}

export function toleratedOf({ spec, opened }: NodeStory): number {
  return toleratedFailures(spec.config["tolerated_failures"], opened?.total ?? 0);
}

/** How many items may be under way at once; of a large map that is so many parts, which have as many between them. */
export function concurrencyOf({ spec, opened }: NodeStory): number {
  const limit = spec.config["max_concurrency"];
  const items = typeof limit === "number" ? limit : 1;
  // A map that calls children has no more of them than its share of what may be open below the root.
  return Math.min(
    opened?.concurrency ?? Infinity,
    opened?.chunked === true ? Math.max(1, Math.floor(items / PART_ITEMS)) : items,
  );
}

/** A map runs its items as it says: how many at a time, how many may fail, and what comes of it in which order. */
const maps: Invariant = {
  id: "C6-map",
  name: "maps",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null) return;
    if (node.item !== null) return judgeItem(step, node, found);
    if (node.spec.handler !== "map") return;
    if (event.kind === "mapOpened") return judgeOpening(step, event, readerOf(step, node), found);
    if (event.kind === "nodeCompleted") return judgeResult(step, event, readerOf(step, node), found);
    if (event.kind === "nodeFailed") judgeFailure(step, event, readerOf(step, node), found);
  },
};

function judgeOpening(step: Step, event: MapOpened, reader: Reader, found: Found): void {
  const { node, story } = reader;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (node.opened !== null) return say("It was opened a second time");
  if (event.seen > story.version || event.seen < node.joinedVersion) {
    say(`Its items were made from version ${event.seen}, and must be from ${node.joinedVersion} to ${story.version}`);
  }
  const items = itemsOf({ ...reader, seen: event.seen });
  if (items === UNKNOWN) return;
  if (!Array.isArray(items)) return say("It was opened, and what it is given is no list");
  const list = items as readonly Json[];
  const isLarge = list.length > PART_ITEMS;
  const parts = isLarge ? inParts(list) : list;
  if (event.total !== list.length || event.chunked !== isLarge || event.count !== parts.length) {
    say(`It was opened with ${event.count} of ${event.total} items, and it is given ${list.length}`);
  } else if (!sameValue(event.items, parts)) say("It was opened with other items than it is given");
  step.evidence.learn(parts);
  judgeKept(step, event, node, found);
}

/** What an earlier generation has done of the same items stays done, unless somebody wants the node made anew. */
function judgeKept({ story, ...step }: Step, event: MapOpened, node: NodeStory, found: Found): void {
  const scope = story.openedBy?.scope;
  const isPart = scope === "failed" || scope === "letters";
  const before = node.lastItems;
  const isSame = before !== null && isPart && sameJson(event.items as Json, before as Json);
  if (event.kept === isSame) return;
  const how = event.kept ? "were taken from before" : "were not taken from before";
  found(`Its items ${how}, and they are ${isSame ? "the same" : "others"}`, placeOf({ story, ...step }));
}

function itemsOf(reader: Reader): Json | typeof UNKNOWN {
  const items = fieldOf("items", reader);
  return items === undefined || items === MISSING ? UNKNOWN : items;
}

function inParts(items: readonly Json[]): Json[] {
  const parts: Json[] = [];
  for (let at = 0; at < items.length; at += PART_ITEMS) parts.push(items.slice(at, at + PART_ITEMS));
  return parts;
}

function judgeItem(step: Step, item: NodeStory, found: Found): void {
  const { story } = step;
  const { map } = item.item!;
  if (!isBeginning(step)) return;
  const limit = concurrencyOf(map);
  // One that stood at a gate is under way already.
  const underWay = story.mapped.get(map);
  const others = (underWay?.size ?? 0) - (underWay?.has(item) === true ? 1 : 0);
  if (others >= limit) {
    found(`It was begun while ${others} items of its map were under way, and ${limit} may be`, placeOf(step));
  }
  // What stands at a gate may be refused there at the same time as others, and what asks a cache may be answered.
  const { event } = step;
  const isAnswered = event.kind === "nodeFailed" || (event.kind === "nodeCompleted" && event.reason === "cached");
  const isTold = isAnswered && underWay?.has(item) === true;
  if (!isTold && failuresOf(map) > toleratedOf(map)) {
    found("It was begun after more items of its map had failed than are tolerated", placeOf(step));
  }
}

function judgeResult(step: Step, event: NodeCompleted, reader: Reader, found: Found): void {
  const { node, evidence } = reader;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (node.opened === null) {
    const items = itemsOf(reader);
    if (items !== UNKNOWN && !(Array.isArray(items) && items.length === 0)) say("It is done, and its items never ran");
    else if (!sameValue(event.output, isCounted(node) ? counts(0, 0) : [])) {
      say("It had no items, and its result is not empty");
    }
    return;
  }
  const open = node.items.filter((item) => item.end === null);
  if (open.length > 0) return say(`It is done, and ${open.length} of its items are not, as ${open[0]!.instance}`);
  const failures = failuresOf(node);
  if (failures > toleratedOf(node))
    return say(`It is done with ${failures} failed items; ${toleratedOf(node)} may fail`);
  if (isCounted(node)) {
    if (!sameValue(event.output, counts(node.opened.total, failures)))
      say("It counts its items otherwise than they are");
    return;
  }
  const results: Json[] = [];
  for (const item of node.items) {
    const result = item.status === "completed" && item.output !== null ? valueOf(item.output, evidence) : null;
    if (result === UNKNOWN) return;
    if (node.opened.chunked) results.push(...partResults(result, item, node));
    else results.push(result);
  }
  evidence.learn(results);
  if (!sameValue(event.output, results)) say(`Its result is not that of its items, in order: ${shorten(results)}`);
}

/** Whoever wants no results gets their numbers. */
function isCounted({ spec }: NodeStory): boolean {
  return spec.config["collect"] === false;
}

function counts(total: number, failed: number): Json {
  return { total, completed: total - failed, failed };
}

/** A part is an execution whose only node is the map. Of one that failed there is nothing. */
function partResults(result: Json, { item }: NodeStory, { shape, opened }: NodeStory): readonly Json[] {
  const list = (result as Readonly<Record<string, Json>> | null)?.[shape.id];
  if (Array.isArray(list)) return list as readonly Json[];
  return Array.from({ length: Math.min(PART_ITEMS, opened!.total - item!.index * PART_ITEMS) }, () => null);
}

function judgeFailure(step: Step, event: NodeFailed, reader: Reader, found: Found): void {
  const { node } = reader;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  const { code } = event.error;
  const items = node.opened === null ? itemsOf(reader) : UNKNOWN;
  if (code === "MAP_ITEMS_INVALID" && Array.isArray(items)) say("Its items were refused, and they are a list");
  if (code === "MAP_TOO_LARGE" && Array.isArray(items) && items.length <= MOST_ITEMS) {
    say(`It was refused for its size, and has ${items.length} items`);
  }
  if (code !== "MAP_FAILED") return;
  const failures = failuresOf(node);
  if (failures <= toleratedOf(node)) say(`It failed because of ${failures} items; ${toleratedOf(node)} may fail`);
}

export const MAPS: readonly Invariant[] = [maps];
