import { afterEach, describe, expect, test, vi } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { QueueCounts } from "../core/execution/queue-counts.ts";
import type { Machine } from "../core/machine.ts";
import { Resident } from "./resident.ts";
import { TaskWindow } from "./task-window.ts";
import { TestWorld } from "./test-engine.ts";

let through: string[] = [];
function open(size: number): TaskWindow {
  through = [];
  return new TaskWindow(size, (key) => through.push(key));
}

/** An entity that has so many tasks out, all in one queue. */
function entity(key: string, state: { out: number }): Resident {
  const machine = { liveTasks: ({ out }: { out: number }) => new Map([["q", out]]) } as unknown as Machine;
  return new Resident(key, key, machine, state);
}

test("a queue has room for so many tasks, and counts what each entity has out", () => {
  const window = open(3);
  const state = { out: 2 };
  const one = entity("one", state);
  window.count(one);
  window.count(entity("two", { out: 5 }));
  expect([window.room("q"), window.room("other")]).toEqual([0, 3]);
  state.out = 0;
  window.count(one);
  window.count(one);
  expect(window.room("q")).toBe(0);
});

test("of an entity with very many queues only those are looked at that have changed", () => {
  const window = open(3);
  const counts = new QueueCounts();
  const machine = { liveTasks: () => counts } as unknown as Machine;
  const one = new Resident("one", "one", machine, {});
  for (let i = 0; i < 1_000; i++) counts.set(`q${i}`, 1);
  window.count(one);
  const looked = vi.spyOn(counts, "forEach");
  for (const key of ["a", "b"]) window.block("q7", key);
  counts.set("q7", 0).set("q8", 3);
  window.count(one);
  expect([window.room("q6"), window.room("q7"), window.room("q8"), through]).toEqual([2, 3, 0, ["a"]]);
  expect(looked).not.toHaveBeenCalled();
  counts.clear();
  window.count(one);
  expect([window.room("q6"), window.room("q8")]).toEqual([3, 3]);
  // Another who holds the same has to be told of all of it.
  counts.set("q6", 2);
  window.count(new Resident("one", "one", machine, {}));
  expect(window.room("q6")).toBe(1);
});

test("room that becomes free goes to as many as it suffices for, in the order in which they came", () => {
  const window = open(2);
  const state = { out: 2 };
  const one = entity("one", state);
  window.count(one);
  for (const key of ["a", "b", "c"]) window.block("q", key);
  state.out = 1;
  window.count(one);
  expect(through).toEqual(["a"]);
  window.uncount(one);
  expect(through).toEqual(["a", "b"]);
  expect(["a", "b", "c"].map((key) => window.isBlocked(key))).toEqual([false, false, true]);
});

test("room that nobody used is passed on, until nobody waits", () => {
  const window = open(1);
  for (const key of ["a", "b"]) window.block("q", key);
  expect(window.passRoomOn()).toBe(true);
  expect(window.passRoomOn()).toBe(true);
  expect(window.passRoomOn()).toBe(false);
  expect(through).toEqual(["a", "b"]);
});

test("who waits keeps its place, and who is dropped waits nowhere", () => {
  const window = open(1);
  window.block("q", "a");
  window.block("p", "a");
  window.block("q", "b");
  window.block("q", "a");
  window.drop("b");
  expect(window.isBlocked("b")).toBe(false);
  window.passRoomOn();
  expect(through).toEqual(["a", "a"]);
});

describe("in an engine", () => {
  let world: TestWorld;
  afterEach(() => world.close());

  test("room that somebody was let through for and did not use goes to the next", async () => {
    world = new TestWorld();
    world.engine({ window: 1 });
    await world.start(workflow([node("a")]), null, "A");
    await world.start(workflow([node("b", [], { condition: "false" })]), null, "B");
    await world.start(workflow([node("c")]), null, "C");
    world.worker({ step: () => 1 });
    expect(await world.ended("C")).toMatchObject({ status: "COMPLETED" });
  });
});
