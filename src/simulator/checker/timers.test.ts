import { describe } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import { plainWorld, retriedWorld, slowWorld } from "./clean-worlds.ts";
import { change, changeEvent, FLAKY, itReports, node, remain, TestWorld } from "./test-world.ts";

const ENTITY = "execution/e1";

describe("timers", () => {
  itReports([
    [
      "I26",
      "a node can run and the store wakes nobody in time",
      () => {
        const world = new TestWorld([node("a")]);
        world.submit().acquire();
        const wakes = [{ entity: world.entity, atMs: world.now + 5 }];
        world.commit([world.accepted(), world.started()], { wakes }).submitted();
        world.commit([world.dispatched("a")]).work("a", 1);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I26",
      "all nodes have ended and nobody is woken to end it",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1);
        world.commit([world.completed("a", 1)], { wakes: [{ entity: world.entity, atMs: world.now + 5 }] });
        return world.commit([world.ended()]).world();
      },
    ],
    [
      "I27",
      "a task is out and nobody is woken",
      () => change(retriedWorld(), "commit", 0, { wakes: [{ entity: ENTITY, atMs: null }] }),
    ],
    [
      "I27",
      "the wake is after the deadline",
      () => change(retriedWorld(), "commit", 0, { wakes: [{ entity: ENTITY, atMs: 62_000 }] }),
    ],
    [
      "I27",
      "a dispatch has no deadline",
      () => changeEvent(plainWorld(), "taskDispatched", 0, { queueDeadlineAtMs: 1_000 }),
    ],
    [
      "I27",
      "a start has a deadline before its timeout",
      () => changeEvent(slowWorld(), "taskStarted", 0, { runDeadlineAtMs: 20_000 }),
    ],
    ["I27", "an ended execution is woken", () => remain(plainWorld(), { wakes: [ENTITY] })],
    ["I27", "something is left to do in peace", () => ({ ...plainWorld(), restless: ["gate/x"] })],
    [
      "I28",
      "a deadline fires long after the result was posted",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin(world.dispatched("a"))
          .work("a", 1)
          .pass(1_000)
          .commit([world.taskStarted("a")]);
        world.pass(50_000);
        const timeout = { code: "TIMEOUT", message: "", retryable: true };
        world.commit([world.failed("a", timeout, { deadline: "run", retryAtMs: world.now + 1_000 })], {
          revoke: [world.token("a")],
        });
        return world.world({ liveness: false });
      },
    ],
    ["I28", "a deadline fires though the result was parked", parkedWorld],
    [
      "I28",
      "a retry becomes due twice",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a");
        world.commit([world.failed("a", FLAKY, { retryAtMs: world.now + 1_000 })]).pass(1_000);
        world.commit([world.retryDue("a")]).commit([world.retryDue("a"), world.dispatched("a", {}, [2, 1])]);
        world.work("a", 1, {}, [2, 1]);
        return world.commit([world.completed("a", 1, [2, 1]), world.ended()]).world();
      },
    ],
    [
      "I28",
      "the deadline of the queue ends a task that runs",
      () => changeEvent(slowWorld(), "taskFailed", 0, { deadline: "queue" }),
    ],
    ["I29", "a retry is due too early", () => changeEvent(retriedWorld(), "retryDue", 0, { atMs: 1_500 })],
    ["I29", "a timeout comes too early", () => changeEvent(slowWorld(), "executionEnded", 0, { atMs: 70_999 })],
    ["I29", "an event is after its commit", () => changeEvent(retriedWorld(), "executionEnded", 0, { atMs: 9_000 })],
    [
      "I29",
      "time goes back",
      () => change(change(plainWorld(), "commit", 4, { timeMs: 500, records: [] }), "answered", 0, { code: "X" }),
    ],
  ]);
});

/** Its result comes while it is in quarantine, and on its release its deadline is faster. */
function parkedWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a");
  world.pass(1_000).commit([world.taskStarted("a")]);
  const error = { code: "DECISION_FAILED", message: "", retryable: false };
  const message = { body: { kind: "taskCompleted", token: world.token("a"), output: { json: 1 }, runningMs: 1 } };
  const parked = [
    { kind: "quarantined", atMs: world.now, error },
    { kind: "parked", atMs: world.now, message },
  ];
  world.commit(parked as unknown as ExecutionEvent[]).pass(50_000);
  world.commit([{ kind: "released", atMs: world.now, request: "automatic" } as unknown as ExecutionEvent]);
  const timeout = { code: "TIMEOUT", message: "", retryable: true };
  world.commit([world.failed("a", timeout, { deadline: "run", retryAtMs: world.now + 1_000 })], {
    revoke: [world.token("a")],
  });
  return world.world({ liveness: false });
}
