import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import type { Loaded, Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import { HandlerError } from "../worker/handler.ts";
import { gate, TestWorld, withJournal } from "./test-engine.ts";

let world: TestWorld;
afterEach(() => world.close());

/** Tells what was loaded. */
function spying(loads: Loaded[]): (store: MemoryStore) => Store {
  return (store) => {
    const load: Store["journal"]["load"] = async (requests) => {
      const found = await store.journal.load(requests);
      loads.push(...found.filter(({ records, snapshot }) => records.length > 0 || snapshot !== null));
      return found;
    };
    return withJournal(store, { load });
  };
}

const noWait = { max_attempts: 3, base_delay_seconds: 0.02, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
const chain = (length: number): ReturnType<typeof workflow> =>
  workflow(
    Array.from({ length }, (_, i) =>
      node(`n${i}`, i === 0 ? [] : [`n${i - 1}`], {
        retry: noWait,
        config: i === 0 ? {} : { got: `{{ n${i - 1}.value }}` },
      }),
    ),
  );

/** Adds one to what it gets; fails at the first attempt of every node. */
const failsOnce: Handler = ({ attempt, config }) => {
  if (attempt === 1) throw new HandlerError("ONCE", "not yet", { retryable: true });
  return { value: ((config as { got?: number }).got ?? 0) + 1 };
};

test.each([
  ["one place for thirty of them", 1, { maxResidents: 1 }],
  ["four places for thirty of them in four partitions", 4, { maxResidentsInAll: 4 }],
])("executions that are idle leave memory and come back, with %s", async (_, partitions, settings) => {
  const loads: Loaded[] = [];
  world = new TestWorld({ memory: openMemory({ host: nodeHost, partitions }), wrap: spying(loads) });
  world.engine(settings);
  const first = gate();
  world.worker({
    step: (call) => (call.nodeId === "n0" && call.attempt === 2 ? first.handler(call) : failsOnce(call)),
  });
  const ids: string[] = [];
  // One after the other: each commit finds the ones before it idle.
  for (let i = 0; i < 30; i++) ids.push(await world.start(chain(4)));
  first.open("n0", { value: 1 });
  for (const id of ids) {
    const view = await world.ended(id);
    expect([view.status, view.output]).toEqual(["COMPLETED", { n3: { value: 4 } }]);
    expect(Object.values(view.nodes).map(({ attempt }) => attempt)).toEqual([2, 2, 2, 2]);
  }
  expect(new Set(loads.map(({ entity }) => entity)).size).toBeGreaterThan(20);
});

test("with a window of one, one task is out at a time, whatever is ready in however many executions", async () => {
  world = new TestWorld();
  world.engine({ window: 1 });
  let out = 0;
  let most = 0;
  world.worker({
    step: async () => {
      most = Math.max(most, ++out);
      await world.host.sleep(1);
      out--;
      return null;
    },
  });
  const fan = workflow([node("a"), ...Array.from({ length: 8 }, (_, i) => node(`n${i}`, ["a"]))]);
  const ids = await Promise.all([1, 2, 3, 4].map(() => world.start(fan)));
  for (const id of ids) expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  expect(most).toBe(1);
});

test("a window of one queue holds up no other", async () => {
  world = new TestWorld();
  world.engine({ window: 1 });
  const stuck = gate();
  world.worker({ stuck: stuck.handler, step: () => null });
  const nodes = [1, 2].map((i) => node(`s${i}`, [], { handler: "stuck", queue: "stuck" }));
  const id = await world.start(workflow([...nodes, ...[1, 2, 3].map((i) => node(`n${i}`))]));
  await world.until(id, (events) => events.filter(({ kind }) => kind === "taskCompleted").length === 3);
  for (const i of [1, 2]) stuck.open(`s${i}`);
  expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
});

describe("snapshots", () => {
  test("an execution is loaded from its snapshot and what came after", async () => {
    const loads: Loaded[] = [];
    world = new TestWorld({ wrap: spying(loads) });
    const first = world.engine({ snapshotEvents: 10 });
    const steps = gate();
    world.worker({ step: steps.handler });
    const id = await world.start(chain(12));
    for (let i = 0; i < 11; i++) steps.open(`n${i}`, { value: i });
    await world.until(id, (events) => events.filter(({ kind }) => kind === "taskCompleted").length === 11);
    await world.stop(first);

    loads.length = 0;
    world.engine({ snapshotEvents: 10 });
    steps.open("n11", { value: 11 });
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", output: { n11: { value: 11 } } });
    const loaded = loads.find(({ entity }) => entity === entityKey("execution", id))!;
    expect(loaded.snapshot!.version).toBeGreaterThanOrEqual(10);
    const tail = loaded.records.reduce((sum, { count }) => sum + count, 0);
    expect(loaded.snapshot!.version + tail).toBeGreaterThanOrEqual(24);
    expect(loaded.records[0]!.version).toBe(loaded.snapshot!.version + 1);
  });

  test("one too large for a commit is a record of its own", async () => {
    world = new TestWorld();
    const first = world.engine({ snapshotEvents: 19 });
    const steps = gate();
    world.worker({ step: steps.handler });
    const sources = Array.from({ length: 8 }, (_, i) => node(`s${i}`));
    const reads = Object.fromEntries(sources.map(({ id }) => [id, `{{ ${id}.text | length }}`]));
    const last = node("last", ["wait", ...sources.map(({ id }) => id)], { config: reads });
    const id = await world.start(workflow([...sources, node("wait"), last]));
    for (const { id: source } of sources) steps.open(source, { text: "x".repeat(60_000) });
    await world.until(id, (events) => events.filter(({ kind }) => kind === "taskCompleted").length === 8);
    await world.stop(first);
    expect(world.memory.data.entities.get(entityKey("execution", id))!.snapshot!.text).toMatch(/^@[0-9a-f]{64}$/);

    world.engine();
    steps.open("wait");
    steps.open("last", "read");
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", output: { last: "read" } });
  });
});

test("tasks that died with their process are put back from the state, as they were", async () => {
  world = new TestWorld({ volatileTasks: true });
  const first = world.engine();
  const nodes = [node("a"), node("b", ["a"], { config: { got: "{{ a.value }}" } }), node("c", ["a"])];
  const begun: string[] = [];
  const endless: Handler = ({ nodeId }) => {
    begun.push(nodeId);
    return nodeId === "a" ? { value: 7 } : new Promise(() => {});
  };
  // As many slots as it is left with tasks: it has died with them, and must not take from the next one what is put back.
  world.worker({ step: endless }, { slots: 2 });
  const id = await world.start(workflow(nodes));
  await world.until(id, (events) => events.filter(({ kind }) => kind === "taskDispatched").length === 3);
  await expect.poll(() => begun.toSorted()).toEqual(["a", "b", "c"]);
  await world.stop(first);
  world.memory.restart();

  world.engine();
  const got: unknown[] = [];
  world.worker({ step: ({ nodeId, config, attempt }) => (got.push([nodeId, attempt, config]), { done: nodeId }) });
  expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  expect(got).toHaveLength(2);
  expect(got).toEqual(
    expect.arrayContaining([
      ["b", 1, { got: 7 }],
      ["c", 1, {}],
    ]),
  );
});

describe("stopping", () => {
  test("gives the partition back, and the next engine goes on at once", async () => {
    world = new TestWorld();
    const first = world.engine({ leaseMs: 3_600_000 });
    const steps = gate();
    world.worker({ step: steps.handler });
    const id = await world.start(chain(2));
    await world.stop(first);
    expect(world.memory.data.partitions[0]).toMatchObject({ nonce: null });

    world.engine();
    for (const node of ["n0", "n1"]) steps.open(node, { value: 1 });
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect(world.memory.data.partitions[0]).toMatchObject({ strikes: 0, epoch: 2 });
  });

  test("an engine that never got its partition stops too", async () => {
    world = new TestWorld();
    world.engine();
    const idle = world.engine();
    await world.stop(idle);
    world.worker({ step: () => null });
    expect(await world.ended(await world.start(chain(1)))).toMatchObject({ status: "COMPLETED" });
  });
});
