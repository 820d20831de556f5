import type { CacheEvent } from "../../core/cache/events.ts";
import type { GatesReturned } from "../../core/execution/events.ts";
import type { CacheAnswered } from "../../core/message.ts";
import type { Value } from "../../core/value.ts";
import { type Commit, type Evidence, executionOf } from "./evidence.ts";
import { fallbackAt } from "./fallbacks.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { givenTo } from "./reference-config.ts";
import { MISSING, UNKNOWN } from "./reference-path.ts";

/** A result that somebody's task has brought, in the journal that survived. */
interface Result {
  readonly node: string;
  readonly handler: string;
  readonly workflow: string;
  readonly inputHash: string | null;
  readonly output: Value;
}

/** What everybody has brought, and the input that each node had when it last asked its cache; null: it is not known. */
interface Known {
  readonly results: Map<string, Result[]>;
  readonly asked: Map<string, string | null>;
}

/**
 * What comes from the cache is what the task of that execution has brought, for the same work: for what the node was given
 * when it asked. One that does not wait for all that it reads might be given something else when the answer comes.
 */
const hitsAreTrue: Invariant = {
  id: "I46",
  name: "cached results are somebody's",
  before(step, found) {
    const { event, node, story } = step;
    const { results, asked } = knownOf(step.evidence);
    // What another model has said is not what the work of a node comes to.
    if (event.kind === "taskCompleted" && node !== undefined && fallbackAt(step) === undefined) {
      const own = results.get(story.id) ?? [];
      const workflow = story.shape?.workflow.name ?? "";
      const { handler } = itemSpec(node.spec);
      own.push({ node: node.shape.id, handler, workflow, inputHash: node.inputHash, output: event.output });
      results.set(story.id, own);
    }
    if (event.kind === "gateAsked" && event.wait === "cache" && node !== undefined) {
      asked.set(`${story.id} ${event.node}`, inputOf(step, node));
    }
    if (event.kind !== "nodeCompleted" || event.reason !== "cached" || node === undefined) return;
    if (node.spec.cache === undefined) return found("Its result came from the cache, and it has none", placeOf(step));
    const inputHash = asked.get(`${story.id} ${event.node}`);
    if (inputHash === undefined) return found("Its result came from the cache, which it has not asked", placeOf(step));
    if (!isTrue(step, inputHash, results.get(event.from ?? "") ?? [])) {
      found(`Its result is said to be that of ${event.from}, which has done no such work`, placeOf(step));
    }
  },
};

function inputOf(step: Step, node: NodeStory): string | null {
  const given = node.spec.cache?.key === undefined ? givenTo(readerOf(step, node)) : UNKNOWN;
  return given === UNKNOWN || given === MISSING ? null : given.inputHash;
}

function isTrue(step: Step, inputHash: string | null, results: readonly Result[]): boolean {
  const { event, node, story } = step;
  if (event.kind !== "nodeCompleted" || node === undefined) return true;
  const { handler } = itemSpec(node.spec);
  return results.some((result) => {
    if (result.handler !== handler || JSON.stringify(result.output) !== JSON.stringify(event.output)) return false;
    if (node.spec.cache!.key !== undefined) {
      return result.node === node.shape.id && result.workflow === story.shape?.workflow.name;
    }
    return inputHash === null || result.inputHash === inputHash;
  });
}

/** Of a map: what it runs for each item. */
function itemSpec({
  handler,
  config,
}: {
  readonly handler: string;
  readonly config: Readonly<Record<string, unknown>>;
}): {
  readonly handler: string;
} {
  return { handler: handler === "map" ? String(config["handler"]) : handler };
}

const KNOWN = new WeakMap<Evidence, Known>();

function knownOf(evidence: Evidence): Known {
  let known = KNOWN.get(evidence);
  if (known === undefined) KNOWN.set(evidence, (known = { results: new Map(), asked: new Map() }));
  return known;
}

/** How long the forming of a batch may take; its decisions are as of its beginning. */
const FORMING_MS = 5_000;

interface Key {
  expiresAtMs: number;
  places: number;
  readonly waiting: Set<string>;
  /** Who does the work because nothing is kept, and who because somebody wants it done anew. */
  readonly held: Map<string, { readonly isAnew: boolean }>;
}

