import type { ReadResult } from "./contract.ts";

/** Asked for at least, however large they are. */
const FEWEST = 4;

/** What was found in the store for one partition. */
export interface Found {
  /** How many there were, and how many of them fitted into the read. */
  readonly found: number;
  readonly taken: number;
}

/**
 * How many messages a read asks a store for. What does not fit into a read by its length is thrown away, and asked for again with the
 * next one: large messages in a long line were fetched sixty times each. So after a read that was cut fewer are asked for, and more
 * again once all fit.
 */
export class ReadSize {
  #most = Infinity;

  most(limit: number): number {
    return Math.min(limit, this.#most);
  }

  note(reads: readonly Found[]): void {
    const cut = reads.filter(({ found, taken }) => taken < found);
    if (cut.length > 0) this.#most = Math.max(FEWEST, ...cut.map(({ taken }) => taken * 2));
    else if (reads.some(({ found }) => found >= this.#most)) this.#most *= 2;
  }
}

/** Where so many were asked for as were found there may be more, though the reader would have taken more. */
export function ofMost(result: ReadResult, found: number, most: number, limit: number): ReadResult {
  return most < limit && found >= most ? { ...result, isPartial: true } : result;
}
