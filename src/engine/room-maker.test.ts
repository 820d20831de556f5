import { afterEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { executionMachine } from "../core/execution/machine.ts";
import type { Store } from "../store/contract.ts";
import { TestWorld } from "./test-engine.ts";

/** Not a day: that is the deadline for the start of a task, and a wake that is only a little later is not written again. */
const RETENTION_MS = 7 * 86_400_000;

let world: TestWorld;
afterEach(() => world.close());

/** A store that says how full it is. */
function worldWithFill(fill: () => number): TestWorld {
  return new TestWorld({
    wrap: (memory) => {
      const store: Store = Object.create(memory) as Store;
      const queries: Store["queries"] = Object.create(memory.queries) as Store["queries"];
      queries.header = (...args) => memory.queries.header(...args);
      queries.counts = async () => ({ ...(await memory.queries.counts()), fill: fill() });
      return Object.defineProperties(store, {
        queries: { value: queries },
        capabilities: { value: memory.capabilities },
      });
    },
  });
}

async function left(): Promise<readonly string[]> {
  const { items } = await world.memory.queries.headers({ limit: 500 });
  return items.map(({ entity }) => entity);
}

const quick = workflow([node("a")]);
const slow = workflow([node("w", [], { handler: "wait", config: { seconds: 6000 } })]);

test("what has ended goes before its time when the store fills up, and what goes on stays", async () => {
  let fill = 0.59;
  world = worldWithFill(() => fill);
  const rooms: number[] = [];
  world.engine({ retentionMs: RETENTION_MS }, undefined, { madeRoom: (_, count) => rooms.push(count) });
  world.worker({ step: () => 1 });
  const open = await world.start(slow);
  const ended: string[] = [];
  for (let i = 0; i < 3; i++) {
    ended.push(await world.start(quick));
    await world.ended(ended[i]!);
  }
  // Long enough for several looks.
  await world.host.sleep(300);
  expect(await left()).toHaveLength(4);
  fill = 0.6;
  await expect.poll(left).toEqual([entityKey("execution", open)]);
  expect(rooms.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(3);
  expect(await world.events(ended[0]!)).toEqual([]);
});

test("the oldest go first, and no more than it takes", async () => {
  const MANY = 250;
  let goal = 0;
  let fill = 0;
  world = worldWithFill(() => fill);
  world.engine({ retentionMs: RETENTION_MS }, undefined, {
    madeRoom: (_, count) => {
      goal += count;
      fill = 0;
    },
  });
  world.worker({ step: () => 1 });
  const ended: string[] = [];
  for (let i = 0; i < MANY; i++) ended.push(await world.start(quick));
  for (const id of ended) await world.ended(id);
  const ends = new Map<string, number>();
  for (const { entity, endedAtMs } of (await world.memory.queries.headers({ limit: 500 })).items)
    ends.set(entity, endedAtMs!);
  fill = 0.8;
  await expect.poll(async () => (await left()).length).toBeLessThan(MANY);
  await expect.poll(async () => (await left()).length).toBe(MANY - goal);
  const kept = new Set(await left());
  const [gone, stay] = [[...ends].filter(([key]) => !kept.has(key)), [...ends].filter(([key]) => kept.has(key))];
  expect(gone).toHaveLength(200);
  expect(Math.max(...gone.map(([, endMs]) => endMs))).toBeLessThanOrEqual(Math.min(...stay.map(([, endMs]) => endMs)));
});

const call = node("call", [], { handler: "workflow", config: { name: "inner" } });
const rest = node("rest", ["call"], { handler: "wait", config: { seconds: 6000 } });

test("a child stays for as long as its parent, however full the store is, and goes with it", async () => {
  let fill = 0;
  world = worldWithFill(() => fill);
  world.engine({ retentionMs: RETENTION_MS });
  world.worker({ step: () => 1 });
  await world.publish("inner", quick);
  const open = await world.start(workflow([call, rest]));
  await expect.poll(() => world.count("over")).toBe(1);
  await world.ended(await world.start(workflow([call])));
  expect(await world.count()).toBe(4);
  fill = 0.9;
  await expect.poll(() => world.count()).toBe(2);
  // Longer than it takes until children are looked at once more.
  await world.host.sleep(1500);
  expect(await world.count()).toBe(2);
  await world.send(open, { kind: "cancel", request: "r" });
  await expect.poll(left).toEqual([]);
});

test("a child that was looked at in vain does not stay in memory", async () => {
  let fill = 0;
  world = worldWithFill(() => fill);
  const engine = world.engine({ retentionMs: RETENTION_MS });
  world.worker({ step: () => 1 });
  await world.publish("inner", quick);
  const parent = entityKey("execution", await world.start(workflow([call, rest])));
  await expect.poll(() => world.count("over")).toBe(1);
  const inMemory = (): readonly string[] => engine["tenures"].owners().flatMap(({ entities }) => [...entities.keys()]);
  await expect.poll(inMemory).toEqual([parent]);
  let looks = 0;
  const load = world.memory.journal.load.bind(world.memory.journal);
  world.memory.journal.load = (requests) => {
    looks += requests.filter(({ entity }) => entity !== parent).length;
    return load(requests);
  };
  fill = 0.9;
  await expect.poll(() => looks).toBeGreaterThan(0);
  await expect.poll(inMemory).toEqual([parent]);
  expect(await world.count()).toBe(2);
});

test("a child goes whose parent was removed by an engine that did not have it", async () => {
  let fill = 0;
  world = worldWithFill(() => fill);
  world.engine({ retentionMs: RETENTION_MS }, { ...executionMachine, called: () => [] });
  world.worker({ step: () => 1 });
  await world.publish("inner", quick);
  await world.ended(await world.start(workflow([call])));
  expect(await world.count()).toBe(2);
  fill = 0.9;
  await expect.poll(left).toEqual([]);
});
