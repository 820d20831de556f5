import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../../test/support/workflows.ts";
import { viewExecution } from "../../core/execution/test-summary.ts";
import { TestWorld } from "../../engine/test-engine.ts";
import type { Journal, Store } from "../../store/contract.ts";
import { Definitions } from "./definitions.ts";
import { ExecutionReader } from "./execution-reader.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
});
afterEach(() => world.close());

/** What a reader asks the journal for. */
function counted(store: Store): {
  readonly store: Store;
  readonly loads: (number | undefined)[];
  readonly watches: () => number;
} {
  const loads: (number | undefined)[] = [];
  let watches = 0;
  const { journal } = store;
  const own: Journal = {
    commit: (batches) => journal.commit(batches),
    due: (...args) => journal.due(...args),
    watch: (...args) => {
      watches++;
      return journal.watch(...args);
    },
    load: (requests) => {
      loads.push(...requests.map(({ aboveVersion }) => aboveVersion));
      return journal.load(requests);
    },
  };
  const { capabilities, partitions, inbox, tasks, records, queries } = store;
  return {
    loads,
    watches: () => watches,
    store: { capabilities, partitions, inbox, tasks, records, queries, journal: own, close: () => store.close() },
  };
}

const reader = (store: Store): ExecutionReader => new ExecutionReader(store, new Definitions(store));
const chain = (length: number) =>
  workflow(Array.from({ length }, (_, i) => node(`n${i}`, i === 0 ? [] : [`n${i - 1}`])));

describe("a read", () => {
  test("folds once, then only the tail, then nothing", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const { store, loads } = counted(world.memory);
    const own = reader(store);
    const first = await own.read(id, ({ state }) => state.version);
    world.worker({ step: () => 1 });
    await world.ended(id);
    const second = await own.read(id, ({ state }) => state.version);
    await own.read(id, ({ state }) => state.version);
    expect(second).toBeGreaterThan(first);
    expect(loads).toEqual([undefined, first]);
  });

  test("folds a long tail in parts, and gives the same", async () => {
    world.engine();
    const fan = workflow(Array.from({ length: 1_200 }, (_, i) => node(`n${i}`, i === 0 ? [] : ["n0"])));
    const id = await world.start(fan);
    const asked: (number | undefined)[] = [];
    const { store } = counted(world.memory);
    const load = store.journal.load.bind(store.journal);
    // As a driver does that takes it at its word: a record at a time.
    store.journal.load = async (requests) => {
      const [loaded] = await load(requests);
      const { maxChars } = requests[0]!;
      asked.push(maxChars);
      return [maxChars === undefined ? loaded! : { ...loaded!, records: loaded!.records.slice(0, 1) }];
    };
    const own = reader(store);
    await own.read(id, () => true);
    world.worker({ step: () => 1 });
    const ended = await world.ended(id);
    asked.length = 0;
    expect(await own.read(id, ({ state }) => viewExecution(state))).toEqual(ended);
    expect(asked[0]).toBeGreaterThan(0);
    expect(asked.at(-1), "what is left is short").toBeUndefined();
  });

  test("gives the same from a snapshot as from the beginning", async () => {
    world.engine({ snapshotEvents: 20 });
    world.worker({ step: ({ nodeId }) => ({ from: nodeId, text: "x".repeat(2_000) }) });
    const id = await world.start(chain(40));
    const ended = await world.ended(id);
    expect(world.memory.data.entities.get(`execution/${id}`)?.snapshot).toBeDefined();
    expect(await reader(world.memory).read(id, ({ state }) => viewExecution(state))).toEqual(ended);
  });

  test("of what is gone, or was never there, is not found, whatever is remembered", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const own = reader(world.memory);
    await own.read(id, () => true);
    world.memory.data.entities.delete(`execution/${id}`);
    for (const bad of [id, "nobody", "a/b", "", "x".repeat(129), "\u0000"]) {
      await expect(own.read(bad, () => true)).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
  });

  test("follows a store that went back", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const before = world.memory.dump();
    const own = reader(world.memory);
    await world.send(id, { kind: "cancel", request: "r" });
    expect(await own.read(id, ({ state }) => state.status)).toBe("cancelled");
    world.memory.restore(before);
    expect(await own.read(id, ({ state }) => state.status)).toBe("running");
  });

  test("of a history that this release cannot read says so, and harms no other", async () => {
    const engine = world.engine();
    const [id, other] = [await world.start(workflow([node("a")])), await world.start(workflow([node("a")]))];
    await world.stop(engine);
    const entity = world.memory.data.entities.get(`execution/${id}`)!;
    Object.assign(entity.records[0]!, { format: 99 });
    const own = reader(world.memory);
    await expect(own.read(id, () => true)).rejects.toMatchObject({ code: "EXECUTION_UNREADABLE" });
    expect(await own.read(other, ({ state }) => state.status)).toBe("running");
  });

  test("keeps an answer until something happens", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const own = reader(world.memory);
    await own.read(id, ({ keepAnswer }) => keepAnswer("x", "first"));
    expect(await own.read(id, ({ answer }) => answer("x"))).toBe("first");
    await world.send(id, { kind: "pause", request: "r" });
    expect(await own.read(id, ({ answer }) => answer("x"))).toBeUndefined();
  });

  test("is shared by all who ask while another is under way, and begins after they asked", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const { store, loads, watches } = counted(world.memory);
    const own = reader(store);
    await own.read(id, () => true);
    const status = (): Promise<string> => own.read(id, ({ state }) => state.status);
    const first = status();
    const others = Array.from({ length: 50 }, status);
    expect(await Promise.all([first, ...others])).toEqual(Array(51).fill("running"));
    expect(watches()).toBe(2);
    await world.send(id, { kind: "cancel", request: "r" });
    expect(await Promise.all([status(), status()])).toEqual(["cancelled", "cancelled"]);
    expect(loads).toHaveLength(2);
  });

  test("whose look throws fails alone, one that finds nothing with all who share it, and the next is well", async () => {
    world.engine();
    const id = await world.start(workflow([node("a")]));
    const own = reader(world.memory);
    const status = (): Promise<string> => own.read(id, ({ state }) => state.status);
    const bad = (): Promise<string> =>
      own.read(id, () => {
        throw new Error("mine");
      });
    const settled = await Promise.allSettled([status(), bad(), status()]);
    expect(settled.map(({ status: how }) => how)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const before = world.memory.dump();
    world.memory.data.entities.delete(`execution/${id}`);
    const gone = await Promise.allSettled([status(), status(), status()]);
    expect(gone.map(({ status: how }) => how)).toEqual(Array(3).fill("rejected"));
    world.memory.restore(before);
    expect(await status()).toBe("running");
  });
});
