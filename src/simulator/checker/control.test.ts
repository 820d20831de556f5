import { describe } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import {
  endedWorld,
  engine,
  impatientWorld,
  mappedWorld,
  pausedWorld,
  repeatedWorld,
  routedWorld,
} from "./control-worlds.ts";
import { changeEvent, dropEvent, FATAL, itReports, node, TestWorld } from "./test-world.ts";

const CHOICE = { mode: "exclusive", on_error: "fail", routes: [{ when: "input.n > 0", to: "b" }], else: "c" };

/** `c` runs, and the router has chosen `b`. */
function unchosenRuns(): World {
  const world = new TestWorld([
    engine("r", "router", CHOICE),
    node("b", { dependencies: ["r"] }),
    node("c", { dependencies: ["r"] }),
  ]);
  world.begin(world.nodeCompleted("r", { chosen: ["b"] }), world.dispatched("b"), world.dispatched("c"));
  world.work("b", 1).work("c", 1);
  return world.commit([world.completed("b", 1), world.completed("c", 1), world.ended()]).world();
}

/** A map of two items of which none may fail, and one at a time. */
function strictMap(events: (world: TestWorld) => ExecutionEvent[]): World {
  const config = { items: [1, 2], handler: "step", config: {}, max_concurrency: 1, tolerated_failures: 0 };
  const world = new TestWorld([engine("m", "map", config, { timeout_seconds: 30, dlq: "none" })]);
  world.begin(world.mapOpened("m", [1, 2]), world.dispatched("m[0]")).work("m[0]", 1);
  for (const event of events(world)) {
    world.commit([event]);
    if (event.kind === "taskDispatched") world.work(event.node, 1);
  }
  return world.world();
}

describe("control flow", () => {
  itReports([
    ["C6-router", "an unchosen dependant runs", unchosenRuns],
    [
      "C6-router",
      "a router chooses otherwise than its conditions say",
      () => changeEvent(routedWorld(), "nodeCompleted", 0, { output: { json: { chosen: ["b", "c"] } } }),
      ["I16"],
    ],
    ["C6-end", "the execution goes on after its end node", endedLater],
    [
      "C6-end",
      "the end node says otherwise",
      () => changeEvent(endedWorld(), "executionEnded", 0, { status: "failed" }),
      ["I36"],
    ],
    ["C6-end", "its output is another", () => changeEvent(endedWorld(), "executionEnded", 0, { output: { json: 1 } })],
    [
      "C5-pause",
      "something begins while it is paused",
      () => {
        const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
        world.begin(world.dispatched("a")).ask("p", { kind: "pause" });
        world.commit([world.applied("p", "pause"), { kind: "paused", atMs: world.now }]).work("a", 1);
        world.commit([world.completed("a", 1), world.dispatched("b")]).work("b", 1);
        return world.commit([world.completed("b", 1), world.ended()]).world();
      },
    ],
    [
      "C5-operations",
      "it is resumed, and nobody had asked for it",
      () => dropEvent(pausedWorld(), "commandApplied", 1),
      ["I43"],
    ],
    ["C6-repeat", "a round is the last, and its output says no", () => unheard()],
    [
      "C6-repeat",
      "the next round comes too soon",
      () => changeEvent(repeatedWorld(), "roundEnded", 0, { nextAtMs: 2_000 }),
    ],
    ["I13", "a round is left out", roundLeftOut],
    [
      "C6-map",
      "the results are out of order",
      () => changeEvent(mappedWorld(), "nodeCompleted", 0, { output: { json: ["z", null, "x"] } }),
    ],
    [
      "C6-map",
      "it is opened with other items",
      () => changeEvent(mappedWorld(), "mapOpened", 0, { items: { json: [7, 8, 10] } }),
      ["I18"],
    ],
    [
      "C6-map",
      "more run at a time than may",
      () =>
        strictMap((world) => [
          world.dispatched("m[1]"),
          world.completed("m[0]", 1),
          world.completed("m[1]", 1),
          world.nodeCompleted("m", [1, 1]),
          world.ended(),
        ]),
    ],
    [
      "C6-map",
      "it goes on after too many have failed",
      () =>
        strictMap((world) => [
          world.failed("m[0]", FATAL),
          world.dispatched("m[1]"),
          world.completed("m[1]", 1),
          world.nodeFailed("m", "MAP_FAILED"),
          world.ended("failed"),
        ]),
    ],
    [
      "C6-map",
      "it completes although too many have failed",
      () => strictMap((world) => [world.failed("m[0]", FATAL), world.nodeCompleted("m", [null, null]), world.ended()]),
    ],
    ["I28", "a join gives up after it has spoken", spokenJoin],
    ["I29", "a join gives up too early", () => changeEvent(impatientWorld(), "nodeFailed", 0, { atMs: 4_000 })],
  ]);
});

/** The second round's output says enough, and another was judged so. */
function unheard(): World {
  const repeat = { until: "a.done", every_seconds: 2, max: 3 };
  const world = new TestWorld([node("a", { repeat })]);
  world.begin({ ...world.dispatched("a"), round: 1 } as ExecutionEvent).work("a@1", { done: false });
  return world.commit([world.completed("a", { done: false }), world.roundEnded("a", 1, null), world.ended()]).world();
}

function spokenJoin(): World {
  const world = new TestWorld([node("a"), node("j", { dependencies: ["a"], join_timeout_seconds: 5, dlq: "none" })]);
  world
    .begin(world.dispatched("a"))
    .work("a", 1)
    .commit([world.completed("a", 1)])
    .pass(6_000);
  return world.commit([world.nodeFailed("j", "JOIN_TIMEOUT"), world.ended("partial")]).world();
}

/** The end comes in a commit of its own, after the node that says so. */
function endedLater(): World {
  const world = new TestWorld([engine("e", "end", { status: "COMPLETED" })]);
  world.begin(world.nodeCompleted("e", null));
  return world.commit([world.ended("completed", "end")]).world();
}

function roundLeftOut(): World {
  const repeat = { until: "a.done", every_seconds: 2, max: 3 };
  const world = new TestWorld([node("a", { repeat })]);
  const round = (number: number): ExecutionEvent => ({ ...world.dispatched("a"), round: number }) as ExecutionEvent;
  world.begin(round(1)).work("a@1", { done: false });
  world.commit([world.completed("a", { done: false }), world.roundEnded("a", 1, world.now + 2_000)]).pass(2_000);
  world.commit([{ kind: "roundDue", atMs: world.now, node: "a" }, round(3)]).work("a@3", { done: true });
  return world.commit([world.completed("a", { done: true }), world.roundEnded("a", 3, null), world.ended()]).world();
}
