import { afterEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { TestWorld } from "./test-engine.ts";

let world: TestWorld;
afterEach(() => world.close());

/** Whoever sleeps to the end of one of these sleeps longer than the test may take. */
const SLOW = { renewMs: 600_000, idleMs: 600_000, leaseMs: 6_000_000 };

test("the first execution waits for no sleep, and neither does a stop", async () => {
  world = new TestWorld();
  const engine = world.engine(SLOW);
  world.worker({ step: () => 1 });
  const id = await world.start(workflow([node("a")]));
  expect((await world.ended(id)).status).toBe("COMPLETED");
  await world.stop(engine);
});

test("what comes while an engine stops is left for the next", async () => {
  world = new TestWorld();
  const first = world.engine(SLOW);
  const waiting = await world.start(
    workflow([node("w", [], { handler: "wait", config: { signal: "s", timeout_seconds: 600 } })]),
  );
  const stopped = world.stop(first);
  await world.post(waiting, { kind: "signal", request: "r", name: "s", data: { json: 7 } });
  await stopped;
  world.engine();
  expect((await world.ended(waiting)).nodes["w"]).toMatchObject({ output: { json: 7 } });
});
