import { describe } from "vitest";
import type { World } from "../history.ts";
import { retriedWorld } from "./clean-worlds.ts";
import { changeEvent, FATAL, FLAKY, itReports, node, TestWorld } from "./test-world.ts";

/** A result of the history that the store has lost is taken for one of the dispatch that replaced it. */
function resultOfALostDispatch(): World {
  const world = new TestWorld([node("a")]);
  world.submit().acquire();
  world.commit([world.accepted(), world.started()]).submitted();
  const kept = world.history.length;
  world.commit([world.dispatched("a")]).work("a", 1);
  world.rollBack(kept, 1, 2).acquire("engine-2");
  world.commit([world.dispatched("a")]);
  return world.commit([world.completed("a", 1), world.ended()]).world({ lossy: true });
}

describe("attempts", () => {
  itReports([
    [
      "I13",
      "an attempt is made before a retry is due",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        world.commit([world.failed("a", FLAKY, { retryAtMs: world.now + 1_000 })]).pass(1_000);
        world.commit([world.dispatched("a", {}, [2, 1])]).work("a", 1, {}, [2, 1]);
        return world.commit([world.completed("a", 1, [2, 1]), world.ended()]).world();
      },
    ],
    [
      "I13",
      "a node is given up while attempts are left",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        const events = [world.failed("a", FLAKY), world.ended("failed")];
        return world.commit(events, { deadLetters: world.letter("a", "exhausted") }).world();
      },
    ],
    ["I13", "the wait is too short", () => changeEvent(retriedWorld(), "taskFailed", 0, { retryAtMs: 1_500 })],
    [
      "I13",
      "a delivery goes out while another is",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin(world.dispatched("a"))
          .work("a", 1)
          .commit([world.dispatched("a", {}, [1, 2])]);
        world.work("a", 1, {}, [1, 2]);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I13",
      "a third worker is lost and a fourth gets it",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        for (const delivery of [1, 2, 3]) {
          world.commit([world.lost("a", [1, delivery]), world.dispatched("a", {}, [1, delivery + 1])]);
          world.work("a", 1, {}, [1, delivery + 1]);
        }
        return world.commit([world.completed("a", 1, [1, 4]), world.ended()]).world();
      },
    ],
    [
      "I13",
      "hand-backs are held against a task",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        for (const delivery of [1, 2]) {
          world.commit([world.lost("a", [1, delivery], true), world.dispatched("a", {}, [1, delivery + 1])]);
          world.work("a", undefined, {}, [1, delivery + 1]);
        }
        const error = { code: "POISON_TASK", message: "", retryable: false };
        const events = [world.failed("a", error, { delivery: 3 }), world.ended("failed")];
        return world.commit(events, { deadLetters: world.letter("a") }).world();
      },
    ],
    [
      "I14",
      "a result counts for an attempt that had failed",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1);
        world.commit([world.failed("a", FLAKY, { retryAtMs: world.now + 1_000 })]);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I14",
      "a worker that was given up for lost ends the attempt of another",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        world.commit([world.lost("a"), world.dispatched("a", {}, [1, 2])]).work("a", 1, {}, [1, 2]);
        const events = [world.failed("a", FATAL), world.ended("failed")];
        return world.commit(events, { deadLetters: world.letter("a") }).world();
      },
    ],
    [
      "I15",
      "a node ends twice",
      () => {
        const world = new TestWorld([node("a"), node("b")]);
        world.begin(world.dispatched("a"), world.dispatched("b")).work("a", 1).work("b", 1);
        world.commit([world.completed("a", 1)]).commit([world.completed("a", 1)]);
        return world.commit([world.completed("b", 1), world.ended()]).world();
      },
    ],
    [
      "I15",
      "an execution ends twice",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin(world.dispatched("a"))
          .work("a", 1)
          .commit([world.completed("a", 1), world.ended()]);
        return world.commit([world.ended()]).world();
      },
    ],
    ["I33", "a result of a lost dispatch counts", resultOfALostDispatch, ["I19"]],
    [
      "I33",
      "a result of the task that is out is thrown away",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1);
        world.commit([{ kind: "resultIgnored", atMs: world.now, token: world.token("a"), reason: "staleAttempt" }]);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
  ]);
});
