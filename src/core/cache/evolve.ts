import type { CacheEvent } from "./events.ts";
import { askKey, type CacheState } from "./state.ts";

/** So many at a time are as good as all. */
const MOST_PLACES = 1024;

/** Applies one event: the only function that changes an entry of the cache. */
export function evolve(state: CacheState, event: CacheEvent): void {
  if (state.version === 0) state.createdAtMs = event.atMs;
  state.version++;
  state.lastAtMs = event.atMs;
  switch (event.kind) {
    case "cacheAsked": {
      const { execution, ask, node, anew } = event;
      state.line.push({ execution, ask, node, ...(anew && { anew }) });
      return;
    }
    case "cacheGranted": {
      const key = askKey(event);
      const asked = state.line.find((each) => askKey(each) === key);
      state.line = state.line.filter((each) => each !== asked);
      if (asked !== undefined) state.held.set(key, asked);
      return;
    }
    case "cacheHit":
      state.line = state.line.filter((each) => askKey(each) !== askKey(event));
      return;
    case "cacheReturned": {
      const { execution, stored, failed } = event;
      state.held.delete(askKey(event));
      state.line = state.line.filter((each) => askKey(each) !== askKey(event));
      if (stored !== undefined) {
        state.entry = { execution, ...stored };
        state.places = 1;
      } else if (failed === true) {
        // If what all wait for cannot be done, they must not find that out one after the other.
        state.places = Math.min(MOST_PLACES, state.places * 2);
      }
      return;
    }
    case "cacheExpired":
      state.entry = null;
      return;
    case "quarantined":
    case "parked":
    case "released":
      return;
  }
}
