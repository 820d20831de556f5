import type { EntityKey, Wake } from "../../store/contract.ts";
import type { WakeData } from "./memory-data.ts";
import { insertPlace, placesAfter, removePlace } from "./sorted-places.ts";

export function setWake(wakes: WakeData, entity: EntityKey, atMs: number | null): void {
  const known = wakes.at.get(entity);
  if (known === atMs) return;
  if (known !== undefined) removePlace(wakes.places, { atMs: known, key: entity });
  if (atMs === null) {
    wakes.at.delete(entity);
  } else {
    wakes.at.set(entity, atMs);
    insertPlace(wakes.places, { atMs, key: entity });
  }
}

/** Costs by what is asked for, not by how many are waiting. */
export function dueWakes(wakes: WakeData, beforeMs: number, limit: number, after: Wake | undefined): readonly Wake[] {
  const due: Wake[] = [];
  const start = after === undefined ? undefined : { atMs: after.atMs, key: after.entity };
  for (const { atMs, key } of placesAfter(wakes.places, start)) {
    if (atMs > beforeMs || due.length >= limit) break;
    due.push({ entity: key, atMs });
  }
  return due;
}
