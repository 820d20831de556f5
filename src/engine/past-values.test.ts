import { afterEach, beforeEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { TestWorld } from "./test-engine.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
});
afterEach(() => world.close());

/** When its first node has completed, it wants to see what the event of this version brought before it goes on. */
function curious(version: number, seen: unknown[]): typeof executionMachine {
  return {
    ...executionMachine,
    advance: (state, context) => {
      if (state.completedCount === 0 || seen.length > 0) return executionMachine.advance(state, context);
      const value = context.fetched(`past:${version}`);
      if (value === undefined) return { events: [], needs: [{ past: { version, bytes: 1 } }] };
      seen.push(value);
      return executionMachine.advance(state, context);
    },
  };
}

test("a value of the past is what its kind of entity finds in the event that brought it", async () => {
  const seen: unknown[] = [];
  // accepted, started, taskDispatched, taskCompleted: the last is of the batch that wants to see it.
  world.engine({}, curious(4, seen));
  world.worker({ step: () => ({ n: 7 }) });
  const id = await world.start(workflow([node("a"), node("b", ["a"])]));
  expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  expect(seen).toEqual([{ n: 7 }]);
  expect((await world.kinds(id))[3]).toBe("taskCompleted");
});

test("an event that brought none is a hole, and stops the one who asked", async () => {
  world.engine({}, curious(1, []));
  world.worker({ step: () => ({ n: 7 }) });
  const id = await world.start(workflow([node("a"), node("b", ["a"])]));
  const events = await world.until(id, (all) => all.some(({ kind }) => kind === "quarantined"));
  expect(JSON.stringify(events)).toContain("the event 1 brought no value");
});
