import type { PlaceInTime } from "../../store/page.ts";
import type { Redis } from "./redis.ts";

const STEP = 100;

/** A sorted set by time, then by the bytes of the names: from the earliest on or from the latest back, beyond `start`. */
export async function* placesFrom(
  redis: Redis,
  key: string,
  from: "earliest" | "latest",
  start: PlaceInTime | undefined,
): AsyncGenerator<readonly PlaceInTime[], void> {
  const direction = from === "earliest" ? 1 : -1;
  const first = start?.atMs.toString() ?? (direction === 1 ? "-inf" : "+inf");
  const range = direction === 1 ? [first, "+inf", "BYSCORE"] : [first, "-inf", "BYSCORE", "REV"];
  for (let offset = 0; ; offset += STEP) {
    const command = ["ZRANGE", key, ...range, "LIMIT", String(offset), String(STEP), "WITHSCORES"];
    const found = await redis.client.sendCommand<readonly (readonly [string, number])[]>(command);
    const places = found.map(([name, atMs]) => ({ atMs, key: name }));
    yield places.filter((place) => start === undefined || compare(place, start) * direction > 0);
    if (found.length < STEP) return;
  }
}

/** Redis compares bytes; strings here are compared by UTF-16 units, which is another order. */
function compare(a: PlaceInTime, b: PlaceInTime): number {
  return a.atMs - b.atMs || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));
}
