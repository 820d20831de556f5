import type { EntityKey, Wake } from "../../store/contract.ts";
import { isMostlyStale, popHeap, pushHeap, rebuildHeap } from "./heap.ts";
import type { WakeData } from "./memory-data.ts";
import type { Place } from "./newest-first.ts";

export function setWake(wakes: WakeData, entity: EntityKey, atMs: number | null): void {
  if (atMs === null) {
    wakes.at.delete(entity);
  } else if (wakes.at.get(entity) !== atMs) {
    wakes.at.set(entity, atMs);
    pushHeap(wakes.heap, { atMs, key: entity }, isEarlier);
  }
  if (isMostlyStale(wakes.heap.length, wakes.at.size)) {
    rebuildHeap(
      wakes.heap,
      wakes.at.entries().map(([key, atMs]) => ({ atMs, key })),
      isEarlier,
    );
  }
}

/** Takes them from the heap and puts them back: that costs by what is asked for, not by how many are waiting. */
export function dueWakes(wakes: WakeData, beforeMs: number, limit: number): readonly Wake[] {
  const due: Place[] = [];
  while (due.length < limit) {
    const top = wakes.heap[0];
    if (top === undefined || top.atMs > beforeMs) break;
    popHeap(wakes.heap, isEarlier);
    if (wakes.at.get(top.key) !== top.atMs) continue;
    // A wake time that was moved away and back is there twice, one right after the other.
    if (due.at(-1)?.key === top.key) continue;
    due.push(top);
  }
  for (const place of due) pushHeap(wakes.heap, place, isEarlier);
  return due.map(({ key, atMs }) => ({ entity: key, atMs }));
}

export function isEarlier(a: Place, b: Place): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.key < b.key;
}
