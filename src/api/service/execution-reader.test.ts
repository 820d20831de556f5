import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../../test/support/workflows.ts";
import { viewExecution } from "../../core/execution/view.ts";
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
function counted(store: Store): { readonly store: Store; readonly loads: (number | undefined)[] } {
  const loads: (number | undefined)[] = [];
  const { journal } = store;
  const own: Journal = {
    commit: (batches) => journal.commit(batches),
    due: (...args) => journal.due(...args),
    watch: (...args) => journal.watch(...args),
    load: (requests) => {
      loads.push(...requests.map(({ aboveVersion }) => aboveVersion));
      return journal.load(requests);
    },
  };
  const { capabilities, partitions, inbox, tasks, records, queries } = store;
  return {
    loads,
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
});
