import type { Page, PageQuery } from "../../store/contract.ts";

/** Where something stands in an order of (time, name). */
export interface Place {
  readonly atMs: number;
  readonly key: string;
}

/**
 * Places in order, in pieces of bounded length: a plain sorted array moves half of itself at every insertion, which at
 * 100,000 places is most of the work.
 */
export type SortedPlaces = Place[][];

const MAX_PIECE = 512;

export function insertPlace(places: SortedPlaces, place: Place): void {
  const at = pieceOf(places, place);
  const piece = places[at];
  if (piece === undefined) {
    places.push([place]);
    return;
  }
  piece.splice(indexIn(piece, place), 0, place);
  if (piece.length > MAX_PIECE) places.splice(at + 1, 0, piece.splice(MAX_PIECE / 2));
}

export function removePlace(places: SortedPlaces, place: Place): void {
  const at = pieceOf(places, place);
  const piece = places[at];
  if (piece === undefined) return;
  const index = indexIn(piece, place);
  if (piece[index]?.atMs !== place.atMs || piece[index].key !== place.key) return;
  piece.splice(index, 1);
  if (piece.length === 0) places.splice(at, 1);
}

/** From the earliest on, beyond `after`. */
export function* placesAfter(places: SortedPlaces, after: Place | undefined): Generator<Place, void> {
  const start = after === undefined ? 0 : pieceOf(places, after);
  for (let at = start; at < places.length; at++) {
    for (const place of places[at]!) if (after === undefined || isBefore(after, place)) yield place;
  }
}

/** From the latest back, beyond `before`. */
function* placesBefore(places: SortedPlaces, before: Place | undefined): Generator<Place, void> {
  const start = before === undefined ? places.length - 1 : Math.min(pieceOf(places, before), places.length - 1);
  for (let at = start; at >= 0; at--) {
    const piece = places[at]!;
    for (let i = piece.length - 1; i >= 0; i--) {
      if (before === undefined || isBefore(piece[i]!, before)) yield piece[i]!;
    }
  }
}

/**
 * The next page, latest first, of those `find` has an item for, back to `sinceMs`. The cursor is the last place shown: it
 * stays good.
 */
export function pageOf<Item>(
  places: SortedPlaces,
  find: (key: string) => Item | undefined,
  query: PageQuery & { readonly sinceMs?: number },
): Page<Item> {
  const items: Item[] = [];
  let last: Place | undefined;
  const { sinceMs = Number.NEGATIVE_INFINITY } = query;
  for (const place of placesBefore(places, query.cursor === undefined ? undefined : parseCursor(query.cursor))) {
    if (place.atMs < sinceMs) break;
    const item = find(place.key);
    if (item === undefined) continue;
    if (items.length >= query.limit) return { items, cursor: last === undefined ? null : formatCursor(last) };
    items.push(item);
    last = place;
  }
  return { items, cursor: null };
}

export function isBefore(a: Place, b: Place): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.key < b.key;
}

/** The piece that has the place, or should get it: the last one that does not begin beyond it. */
function pieceOf(places: SortedPlaces, place: Place): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(place, places[middle]![0]!)) high = middle;
    else low = middle + 1;
  }
  return Math.max(0, low - 1);
}

function indexIn(piece: readonly Place[], place: Place): number {
  let low = 0;
  let high = piece.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(piece[middle]!, place)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function formatCursor(place: Place): string {
  return `${place.atMs}/${place.key}`;
}

function parseCursor(cursor: string): Place {
  const slash = cursor.indexOf("/");
  return { atMs: Number(cursor.slice(0, slash)), key: cursor.slice(slash + 1) };
}
