import type { Page } from "../../store/contract.ts";

/** The place of one item in a list that is read newest first. */
export interface Place {
  readonly atMs: number;
  readonly key: string;
}

/** Where `place` is, or would be, in a list kept oldest first: most insertions are then at the end. */
function indexOf(list: readonly Place[], place: Place): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isOlder(list[middle]!, place)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isOlder(a: Place, b: Place): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.key < b.key;
}

export function insertPlace(list: Place[], place: Place): void {
  list.splice(indexOf(list, place), 0, place);
}

export function removePlace(list: Place[], place: Place): void {
  const index = indexOf(list, place);
  if (list[index]?.key === place.key && list[index].atMs === place.atMs) list.splice(index, 1);
}

/** The next page of those that `find` has an item for. The cursor is the last place shown, so it survives changes. */
export function pageOf<Item>(
  list: readonly Place[],
  find: (key: string) => Item | undefined,
  query: { readonly cursor?: string; readonly limit: number },
): Page<Item> {
  const items: Item[] = [];
  let last: Place | undefined;
  for (let i = startOf(list, query.cursor) - 1; i >= 0; i--) {
    const place = list[i]!;
    const item = find(place.key);
    if (item === undefined) continue;
    if (items.length >= query.limit) return { items, cursor: last === undefined ? null : formatCursor(last) };
    items.push(item);
    last = place;
  }
  return { items, cursor: null };
}

function startOf(list: readonly Place[], cursor: string | undefined): number {
  return cursor === undefined ? list.length : indexOf(list, parseCursor(cursor));
}

function formatCursor(place: Place): string {
  return `${place.atMs}/${place.key}`;
}

function parseCursor(cursor: string): Place {
  const slash = cursor.indexOf("/");
  return { atMs: Number(cursor.slice(0, slash)), key: cursor.slice(slash + 1) };
}
