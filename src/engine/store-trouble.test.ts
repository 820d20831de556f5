import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diamond, node, workflow } from "../../test/support/workflows.ts";
import type { MemoryStore } from "../drivers/memory/memory-store.ts";
import { contentHash } from "../json/hash.ts";
import { Random } from "../simulator/random.ts";
import type { CommitBatch, CommitOutcome, Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import { STORE_TROUBLE_MS } from "./committer.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

let world: TestWorld;
afterEach(() => world.close());

type Trouble = (role: string, call: string) => "before" | "after" | undefined;

/** The store with a bad line to it: a call may fail before it arrives, or its answer may not come back. */
function troubled(trouble: Trouble, commit?: (batches: readonly CommitBatch[]) => CommitOutcome | undefined) {
  return (store: MemoryStore): Store => {
    const role = <Role extends object>(name: string, target: Role): Role =>
      new Proxy(target, {
        get: (_, call: string) => {
          const original = (target as Record<string, (...given: unknown[]) => Promise<unknown>>)[call]!.bind(target);
          return async (...given: unknown[]): Promise<unknown> => {
            const when = trouble(name, call);
            if (when === "before") throw new Error(`${name}.${call} did not arrive`);
            const refused = call === "commit" ? commit?.(given[0] as readonly CommitBatch[]) : undefined;
            if (refused !== undefined) return (given[0] as readonly CommitBatch[]).map(() => refused);
            const answer = await original(...given);
            if (when === "after") throw new Error(`the answer of ${name}.${call} was lost`);
            return answer;
          };
        },
      });
    return {
      capabilities: store.capabilities,
      partitions: role("partitions", store.partitions),
      inbox: role("inbox", store.inbox),
      journal: role("journal", store.journal),
      tasks: role("tasks", store.tasks),
      records: role("records", store.records),
      queries: role("queries", store.queries),
      close: () => store.close(),
    };
  };
}

const steps = { step: ({ config }: { config: unknown }) => ({ value: JSON.stringify(config).length }) };

async function runsDiamonds(count: number): Promise<void> {
  world.engine();
  world.worker(steps, { leaseMs: 1000 });
  const ids = await Promise.all(Array.from({ length: count }, () => world.start(diamond())));
  for (const id of ids) {
    const view = await world.ended(id);
    expect([view.status, view.output]).toEqual(["COMPLETED", { d: { value: 22 } }]);
    const kinds = (await world.kinds(id)).filter((kind) => kind === "taskCompleted");
    expect(kinds).toHaveLength(4);
  }
}

describe("executions come to their end", () => {
  test("though one call in fourteen to the store fails, before or after it took effect", async () => {
    const random = new Random(7);
    world = new TestWorld({
      wrap: troubled((role) =>
        role !== "inbox" && random.chance(0.07) ? random.pick(["before", "after"] as const) : undefined,
      ),
    });
    await runsDiamonds(10);
  });

  test("though a third of the commits are refused", async () => {
    const random = new Random(8);
    const full: CommitOutcome = { kind: "refused", reason: "disk full" };
    world = new TestWorld({
      wrap: troubled(
        () => undefined,
        () => (random.chance(0.33) ? full : undefined),
      ),
    });
    await runsDiamonds(10);
  });

  test.each(["before", "after"] as const)(
    "though the outcome of some commits stays unknown, lost %s they took effect",
    async (when) => {
      let commits = 0;
      // Two in a row: the resend of the same bytes fails too, so that the owner has to take the partition anew.
      const trouble: Trouble = (_, call) => (call === "commit" && commits++ % 4 >= 2 ? when : undefined);
      world = new TestWorld({ wrap: troubled(trouble) });
      await runsDiamonds(5);
      expect(world.memory.data.partitions[0]!.epoch).toBeGreaterThan(1);
    },
  );

  test("though a blob could not be written at first", async () => {
    let puts = 0;
    world = new TestWorld({ wrap: troubled((_, call) => (call === "put" && puts++ === 0 ? "before" : undefined)) });
    world.engine();
    world.worker({ step: () => "done" });
    const config = { a: "{{ input.text }}", b: "{{ input.text }}" };
    const id = await world.start(workflow([node("a", [], { config })]), { text: "x".repeat(40_000) });
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 1 } } });
    expect(puts).toBeGreaterThan(1);
  });
});

