import type { PlaceInTime } from "../../store/page.ts";
import { type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

const STEP = 100;

/** A sorted set by time, then by the bytes of the names: from the earliest on or from the latest back, beyond `start`. */
export async function* placesFrom(
  redis: Redis,
  set: string,
  from: "earliest" | "latest",
  start: PlaceInTime | undefined,
): AsyncGenerator<readonly PlaceInTime[], void> {
  const direction = from === "earliest" ? 1 : -1;
  let behind = start;
  for (;;) {
    const values = [set, from, behind?.atMs ?? "", STEP];
    const answer = await run<readonly string[]>(redis, scripts.places, ...values);
    const found = Array.from({ length: answer.length / 2 }, (_, i) => ({
      atMs: Number(answer[2 * i + 1]),
      key: answer[2 * i]!,
    }));
    const beyond = found.filter((place) => behind === undefined || comparePlaces(place, behind) * direction > 0);
    yield beyond;
    behind = beyond.at(-1);
    if (behind === undefined || beyond.length < STEP) return;
  }
}

/** Several of these from the latest back, as one. */
export async function* newestOf(
  all: readonly AsyncGenerator<readonly PlaceInTime[], void>[],
): AsyncGenerator<readonly PlaceInTime[], void> {
  const sets = all.map((pages) => ({ pages, left: [] as readonly PlaceInTime[], isDone: false }));
  for (;;) {
    for (const set of sets) {
      while (set.left.length === 0 && !set.isDone) {
        const page = await set.pages.next();
        set.isDone = page.done === true;
        set.left = page.done === true ? [] : page.value;
      }
    }
    // Nothing that is still to come of a set is newer than the last of what is here of it.
    const bounds = sets.filter(({ isDone }) => !isDone).map(({ left }) => left.at(-1)!);
    const isSettled = (place: PlaceInTime): boolean => bounds.every((bound) => comparePlaces(place, bound) >= 0);
    const settled = sets.flatMap(({ left }) => left.filter(isSettled));
    if (settled.length === 0) return;
    yield settled.sort((a, b) => comparePlaces(b, a));
    for (const set of sets) set.left = set.left.filter((place) => !isSettled(place));
  }
}

/** Redis compares bytes; strings here are compared by UTF-16 units, which is another order. */
function comparePlaces(a: PlaceInTime, b: PlaceInTime): number {
  return a.atMs - b.atMs || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));
}
