import { contentHash } from "../../json/hash.ts";
import { entityKey } from "../entity.ts";
import type { Value } from "../value.ts";
import type { CacheAsk } from "./events.ts";

export const CACHE_KIND = "cache";

/** A result that may be used again. */
export interface CacheEntry {
  readonly output: Value;
  /** Whose it is, as an entity. */
  readonly execution: string;
  readonly expiresAtMs: number;
}

/** One key of the cache: the fold of its events. It is removed whole when nothing is kept and nobody waits. */
export class CacheState {
  readonly id: string;
  version = 0;
  tenant = "default";
  createdAtMs = 0;
  lastAtMs = 0;
  entry: CacheEntry | null = null;
  /** How many may do the work at a time. */
  places = 1;
  /** Who waits for a result, oldest first. */
  line: CacheAsk[] = [];
  /** Who does the work, by `execution ask`. */
  readonly held: Map<string, CacheAsk> = new Map();

  constructor(id: string) {
    this.id = id;
  }
}

export function askKey({ execution, ask }: Pick<CacheAsk, "execution" | "ask">): string {
  return `${execution} ${ask}`;
}

/** The entity of a key: whoever has the same work to do meets the same one. */
export function cacheEntity(...parts: readonly string[]): string {
  return entityKey(CACHE_KIND, contentHash(JSON.stringify(parts)).slice(0, 32));
}

/** What is kept and not too old. */
export function entryAt({ entry }: CacheState, nowMs: number): CacheEntry | null {
  return entry !== null && nowMs < entry.expiresAtMs ? entry : null;
}

/** The next in line that can be answered; whoever wants the work done anew waits for nobody. */
export function nextInLine(state: CacheState): CacheAsk | undefined {
  const isFree = state.entry !== null || state.held.size < state.places;
  return isFree ? state.line[0] : state.line.find(({ anew }) => anew === true);
}
