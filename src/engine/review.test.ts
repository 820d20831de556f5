import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import { gate, TestWorld } from "./test-engine.ts";

// What a hostile review found, each by a script of a few lines.

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

test("results that were posted in time are decided before the deadlines of their tasks", async () => {
  let awayMs = 0;
  const host = {
    ...nodeHost,
    wallMs: () => nodeHost.wallMs() + awayMs,
    monotonicMs: () => nodeHost.monotonicMs() + awayMs,
  };
  world = new TestWorld({ host });
  const first = world.engine({ checkWhole: false });
  const steps = gate();
  const worker = world.worker({ step: steps.handler }, { slots: 400 });
  const once = { max_attempts: 1, base_delay_seconds: 1, max_delay_seconds: 60, exponential_base: 2, jitter: 0 };
  const ids = Array.from({ length: 400 }, (_, i) => `x${i}`);
  await Promise.all(ids.map((id) => world.start(workflow([node("a", [], { retry: once })]), null, id)));
  for (const id of ids) await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
  await world.stop(first);
  steps.open("a", { ok: true });
  await world.stop(worker);
  awayMs = 60_000;
  world.engine({ checkWhole: false });
  for (const id of ids) expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
});

test("engines that vanish while they have nothing to do accuse nobody", async () => {
  world = new TestWorld();
  const first = world.engine();
  let calls = 0;
  const handler = (): Promise<null> | null => {
    if (++calls === 1) throw new Error("once");
    return new Promise<null>(() => {});
  };
  world.worker({ step: handler }, { leaseMs: 1e7 });
  const soon = { max_attempts: 3, base_delay_seconds: 0.05, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
  await world.start(workflow([node("a", [], { timeout_seconds: 3600, retry: soon })]), null, "X");
  await world.until("X", (events) => events.some(({ kind }) => kind === "taskStarted"));
  await world.stop(first);
  // From now on engines are killed, not stopped.
  world.memory.partitions.release = async () => {};
  for (let i = 0; i < 6; i++) {
    const engine = world.engine({ leaseMs: 100, renewMs: 20, idleMs: 20 });
    // Long enough to look at everything, too short to be careful no more.
    await world.host.sleep(250);
    await world.stop(engine);
    await world.host.sleep(150);
  }
  expect(await world.kinds("X")).not.toContain("quarantined");
});

test("an entity that never came to life cannot be released, and holds nobody up", async () => {
  world = new TestWorld();
  world.engine();
  world.worker({ step: () => 1 });
  expect(await world.send("nobody", { kind: "release", request: "r" })).toEqual({ refused: "NOT_FOUND" });
  await world.start(workflow([node("a")]), null, "healthy");
  expect(await world.send("healthy", { kind: "release", request: "r" })).toEqual({ refused: "NOT_QUARANTINED" });
  expect(await world.ended("healthy")).toMatchObject({ status: "COMPLETED" });
});

describe.each(["its owner", "an owner that does not know how the release came out"])(
  "after a release, decided by %s,",
  (decidedBy) => {
    test("results that were parked come before the deadlines of their tasks, however many they are", async () => {
      let awayMs = 0;
      const host = {
        ...nodeHost,
        wallMs: () => nodeHost.wallMs() + awayMs,
        monotonicMs: () => nodeHost.monotonicMs() + awayMs,
      };
      let answersLost = 0;
      const memory = openMemory({ host });
      const commit = memory.journal.commit.bind(memory.journal);
      memory.journal.commit = async (batches) => {
        const outcomes = await commit(batches);
        const isRelease = batches.some(({ records }) => records.some(({ text }) => text.includes('"released"')));
        if (isRelease && decidedBy !== "its owner" && ++answersLost <= 2) throw new Error("the answer was lost");
        return outcomes;
      };
      world = new TestWorld({ host, memory });
      let broken = true;
      const machine: typeof executionMachine = {
        ...executionMachine,
        decide: (state, message, context) => {
          if (broken && message.body.kind === "taskCompleted") throw new TypeError("our own bug");
          return executionMachine.decide(state, message, context);
        },
      };
      world.engine({}, machine);
      const finish = Promise.withResolvers<null>();
      world.worker({ step: () => finish.promise }, { slots: 400 });
      const once = { max_attempts: 1, base_delay_seconds: 1, max_delay_seconds: 60, exponential_base: 2, jitter: 0 };
      const count = 400; // More than one read of the inbox brings.
      const nodes = Array.from({ length: count }, (_, i) => node(`n${i}`, [], { retry: once }));
      await world.start(workflow(nodes), null, "X");
      const has = (kind: string) => (events: readonly { kind: string }[]) =>
        events.filter((event) => event.kind === kind).length === count;
      await world.until("X", has("taskStarted"));
      finish.resolve(null);
      await world.until("X", has("parked"));

      awayMs = 60_000;
      broken = false;
      await world.post("X", { kind: "release", request: "r" });
      expect(await world.ended("X")).toMatchObject({ status: "COMPLETED" });
      expect((await world.kinds("X")).filter((kind) => kind === "taskFailed")).toEqual([]);
      expect(answersLost).toBe(decidedBy === "its owner" ? 0 : 2);
    });
  },
);
