import { describe } from "vitest";
import { cancelledWorld, failedFastWorld, lostDefinitionWorld, poisonedWorld } from "./clean-worlds.ts";
import { change, FATAL, itReports, node, TestWorld } from "./test-world.ts";

describe("termination", () => {
  itReports([
    [
      "I21",
      "it never ends",
      () => {
        const world = new TestWorld([node("a")]);
        return world.begin(world.dispatched("a")).work("a", 1).world();
      },
    ],
    ["I21", "it is left in quarantine and nothing was built to kill", () => ({ ...poisonedWorld(), poisoned: [] })],
    ["I21", "it is accepted without its definition by an owner that had to look", () => lostDefinitionWorld(true)],
    [
      "I22",
      "all completed and the verdict is partial",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1);
        return world.commit([world.completed("a", 1), world.ended("partial")]).world();
      },
    ],
    [
      "I22",
      "a handled failure counts",
      () => {
        const world = new TestWorld([
          node("a", { dlq: "none" }),
          node("c", { dependencies: [{ id: "a", on: "failed" }] }),
        ]);
        world
          .begin(world.dispatched("a"))
          .work("a")
          .commit([world.failed("a", FATAL), world.dispatched("c")]);
        return world
          .work("c", 1)
          .commit([world.completed("c", 1), world.ended("partial")])
          .world();
      },
    ],
    [
      "I22",
      "its error is that of a catch, not of what it was to catch",
      () => {
        const world = new TestWorld([
          node("a", { dlq: "none" }),
          node("c", { on_error: "fail_fast", dlq: "none", dependencies: [{ id: "a", on: "failed" }] }),
        ]);
        world
          .begin(world.dispatched("a"))
          .work("a")
          .commit([world.failed("a", FATAL), world.dispatched("c")]);
        const ended = world.ended("failed", "fail_fast", { ...FATAL, node: "c" });
        return world
          .work("c")
          .commit([world.failed("c", FATAL), ended])
          .world();
      },
    ],
    [
      "I22",
      "it ends with an open node",
      () => {
        const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
        world.begin(world.dispatched("a")).work("a", 1);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I22",
      "nobody cancelled it",
      () => {
        const world = new TestWorld([node("a")]);
        return world.begin(world.ended("cancelled", "cancel")).world();
      },
    ],
    [
      "I23",
      "something happens after the end",
      () => {
        const world = new TestWorld([node("a"), node("b", { on_error: "fail_fast" })]);
        world.begin(world.dispatched("a"), world.dispatched("b")).work("a").work("b");
        const events = [world.failed("b", FATAL), world.ended("failed", "fail_fast", FATAL)];
        world.commit(events, { deadLetters: world.letter("b"), revoke: [world.token("a")] });
        return world.commit([world.taskStarted("a")], { wakes: [] }).world();
      },
    ],
    [
      "I24",
      "what is out is not called back after a cancel",
      () => change(cancelledWorld(), "commit", 1, { revoke: [] }),
    ],
    [
      "I24",
      "what is out is not called back after fail_fast",
      () => change(failedFastWorld(), "commit", 1, { revoke: [] }),
    ],
    [
      "I24",
      "a cancelled execution goes on",
      () => {
        const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
        world
          .begin(world.dispatched("a"))
          .work("a", 1)
          .cancel("r1")
          .commit([world.applied("r1")])
          .cancelled("r1");
        world.commit([world.completed("a", 1), world.dispatched("b")]).work("b", 1);
        return world.commit([world.completed("b", 1), world.ended()]).world();
      },
    ],
  ]);
});