describe("a store that does not take a large value", () => {
  /** Only large records fail, for as long as this answers an error. */
  const refusing =
    (failure: (puts: number) => unknown) =>
    (store: MemoryStore): Store => {
      let puts = 0;
      const put: Store["records"]["put"] = async (records, options) => {
        const isLarge = records.some(({ text }) => text.length > 50_000);
        const error = isLarge ? failure(++puts) : undefined;
        if (error !== undefined) throw error;
        return store.records.put(records, options);
      };
      const records = new Proxy(store.records, {
        get: (target, name) => (name === "put" ? put : Reflect.get(target, name).bind(target)),
      });
      return new Proxy(store, {
        get: (target, name) => (name === "records" ? records : Reflect.get(target, name)),
      });
    };

  /** An execution that begins with a config as large. */
  function submit(id: string): Promise<unknown> {
    world.engine({}, undefined, { quarantined: (key) => quarantined.push(key) });
    world.worker({ step: () => "done" });
    const config = { a: "{{ input.text }}", b: "{{ input.text }}" };
    return world.submit(workflow([node("a", [], { config })]), { text: "x".repeat(40_000) }, id);
  }
  let quarantined: string[];
  beforeEach(() => {
    quarantined = [];
  });

  test("for a reason that lies in the machine gets it again until it does, and nobody is blamed", async () => {
    const full = new StoreError("STORE_FULL", "no room, though a smaller one would fit");
    world = new TestWorld({ wrap: refusing((puts) => (puts <= 5 ? full : undefined)) });
    await submit("large");
    expect(await world.ended("large")).toMatchObject({ status: "COMPLETED" });
    expect(quarantined).toEqual([]);
  });

  test("and takes no other either gets it again until it does, and nobody is blamed", async () => {
    let puts = 0;
    const trouble: Trouble = (_, call) => (call === "put" && puts++ < 9 ? "before" : undefined);
    world = new TestWorld({ wrap: troubled(trouble) });
    await submit("large");
    expect(await world.ended("large")).toMatchObject({ status: "COMPLETED" });
    expect(quarantined).toEqual([]);
  });

  test.each([
    ["says no word of", new RangeError("not such a value")],
    ["has no time for", new StoreError("STORE_UNAVAILABLE", "it takes too long")],
  ])("that it %s, and takes others, gets it a few times, and then its execution is left alone", async (_, error) => {
    const triedAt: number[] = [];
    const never = (): Error => {
      triedAt.push(performance.now());
      return error;
    };
    world = new TestWorld({ wrap: refusing(never) });
    expect(await submit("large")).toEqual({ refused: "QUARANTINED" });
    expect(quarantined).toEqual(["execution/large"]);
    expect(triedAt).toHaveLength(3);
    expect(triedAt[2]! - triedAt[0]!).toBeGreaterThan(300);
    expect(await world.ended(await world.start(workflow([node("a")])))).toMatchObject({ status: "COMPLETED" });
  });
});

test("a commit that took effect, and is refused when it is sent again, is not taken for one that did not", async () => {
  let state: "before" | "applied" | "refused" = "before";
  const trouble: Trouble = (_, call) => {
    if (call !== "commit" || state !== "before") return undefined;
    state = "applied";
    return "after";
  };
  const refusedOnce = (): CommitOutcome | undefined => {
    if (state !== "applied" || commits++ === 0) return undefined;
    state = "refused";
    return { kind: "refused", reason: "disk full" };
  };
  let commits = 0;
  const reasons: string[] = [];
  world = new TestWorld({ wrap: troubled(trouble, refusedOnce) });
  world.engine({}, undefined, { steppedDown: (_, why) => reasons.push(why) });
  world.worker(steps);
  const id = await world.start(diamond());
  expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  expect([state, reasons]).toEqual(["refused", ["unknown outcome"]]);
});

