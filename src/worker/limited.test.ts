import { afterEach, beforeEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { gateMachine } from "../core/gate/machine.ts";
import { gate, TestWorld } from "../engine/test-engine.ts";

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
