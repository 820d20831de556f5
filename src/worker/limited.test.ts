import { afterEach, beforeEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { gateMachine } from "../core/gate/machine.ts";
import { gate, TestWorld } from "../engine/test-engine.ts";
import type { Heartbeat, Store } from "../store/contract.ts";
import { Worker } from "./worker.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
  world.engine({}, [executionMachine, gateMachine]);
});
afterEach(() => world.close());

const limited = (limit: string) =>
  workflow([node("a", [], { limit })], {
    limits: { thin: { rate: 10, per: "second", burst: 1 }, few: { concurrency: 1 } },
  });

/** Nothing but a word at once could tell of it in time. */
const SILENT = { startReportMs: 3_600_000, heartbeatMs: 3_600_000 };

test("that it has begun is told at once of what a rate has let through, and of nothing else", async () => {
  const calls = gate();
  world.worker({ step: calls.handler }, SILENT);
  const [rated, other] = [await world.start(limited("thin")), await world.start(limited("few"))];
  await world.until(rated, (events) => events.some(({ kind }) => kind === "taskStarted"));
  await world.until(other, (events) => events.some(({ kind }) => kind === "taskDispatched"));
  calls.open("a");
  await world.ended(rated);
  await world.ended(other);
  expect((await world.events(other)).map(({ kind }) => kind)).not.toContain("taskStarted");
});

/** A role of a store with another method in the place of its own. */
function replaced<Role extends object>(role: Role, name: keyof Role, method: (...given: never[]) => unknown): Role {
  return new Proxy(role, {
    get: (target, asked) =>
      asked === name ? method : (Reflect.get(target, asked) as (...given: unknown[]) => unknown).bind(target),
  });
}

test("that it has begun is told only when it has what it is called with", async () => {
  const { store } = world;
  const fetched = Promise.withResolvers<void>();
  const beaten = Promise.withResolvers<void>();
  const beats: Heartbeat[] = [];
  const records = replaced(store.records, "get", async (...given: Parameters<Store["records"]["get"]>) => {
    await fetched.promise;
    return store.records.get(...given);
  });
  const tasks = replaced(store.tasks, "heartbeat", (...given: Parameters<Store["tasks"]["heartbeat"]>) => {
    if (beats.push(...given[0]) >= 5) beaten.resolve();
    return store.tasks.heartbeat(...given);
  });
  const seen = new Proxy(store, {
    get: (target, role: keyof Store) => (role === "records" ? records : role === "tasks" ? tasks : target[role]),
  });
  const calls = gate();
  const worker = new Worker({
    store: seen,
    host: world.host,
    handlers: new Map([["step", calls.handler]]),
    queues: ["step"],
    settings: { startReportMs: 5, heartbeatMs: 5, limitedReportMs: 5 },
  });
  worker.start();
  const config = { all: "{{ input }}" };
  const id = await world.start(
    workflow([node("a", [], { limit: "thin", config })], { limits: { thin: { rate: 10, per: "second", burst: 1 } } }),
    "x".repeat(100_000),
  );
  await beaten.promise;
  expect(beats.filter(({ started }) => started !== undefined)).toEqual([]);
  fetched.resolve();
  await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
  calls.open("a");
  await world.ended(id);
  await worker.stop();
});
