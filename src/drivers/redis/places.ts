import type { Redis } from "./redis.ts";

/** Where something stands in a sorted set: by its time, then by the bytes of its name. */
export interface PlaceInTime {
  readonly atMs: number;
  readonly key: string;
}

const STEP = 100;

/** From the earliest on or from the latest back, beyond `start`. */
export async function* placesFrom(
  redis: Redis,
  key: string,
  from: "earliest" | "latest",
  start: PlaceInTime | undefined,
): AsyncGenerator<PlaceInTime, void> {
  const isForward = from === "earliest";
  const first = start?.atMs.toString() ?? (isForward ? "-inf" : "+inf");
  const ends = isForward ? [first, "+inf"] : [first, "-inf", "REV"];
  for (let offset = 0; ; offset += STEP) {
    const [min, max, ...reverse] = ends;
    const range = [
      "ZRANGE",
      key,
      min!,
      max!,
      "BYSCORE",
      ...reverse,
      "LIMIT",
      String(offset),
      String(STEP),
      "WITHSCORES",
    ];
    const found = await redis.client.sendCommand<readonly (readonly [string, number])[]>(range);
    for (const [name, atMs] of found) {
      const place = { atMs, key: name };
      const order = start === undefined ? 1 : compare(place, start) * (isForward ? 1 : -1);
      if (order > 0) yield place;
    }
    if (found.length < STEP) return;
  }
}

/** Redis compares bytes; strings here are compared by UTF-16 units, which is another order. */
function compare(a: PlaceInTime, b: PlaceInTime): number {
  return a.atMs - b.atMs || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));
}
