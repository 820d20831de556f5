import type { EntityKey, Listed, Listing } from "../../store/contract.ts";
import type { Memory } from "./memory.ts";
import { insertPlace, type Place, removePlace } from "./sorted-places.ts";

/** Puts it on its list in place of what had its id before, or takes that off. */
export function putListing(memory: Memory, listing: Listing): void {
  const { lists, listedOf } = memory.data;
  const { list, id, entity, text } = listing;
  const known = lists.get(list)?.byId.get(id);
  if (known !== undefined) remove(memory, known);
  if (text === null) return;
  const listed: Listed = { ...listing, text };
  const data = lists.get(list) ?? { byId: new Map(), places: [] };
  lists.set(list, data);
  data.byId.set(id, listed);
  insertPlace(data.places, placeOf(listed));
  listedOf.set(entity, (listedOf.get(entity) ?? new Set()).add(listed));
}

/** Takes everything of an entity off all lists. */
export function removeListings(memory: Memory, entity: EntityKey): void {
  for (const listed of memory.data.listedOf.get(entity) ?? []) remove(memory, listed);
}

function remove(memory: Memory, listed: Listed): void {
  const { lists, listedOf } = memory.data;
  const data = lists.get(listed.list)!;
  data.byId.delete(listed.id);
  removePlace(data.places, placeOf(listed));
  if (data.byId.size === 0) lists.delete(listed.list);
  const ofEntity = listedOf.get(listed.entity)!;
  ofEntity.delete(listed);
  if (ofEntity.size === 0) listedOf.delete(listed.entity);
}

function placeOf({ atMs, id }: Listed): Place {
  return { atMs, key: id };
}
