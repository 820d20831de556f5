/**
 * What a careful owner leaves in the store, so that its successor can tell what killed it: the item it is about to
 * touch, and how often each item was the last thing an owner did.
 */
export interface Suspicion {
  readonly next: string | null;
  readonly deaths: ReadonlyMap<string, number>;
}

/**
 * An owner that vanishes while it handles something may have been killed by it, or may only have been cut off just
 * then. Twice on the same item happens by accident too, as every new owner begins with the same one: the oldest in the
 * inbox. Three times does not.
 */
export const GUILTY_DEATHS = 3;

export function formatSuspicion(suspicion: Suspicion): string {
  return JSON.stringify({ next: suspicion.next, deaths: [...suspicion.deaths] });
}

/**
 * What a new owner makes of it.
 *
 * @param died false if the owner before us is ourselves: then nobody died of anything
 */
export function readSuspicion(text: string | null, died: boolean): ReadonlyMap<string, number> {
  const deaths = new Map<string, number>();
  if (text === null) return deaths;
  const left = JSON.parse(text) as { next: string | null; deaths: [string, number][] };
  for (const [key, count] of left.deaths) deaths.set(key, count);
  if (died && left.next !== null) deaths.set(left.next, (deaths.get(left.next) ?? 0) + 1);
  return deaths;
}