/** Nothing is given away after its time; the same work is done by one, or by as many as have seen it fail. */
const keysAreKept: Invariant = {
  id: "I47",
  name: "time and places of the cache",
  world(evidence, _stories, found) {
    const keys = new Map<string, Key>();
    const returned = new Set<string>();
    for (const commit of evidence.surviving) {
      for (const { entity, events } of commit.entry.records) {
        for (const event of events) if (event.kind === "gatesReturned") noteReturns(returned, entity, event);
        if (!entity.startsWith("cache/")) continue;
        let key = keys.get(entity);
        if (key === undefined)
          keys.set(entity, (key = { expiresAtMs: 0, places: 1, waiting: new Set(), held: new Map() }));
        for (const event of events as unknown as readonly CacheEvent[]) follow(entity, key, event, commit, found);
      }
      judgeMail(evidence, commit, keys, found);
      // Last, as the store does it.
      for (const entity of commit.entry.purge ?? []) judgeRemoval(entity, keys, commit, found);
    }
    judgeRemains(evidence, keys, returned, found);
  },
};

function noteReturns(returned: Set<string>, execution: string, { returns }: GatesReturned): void {
  for (const { gate, ask } of returns) returned.add(`${gate} ${execution} ${ask}`);
}

/** Only what is of no use is removed. */
function judgeRemoval(entity: string, keys: Map<string, Key>, commit: Commit, found: Found): void {
  const key = keys.get(entity);
  keys.delete(entity);
  if (key === undefined) return;
  if (key.held.size + key.waiting.size > 0) found(`${entity} is removed, and somebody waits for it`, { commit });
  if (key.expiresAtMs > commit.entry.timeMs) found(`${entity} is removed before its time`, { commit });
}

function follow(entity: string, key: Key, event: CacheEvent, commit: Commit, found: Found): void {
  if (event.kind === "cacheExpired" && event.atMs < key.expiresAtMs) found(`${entity} forgets too early`, { commit });
  if (!("execution" in event)) return;
  const name = `${event.execution} ${event.ask}`;
  if (event.kind === "cacheAsked") key.waiting.add(event.anew === true ? `${name} anew` : name);
  if (event.kind === "cacheGranted") {
    const isAnew = key.waiting.delete(`${name} anew`);
    if (!isAnew && !key.waiting.delete(name))
      found(`${entity} lets ${name} do the work, which has not asked`, { commit });
    key.held.set(name, { isAnew });
    const doing = [...key.held.values()].filter((each) => !each.isAnew).length;
    if (!isAnew && doing > key.places) {
      found(`At ${entity} ${doing} do the same work, and ${key.places} may`, { commit });
    }
  }
  if (event.kind === "cacheHit") {
    key.waiting.delete(name);
    if (event.atMs >= key.expiresAtMs) found(`${entity} gave away what is too old`, { commit });
  }
  if (event.kind !== "cacheReturned") return;
  key.held.delete(name);
  key.waiting.delete(name);
  key.waiting.delete(`${name} anew`);
  if (event.failed === true) key.places *= 2;
  if (event.stored === undefined) return;
  key.expiresAtMs = event.stored.expiresAtMs;
  key.places = 1;
}

function judgeMail(evidence: Evidence, commit: Commit, keys: ReadonlyMap<string, Key>, found: Found): void {
  for (const { to, from, id, body } of commit.entry.mail) {
    const { kind, found: result } = body as unknown as Partial<CacheAnswered>;
    if (kind !== "cacheAnswered" || result === undefined || evidence.isSentAgain(commit, to, id)) continue;
    const lateMs = commit.entry.timeMs - (keys.get(from)?.expiresAtMs ?? 0);
    if (lateMs > FORMING_MS) found(`${from} gave away what was too old for ${lateMs} ms`, { commit });
  }
}

/**
 * Mail may overtake: a question that comes behind its own return stands in line until it is answered, and is given back
 * then. Behind one who is left alone no line moves, and so it stays.
 */
function judgeRemains(
  { world, poisoned }: Evidence,
  keys: ReadonlyMap<string, Key>,
  returned: ReadonlySet<string>,
  found: Found,
): void {
  if (!world.liveness) return;
  const isPoisoned = (name: string): boolean => poisoned.has(executionOf(name.split(" ")[0]!));
  for (const [entity, { held, waiting }] of keys) {
    const stands = [...held.keys()].some(isPoisoned);
    const isOvertaken = (name: string): boolean => stands && returned.has(`${entity} ${name.replace(/ anew$/, "")}`);
    const left = [...held.keys(), ...[...waiting].filter((name) => !isOvertaken(name))].filter(
      (name) => !isPoisoned(name),
    );
    if (left.length > 0) found(`At ${entity} these are not done: ${left.join(", ")}`);
  }
}

export const CACHES: readonly Invariant[] = [hitsAreTrue, keysAreKept];