test("what was done is not done again while its result waits behind more than one read brings", async () => {
  let isRefusing = false;
  let runs = 0;
  world = new TestWorld({
    volatileTasks: true,
    wrap: (memory) => {
      const store = withJournal(memory, {
        commit: async (batches) =>
          isRefusing ? batches.map(() => ({ kind: "refused", reason: "disk full" })) : memory.journal.commit(batches),
      });
      return { ...store, capabilities: { ...store.capabilities, maxBatchEntries: 40 } };
    },
  });
  world.engine({ maxEvents: 8 });
  const two = workflow([node("a"), node("b")]);
  const ids = await Promise.all(Array.from({ length: 20 }, () => world.start(two)));
  await expect.poll(async () => (await world.memory.queries.counts()).queued["step"]).toBe(2 * ids.length);
  isRefusing = true;
  world.worker({ step: () => ++runs });
  await expect.poll(() => runs).toBeGreaterThanOrEqual(2 * ids.length);
  await world.host.sleep(3 * STORE_TROUBLE_MS);
  isRefusing = false;
  for (const id of ids) expect((await world.ended(id)).status).toBe("COMPLETED");
  expect(runs).toBe(2 * ids.length);
});

test("commits that are refused are not repeated at once", async () => {
  let commits = 0;
  world = new TestWorld();
  world.memory.faults.refusesCommits = true;
  const commit = world.memory.journal.commit.bind(world.memory.journal);
  world.memory.journal.commit = (batches) => {
    commits++;
    return commit(batches);
  };
  world.engine();
  const started = world.start(workflow([node("a")]));
  await world.host.sleep(1_000);
  expect(commits).toBeGreaterThan(1);
  expect(commits).toBeLessThan(10);
  world.memory.faults.refusesCommits = false;
  await started;
});

test("a commit of an owner that lost its partition is fenced, and it steps down", async () => {
  const reasons: string[] = [];
  world = new TestWorld();
  world.engine({ renewMs: 3_600_000, leaseMs: 7_200_000 }, undefined, { steppedDown: (_, why) => reasons.push(why) });
  const id = await world.start(workflow([node("a")]));
  // Somebody with a clock of their own took it over.
  const partition = world.memory.data.partitions[0]!;
  partition.leaseUntilMs = 0;
  await world.memory.partitions.acquire(0, "other", 50);
  world.worker({ step: () => null });
  await expect.poll(() => reasons).toEqual(["fenced"]);
  expect(await world.kinds(id)).not.toContain("executionEnded");
});

test("a start is not accepted on a definition that only its owner remembers, after a tenure in between", async () => {
  world = new TestWorld();
  let tenures = 0;
  world.engine({}, undefined, { steppedDown: () => tenures++ });
  const flow = workflow([node("a")]);
  await world.start(flow, null, "first");
  // The store went back, and the engine knows no more of it than that somebody else had the partition.
  const key = { scope: "definition", hash: contentHash(JSON.stringify(flow)) };
  world.memory.data.records.get(key.scope)!.delete(key.hash);
  world.memory.data.partitions[0]!.leaseUntilMs = 0;
  await world.memory.partitions.acquire(0, "other", 50);
  await expect.poll(() => tenures).toBe(1);
  const body = { workflow: flow.name, definition: key.hash, input: { json: null }, bodyHash: "b" };
  expect(await world.send("second", { kind: "start", ...body })).toMatchObject({ ok: {} });
  expect(await world.memory.records.get([key])).toEqual([JSON.stringify(flow)]);
});
