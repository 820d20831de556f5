import type { Page } from "./contract.ts";

/** How many versions of one name `Records.versions` answers. */
export const MAX_VERSIONS = 1000;

/** Where a page begins: behind this, newest first. */
export interface PlaceInTime {
  readonly atMs: number;
  readonly key: string;
}

const NEWEST: PlaceInTime = { atMs: Number.MAX_SAFE_INTEGER, key: "" };

export function parseCursor(cursor: string | undefined): PlaceInTime {
  if (cursor === undefined) return NEWEST;
  const slash = cursor.indexOf("/");
  return { atMs: Number(cursor.slice(0, slash)), key: cursor.slice(slash + 1) };
}

/** A page of up to one row more than was asked for: that one only tells whether there is another page. */
export function pageOf<Item>(found: readonly Item[], limit: number, place: (item: Item) => PlaceInTime): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  if (found.length <= limit || last === undefined) return { items, cursor: null };
  const { atMs, key } = place(last);
  return { items, cursor: `${atMs}/${key}` };
}

/** The same for a list in order of names, where the last name is the cursor. */
export function namedPageOf<Item extends { readonly name: string }>(found: readonly Item[], limit: number): Page<Item> {
  const items = found.slice(0, limit);
  return { items, cursor: found.length <= limit ? null : (items.at(-1)?.name ?? null) };
}
