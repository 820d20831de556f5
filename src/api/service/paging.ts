import { MillraceError } from "../../errors/millrace-error.ts";
import type { Incomplete, Page } from "../../store/contract.ts";
import { MAX_SCANNED } from "../limits.ts";
import type { Signing } from "./signing.ts";

export interface PageOf<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
  /** Only if some that belong on this page may be missing. */
  readonly incomplete?: Incomplete;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Of a list that may also be asked for as a whole. */
export interface PartRequest {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The place before everything that the store has in a list. */
export const BEGINNING = "";

/** A number as a place in a list. */
export function ordinal(place: number): string {
  return String(place).padStart(16, "0");
}

/**
 * Cursors of the store, as clients see them: signed, and bound to the list and the filters they were given out for. A
 * store never meets one that it did not make.
 */
export class Paging {
  readonly #signing: Signing;

  constructor(signing: Signing) {
    this.#signing = signing;
  }

  /** `list` names the list with its filters. */
  async page<Stored, Item>(
    list: string,
    { limit, cursor }: PageRequest,
    read: (query: { limit: number; cursor?: string }) => Promise<Page<Stored>>,
    show: (stored: Stored) => Item | undefined,
  ): Promise<PageOf<Item>> {
    let at = (await this.open(list, cursor)) || undefined;
    const items: Item[] = [];
    let gap: { readonly incomplete?: Incomplete } = {};
    for (let scanned = 0; ;) {
      const page = await read({ limit: limit - items.length, ...(at !== undefined && { cursor: at }) });
      for (const stored of page.items) {
        const item = show(stored);
        if (item !== undefined) items.push(item);
      }
      if (page.incomplete !== undefined) gap = { incomplete: page.incomplete };
      scanned += page.items.length;
      at = page.cursor ?? undefined;
      // A filter that hits little must not scan everything for one request: the page is short, and the cursor goes on.
      if (at === undefined || items.length >= limit || scanned >= MAX_SCANNED) break;
    }
    return { items, next_cursor: await this.seal(list, at), ...gap };
  }

  /**
   * A page of a list that is at hand as a whole, sorted by `placeOf`. What has gone meanwhile is not missed: the cursor
   * names a place, whether anything is there or not. Without a limit, the rest of it.
   */
  async slice<Item>(
    list: string,
    { limit, cursor }: PartRequest,
    all: readonly Item[],
    placeOf: (item: Item, index: number) => string,
  ): Promise<PageOf<Item>> {
    const after = await this.open(list, cursor);
    const places = all.map(placeOf);
    const start = after === undefined ? 0 : places.filter((place) => place <= after).length;
    const end = limit === undefined ? all.length : Math.min(start + limit, all.length);
    return {
      items: all.slice(start, end),
      next_cursor: await this.seal(list, end < all.length ? places[end - 1] : undefined),
    };
  }

  async seal(list: string, at: string | undefined): Promise<string | null> {
    return at === undefined ? null : this.#signing.seal(`cursor ${list}`, at);
  }

  async open(list: string, cursor: string | undefined): Promise<string | undefined> {
    if (cursor === undefined) return undefined;
    const opened = cursor.length > 4_096 ? undefined : await this.#signing.open(`cursor ${list}`, cursor);
    if (opened === undefined) throw new MillraceError("INVALID_CURSOR", {});
    return opened;
  }
}
