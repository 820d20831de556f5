import { describe, expect, it } from "vitest";
import type { CacheEvent } from "../../core/cache/events.ts";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import { check } from "./check.ts";
import { itReports, node, TestWorld } from "./test-world.ts";

const ENTRY = "cache/k";

/** One node with a cache, whose entry is told of by hand. */
class CacheWorld extends TestWorld {
  private entryVersion = 1;

  constructor() {
    super([node("a", { cache: { ttl_seconds: 10 } })]);
  }

  asked(): ExecutionEvent {
    return { kind: "gateAsked", atMs: this.now, node: "a", gate: ENTRY, ask: 1, wait: "cache", until: "end" };
  }

  tell(...events: readonly CacheEvent[]): this {
    const record = { entity: ENTRY, version: this.entryVersion, events: events as unknown as ExecutionEvent[] };
    this.entryVersion += events.length;
    return this.commit([], { records: [record], wakes: [] });
  }

  /** Only of executions does anybody keep a list. */
  override world(more: Partial<World> = {}): World {
    const world = super.world(more);
    const isOurs = ({ entity }: { readonly entity: string }): boolean => entity === this.entity;
    const { headers, folds } = world.remains;
    return { ...world, remains: { ...world.remains, headers: headers.filter(isOurs), folds: folds.filter(isOurs) } };
  }
}

function begun(): CacheWorld {
  const world = new CacheWorld();
  const mail = [{ to: ENTRY, from: world.entity, id: "m1", body: { kind: "cacheLookup", ask: 1, node: "a" } }];
  world.submit().acquire();
  return world.commit([world.accepted(), world.started(), world.asked()], { mail }).submitted();
}

/** It has what an execution has brought that nobody knows. */
function invented(): World {
  const world = begun();
  const hit = { ...world.nodeCompleted("a", 7), reason: "cached", from: "e9" } as ExecutionEvent;
  return world.commit([hit, world.ended()]).world();
}

function unasked(): World {
  const world = new CacheWorld();
  world.submit().acquire();
  world.commit([world.accepted(), world.started()]).submitted();
  const hit = { ...world.nodeCompleted("a", 7), reason: "cached", from: "e9" } as ExecutionEvent;
  return world.commit([hit, world.ended()]).world();
}

function twoAtOnce(): World {
  const world = begun();
  const { now: atMs, entity: execution } = world;
  const other = "execution/e2";
  world.tell(
    { kind: "cacheAsked", atMs, execution, ask: 1, node: "a" },
    { kind: "cacheAsked", atMs, execution: other, ask: 1, node: "a" },
    { kind: "cacheGranted", atMs, execution, ask: 1 },
    { kind: "cacheGranted", atMs, execution: other, ask: 1 },
    { kind: "cacheReturned", atMs, execution: other, ask: 1 },
  );
  world.commit([{ kind: "gateGranted", atMs, node: "a", gate: ENTRY, ask: 1 }, world.dispatched("a")]).work("a", 7);
  const given = { kind: "gatesReturned", atMs: world.now, returns: [{ gate: ENTRY, ask: 1 }] } as const;
  world.commit([world.completed("a", 7), world.ended(), given]);
  return world.tell({ kind: "cacheReturned", atMs: world.now, execution, ask: 1 }).world();
}

/** Its entry keeps for ten seconds what another execution has brought, and answers; the answer may be parked meanwhile. */
function answered(afterMs: number, ...parkedMs: readonly number[]): World {
  const world = begun();
  const { entity } = world;
  const stored = { output: { json: 7 }, expiresAtMs: world.now + 10_000 };
  world.tell({ kind: "cacheReturned", atMs: world.now, execution: "execution/e2", ask: 1, stored });
  const answer = { kind: "cacheAnswered", ask: 1, node: "a", found: { output: { json: 7 }, from: "execution/e2" } };
  const mail = [{ to: entity, from: ENTRY, id: "m2", body: answer }];
  world.pass(afterMs).commit([], { records: [], mail });
  for (const ms of parkedMs) {
    const error = { code: "DECISION_FAILED", message: "", retryable: false };
    world.commit([{ kind: "quarantined", atMs: world.now, error } as unknown as ExecutionEvent]);
    world.pass(ms);
    world.commit([{ kind: "released", atMs: world.now, request: "automatic" } as unknown as ExecutionEvent], { mail });
  }
  return world.world({ liveness: false });
}

/** Its question comes to the entry behind its own return, while another does the work and never says what came of it. */
function overtaken(isReturned: boolean, more: Partial<World>): World {
  const world = begun();
  const { now: atMs, entity: execution } = world;
  const other = "execution/e2";
  const given = { kind: "gatesReturned", atMs, returns: [{ gate: ENTRY, ask: 1 }] } as const;
  const error = { code: "STOP", message: "", retryable: false };
  world.commit([
    { ...world.ended(), status: "failed", reason: "cancel", error } as ExecutionEvent,
    ...(isReturned ? [given] : []),
  ]);
  return world
    .tell(
      { kind: "cacheAsked", atMs, execution: other, ask: 1, node: "a" },
      { kind: "cacheGranted", atMs, execution: other, ask: 1 },
      { kind: "cacheAsked", atMs, execution, ask: 1, node: "a" },
    )
    .world(more);
}

const ofCaches = (world: World): readonly string[] =>
  check(world)
    .filter(({ invariant }) => invariant === "I47")
    .map(({ message }) => message);

describe("caches", () => {
  it("lets a question stand that its own return has overtaken, behind one who is left alone, and no other", () => {
    const poisoned = ["e2"];
    expect(ofCaches(overtaken(true, { poisoned }))).toEqual([]);
    expect(ofCaches(overtaken(false, { poisoned }))).toEqual([expect.stringContaining("execution/e1 1")]);
    expect(ofCaches(overtaken(true, {}))).toEqual([expect.stringContaining("execution/e2 1, execution/e1 1")]);
  });

  it("is no new answer when one that was parked comes again with the release of whom it is for", () => {
    expect(check(answered(1000, 60_000))).toEqual([]);
  });

  itReports([
    ["I46", "a result is said to be somebody's who has not done the work", invented],
    ["I46", "a result comes from the cache without a question", unasked],
    ["I47", "what is too old is given away", () => answered(60_000)],
    ["I47", "two do the same work at once", twoAtOnce],
  ]);
});
