import type { Machine } from "../machine.ts";
import { answerLine, decide } from "./decide.ts";
import { CACHE_EVENT_FORMAT, type CacheAsk, type CacheEvent } from "./events.ts";
import { evolve } from "./evolve.ts";
import { askKey, CACHE_KIND, type CacheEntry, CacheState, nextInLine } from "./state.ts";

/**
 * One key of the result cache as a kind of entity, owned by the partition of its hash: executions ask it by mail before they
 * do the work, and bring it the result by mail. It lives as long as what it keeps.
 */
export const cacheMachine: Machine<CacheState, CacheEvent> = {
  kind: CACHE_KIND,
  eventFormat: CACHE_EVENT_FORMAT,
  snapshotFormat: 1,
  definitionOf: () => undefined,
  isStart: (body) => body.kind === "cacheLookup" || (body.kind === "cacheReturn" && body.stored !== undefined),
  prepareDefinition: () => undefined,
  create: (id) => new CacheState(id),
  decide,
  advance: answerLine,
  evolve,
  check,
  hasWork: (state) => nextInLine(state) !== undefined,
  nextWakeMs: (state) => state.entry?.expiresAtMs ?? null,
  liveTokens: () => [],
  liveTasks: () => NO_TASKS,
  liveCount: () => 0,
  openTasks: () => ({ tasks: [], needs: [] }),
  withdrawn: () => [],
  isEnded: () => false,
  expiresAtMs: ({ line, held, entry, lastAtMs }) =>
    line.length > 0 || held.size > 0 ? null : (entry?.expiresAtMs ?? lastAtMs),
  versionOf: (state) => state.version,
  header: () => null,
  snapshot,
  restore: (id, _definition, text) => restore(id, text),
  definitionOfSnapshot: () => undefined,
};

const NO_TASKS: ReadonlyMap<string, number> = new Map();

interface SnapshotBody {
  readonly version: number;
  readonly tenant: string;
  readonly times: readonly [number, number];
  readonly entry: CacheEntry | null;
  readonly places: number;
  readonly line: readonly CacheAsk[];
  readonly held: readonly CacheAsk[];
}

function snapshot({ version, tenant, createdAtMs, lastAtMs, entry, places, line, held }: CacheState): string {
  const times = [createdAtMs, lastAtMs] as const;
  const body: SnapshotBody = { version, tenant, times, entry, places, line, held: [...held.values()] };
  return JSON.stringify(body);
}

function restore(id: string, text: string): CacheState {
  const body = JSON.parse(text) as SnapshotBody;
  const state = new CacheState(id);
  state.version = body.version;
  state.tenant = body.tenant;
  [state.createdAtMs, state.lastAtMs] = body.times;
  state.entry = body.entry;
  state.places = body.places;
  state.line = [...body.line];
  for (const asked of body.held) state.held.set(askKey(asked), asked);
  return state;
}

/** Our own bug, caught before it is stored. */
function check(state: CacheState): void {
  const both = state.line.find((asked) => state.held.has(askKey(asked)));
  if (both !== undefined) throw new Error(`cache ${state.id}: ask ${askKey(both)} waits and does the work`);
}
