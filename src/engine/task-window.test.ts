import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import type { Machine } from "../core/machine.ts";
import { newResident, type Resident } from "./resident.ts";
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
  return newResident(key, key, machine, state);
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
