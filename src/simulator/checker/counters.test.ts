import { describe } from "vitest";
import { plainWorld, retriedWorld } from "./clean-worlds.ts";
import { itReports, node, remain, TestWorld } from "./test-world.ts";

const HEADER = { entity: "execution/e1", class: "endedWell", status: "COMPLETED", version: 7 };

describe("counters", () => {
  itReports([
    [
      "I36",
      "an ended execution is listed as open",
      () => remain(retriedWorld(), { headers: [{ ...HEADER, class: "open" }] }),
    ],
    ["I36", "a list is ahead of the journal", () => remain(plainWorld(), { headers: [{ ...HEADER, version: 99 }] })],
    ["I36", "an execution is not listed", () => remain(plainWorld(), { headers: [] })],
    [
      "I37",
      "more nodes run at once than may",
      () => {
        const world = new TestWorld([node("a"), node("b")], { max_parallel_nodes: 1 });
        world.begin(world.dispatched("a"), world.dispatched("b")).work("a", 1).work("b", 1);
        return world.commit([world.completed("a", 1), world.completed("b", 1), world.ended()]).world();
      },
    ],
    [
      "M11",
      "a node of lower priority is dispatched first",
      () => {
        const world = new TestWorld([node("x"), node("a"), node("b", { priority: 2 })], { max_parallel_nodes: 1 });
        world.begin(world.dispatched("x")).work("x", 1);
        world.commit([world.completed("x", 1), world.dispatched("a")]).work("a", 1);
        world.commit([world.completed("a", 1), world.dispatched("b")]).work("b", 1);
        return world.commit([world.completed("b", 1), world.ended()]).world();
      },
    ],
    [
      "M11",
      "a task of lower priority is given away first",
      () => {
        const world = new TestWorld([node("a", { priority: 2 }), node("b", { dependencies: ["x"] }), node("x")]);
        world.begin(world.dispatched("a"), world.dispatched("x")).work("x", 1).pass(10);
        world
          .commit([world.completed("x", 1), world.dispatched("b")])
          .pass(2_000)
          .work("b", 1)
          .pass(2_000)
          .work("a", 1);
        return world.commit([world.completed("a", 1), world.completed("b", 1), world.ended()]).world();
      },
    ],
  ]);
});
