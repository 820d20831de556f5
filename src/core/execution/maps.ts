import type { MapOpened } from "./events.ts";
import { NodeRun } from "./node-run.ts";
import type { ExecutionState, MapRun } from "./state.ts";
import { returnAsks } from "./asks.ts";
import { dequeue, endWait, enqueue, isClosing, reopenedRun, setDue, setLive } from "./units.ts";

/** Nothing more will come of its items: all have ended, or too many have failed. */
export function isMapDone(map: MapRun): boolean {
  return map.failures > map.tolerated || map.completed + map.failed === map.count;
}

/** A map with more items is made of parts, each an execution of its own; so no state grows with the number of items. */
export const PART_ITEMS = 1000;

/** How many items a unit of a map stands for: one, or those of a part. */
export function sizeOf(map: Pick<MapRun, "chunked" | "total">, place: number): number {
  return map.chunked ? Math.min(PART_ITEMS, map.total - place * PART_ITEMS) : 1;
}

/** The part that an item of a large map is in, and its name there. */
export function placeInPart(
  state: ExecutionState,
  name: string,
): { readonly unit: number; readonly name: string } | undefined {
  const item = /^(.+)\[(\d+)\]$/.exec(name);
  const map = item === null ? undefined : state.maps.get(state.plan.graph.indexOf.get(item[1]!) ?? -1);
  const index = Number(item?.[2]);
  if (map?.chunked !== true || index >= map.total) return undefined;
  return { unit: map.base + Math.floor(index / PART_ITEMS), name: `${item![1]!}[${index % PART_ITEMS}]` };
}

/** The items are known: each becomes a unit. What an earlier generation has done of the same items stays done. */
export function openMap(state: ExecutionState, node: number, event: MapOpened): void {
  const old = state.maps.get(node);
  const base = state.addUnits(node, event.count);
  const map: MapRun = {
    node,
    base,
    count: event.count,
    total: event.total,
    chunked: event.chunked,
    concurrency: event.concurrency,
    tolerated: event.tolerated,
    items: event.items,
    itemsHash: event.itemsHash,
    seen: event.seen,
    ...(event.collect !== undefined && { collect: event.collect }),
    next: 0,
    open: 0,
    completed: 0,
    failed: 0,
    failures: 0,
    again: null,
    edited: false,
    firstRerun: firstRerun(state, old, event.count),
  };
  if (old !== undefined) carryOver(state, old, map, event.kept);
  // Behind all others, as its units are.
  state.maps.delete(node);
  state.maps.set(node, map);
  placeItems(state, map);
  closeIfDone(state, map);
}

/** Items beyond the new count are forgotten; whoever comes in their place later must not get their keys. */
function firstRerun(state: ExecutionState, old: MapRun | undefined, count: number): number {
  let first = old?.firstRerun ?? 1;
  for (let place = count; place < (old?.count ?? 0); place++) {
    first = Math.max(first, (state.runs[old!.base + place]?.rerun ?? 0) + 1);
  }
  return first;
}

function carryOver(state: ExecutionState, old: MapRun, map: MapRun, kept: boolean): void {
  for (let place = 0; place < old.count; place++) {
    const before = old.base + place;
    const unit = map.base + place;
    if (place < map.count && state.runs[before] !== undefined) {
      const status = state.statusOf(before);
      const isNamed = !Array.isArray(old.again) || old.again.includes(place);
      const stays =
        kept &&
        ((status === "completed" && (state.runs[before].failures === 0 || !isNamed)) ||
          (status === "failed" && !isNamed));
      if (stays) {
        state.runs[unit] = state.runs[before];
        state.setStatus(unit, status);
        if (status === "completed") map.completed++;
        else map.failed++;
        map.failures += failuresIn(state, map, unit);
      } else state.runs[unit] = reopenedRun(state, before, { edited: old.edited, sameChild: kept, useLate: kept });
    }
    state.runs[before] = undefined;
    state.setStatus(before, "pending");
  }
}

/** Puts items in line, as many as may be under way. */
export function placeItems(state: ExecutionState, map: MapRun): void {
  while (map.open < map.concurrency && map.next < map.count) {
    const unit = map.base + map.next++;
    if (state.isNodeEnded(unit)) continue;
    if (state.runs[unit] === undefined) {
      const run = (state.runs[unit] = new NodeRun(state.generation));
      run.rerun = map.firstRerun;
    }
    map.open++;
    enqueue(state, unit);
  }
}

/** How many items failed with this one: a part that failed for another reason than its items has none that is good. */
function failuresIn(state: ExecutionState, map: MapRun, unit: number): number {
  const { failures } = state.runs[unit]!;
  if (state.statusOf(unit) !== "failed" || failures > map.tolerated) return failures;
  return sizeOf(map, unit - map.base);
}

/** An item has ended: the next one's turn, or the map's own. */
export function endItem(state: ExecutionState, unit: number): void {
  const map = state.mapOf(unit);
  map.open--;
  if (state.statusOf(unit) === "completed") map.completed++;
  else map.failed++;
  map.failures += failuresIn(state, map, unit);
  if (!isMapDone(map)) return placeItems(state, map);
  closeIfDone(state, map);
}

function closeIfDone(state: ExecutionState, map: MapRun): void {
  if (isMapDone(map) && state.inLine[map.node] === 0) enqueue(state, map.node);
}

/** The map has ended, and with it the items that are still open. Their children are called off. */
export function closeMap(state: ExecutionState, node: number): void {
  const map = state.maps.get(node);
  if (map === undefined) return;
  for (let unit = map.base; unit < map.base + map.count; unit++) {
    if (state.runs[unit] === undefined || state.isNodeEnded(unit)) continue;
    setLive(state, unit, false);
    returnAsks(state, unit);
    setDue(state, unit, null);
    dequeue(state, unit, isClosing(state, unit));
    if (state.children.has(unit)) {
      state.children.delete(unit);
      state.orphans.add(unit);
    } else endWait(state, unit);
    state.setStatus(unit, "cancelled");
    state.runs[unit]!.cancelReason = "fail_fast";
    map.open--;
  }
}
