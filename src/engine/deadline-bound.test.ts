import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import { DeadlineBound } from "./deadline-bound.ts";
import { gate, TestWorld } from "./test-engine.ts";

const drained = (committedBatch: number) => ({ count: 1, isDrained: true, committedBatch });
const full = (committedBatch: number, count = 250) => ({ count, isDrained: false, committedBatch });

test("deadlines may fire up to the last moment at which nothing was left unread", () => {
  const bound = new DeadlineBound();
  expect(bound.upToMs("a", 10)).toBe(-Infinity);
  bound.noteRead(drained(0), 20);
  bound.noteRead(full(0), 30);
  expect([bound.upToMs("a", 10), bound.upToMs("a", 40)]).toEqual([10, 20]);
});

test("who was released waits for the end of a read that was sent after the commit, and nobody else does", () => {
  const bound = new DeadlineBound();
  bound.noteRead(drained(0), 10);
  bound.hold("a", 5);
  bound.noteRead(drained(4), 20);
  expect([bound.upToMs("a", 100), bound.upToMs("b", 100)]).toEqual([-Infinity, 20]);
  bound.noteRead(full(5), 30);
  expect(bound.upToMs("a", 100)).toBe(-Infinity);
  bound.noteRead(drained(5), 40);
  expect(bound.upToMs("a", 100)).toBe(40);
});

test("who is released again waits again", () => {
  const bound = new DeadlineBound();
  bound.hold("a", 5);
  bound.hold("a", 7);
  bound.noteRead(drained(6), 10);
  expect(bound.upToMs("a", 100)).toBe(-Infinity);
  bound.noteRead(drained(7), 20);
  expect(bound.upToMs("a", 100)).toBe(20);
});

test("under a load that never ends nobody waits for ever, and who was released has the whole backlog read first", () => {
  const bound = new DeadlineBound();
  bound.noteRead(full(0, 20_001), 10);
  expect(bound.upToMs("a", 100)).toBe(10);
  bound.hold("a", 1);
  bound.noteRead(full(0, 20_001), 20);
  bound.noteRead(full(1, 20_000), 30);
  expect([bound.upToMs("a", 100), bound.upToMs("b", 100)]).toEqual([-Infinity, 30]);
  bound.noteRead(full(1, 1), 40);
  expect(bound.upToMs("a", 100)).toBe(40);
});

describe("in an engine", () => {
  let world: TestWorld;
  afterEach(() => world.close());

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
});
