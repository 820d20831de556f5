import { describe } from "vitest";
import type { World } from "../history.ts";
import { caughtWorld, retriedWorld } from "./clean-worlds.ts";
import { change, changeEvent, FATAL, itReports, node, TestWorld } from "./test-world.ts";

/** `a`, then `b` on a condition, which is taken as `taken` says. */
function conditional(condition: string, output: { readonly value: number }, taken: "run" | "skip" | "fail"): World {
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"], condition, dlq: "none" })]);
  world.begin(world.dispatched("a")).work("a", output);
  if (taken === "run") {
    world.commit([world.completed("a", output), world.dispatched("b")]).work("b", 1);
    return world.commit([world.completed("b", 1), world.ended()]).world();
  }
  const skipped = taken === "skip" ? world.skipped("b", "condition") : world.nodeFailed("b", "CONDITION_ERROR");
  const status = taken === "skip" ? "completed" : "partial";
  return world.commit([world.completed("a", output), skipped, world.ended(status)]).world();
}

describe("graph order", () => {
  itReports([
    [
      "I11",
      "a node runs beside its parent",
      () => {
        const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
        world.begin(world.dispatched("a"), world.dispatched("b")).work("a", 1).work("b", 1);
        return world.commit([world.completed("a", 1), world.completed("b", 1), world.ended()]).world();
      },
    ],
    [
      "I11",
      "a node runs though a parent has failed",
      () => {
        const world = new TestWorld([node("a", { dlq: "none" }), node("b", { dependencies: ["a"] })]);
        world
          .begin(world.dispatched("a"))
          .work("a")
          .commit([world.failed("a", FATAL), world.dispatched("b")]);
        return world
          .work("b", 1)
          .commit([world.completed("b", 1), world.ended("partial")])
          .world();
      },
    ],
    [
      "I12",
      "the same delivery is dispatched twice",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin(world.dispatched("a"))
          .commit([world.dispatched("a")])
          .work("a", 1);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I12",
      "a commit holds a task that nothing dispatches",
      () => {
        const task = { token: "x:e1:1:a:1:2", queue: "default", priority: 0, entity: "execution/e1" };
        const world = { ...retriedWorld(), liveness: false, volatileTasks: true };
        const commit = world.history.find((entry) => entry.kind === "commit")!;
        return change(world, "commit", 0, { tasks: [...commit.tasks, task] });
      },
    ],
    [
      "I12",
      "a dispatch has no task",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin()
          .commit([world.dispatched("a")], { tasks: [] })
          .pass(60_000);
        const error = { code: "QUEUE_TIMEOUT", message: "", retryable: false };
        const events = [world.failed("a", error, { deadline: "queue" }), world.ended("failed")];
        return world.commit(events, { deadLetters: world.letter("a") }).world();
      },
    ],
    ["I16", "the reason is not the cause", () => changeEvent(caughtWorld(), "nodeSkipped", 0, { reason: "condition" })],
    [
      "I16",
      "a node without a condition is skipped for one",
      () => {
        const world = new TestWorld([node("a")]);
        return world.begin(world.skipped("a", "condition"), world.ended()).world();
      },
    ],
    [
      "I16",
      "a node is skipped after it was dispatched",
      () => {
        const world = new TestWorld([node("a", { condition: "input.n > 0" })]);
        return world
          .begin(world.dispatched("a"))
          .commit([world.skipped("a", "condition"), world.ended()])
          .world();
      },
    ],
    ["I17", "a false condition is taken as true", () => conditional("a.value > 3", { value: 1 }, "run")],
    ["I17", "a true condition is taken as false", () => conditional("a.value > 3", { value: 7 }, "skip")],
    ["I17", "a good condition is taken as an error", () => conditional("a.value > 3", { value: 7 }, "fail")],
    [
      "I17",
      "a condition that cannot be evaluated is taken as false",
      () => conditional("a.x > 3", { value: 7 }, "skip"),
    ],
    [
      "I25",
      "it goes on after a failure under fail_fast",
      () => {
        const world = new TestWorld([node("a", { on_error: "fail_fast" }), node("b")]);
        world.begin(world.dispatched("a"), world.dispatched("b")).work("a").work("b", 1);
        world.commit([world.failed("a", FATAL)], { deadLetters: world.letter("a") });
        return world.commit([world.completed("b", 1), world.ended("partial")]).world();
      },
    ],
    [
      "I25",
      "a caught failure ends everything",
      () => {
        const world = new TestWorld([
          node("a", { on_error: "fail_fast", dlq: "none" }),
          node("b", { dependencies: [{ id: "a", on: "failed" }] }),
        ]);
        world.begin(world.dispatched("a")).work("a");
        return world.commit([world.failed("a", FATAL), world.ended("failed", "fail_fast", FATAL)]).world();
      },
    ],
  ]);
});
