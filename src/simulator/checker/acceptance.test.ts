import { describe } from "vitest";
import { plainWorld, retriedWorld } from "./clean-worlds.ts";
import { change, changeEvent, drop, itReports, node, TestWorld } from "./test-world.ts";

describe("acceptance", () => {
  itReports([
    [
      "I7",
      "a client was told ok and nothing was accepted",
      () => {
        const world = new TestWorld([node("a")]);
        return world.submit().acquire().submitted().world();
      },
    ],
    [
      "I7",
      "a client was told ok and another body was accepted",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1).submit({ n: 2 }).submitted("ok", { n: 2 });
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I8",
      "it is accepted twice",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a", 1).commit([world.accepted()]);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    ["I8", "nobody submitted it", () => drop(plainWorld(), "submit", 0)],
    ["I8", "it is accepted with another input", () => change(plainWorld(), "submit", 0, { input: { n: 2 } })],
    ["I9", "it is accepted and refused", () => change(retriedWorld(), "submitted", 0, { outcome: "refused" })],
    [
      "I10",
      "an event names a node that the definition does not have",
      () => {
        const world = new TestWorld([node("a")]);
        world
          .begin(world.dispatched("a"))
          .work("a", 1)
          .commit([world.skipped("x", "condition")]);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I10",
      "the definition is unknown",
      () => changeEvent(plainWorld(), "accepted", 0, { definition: "d2" }),
      // The client had submitted another one.
      ["I8"],
    ],
  ]);
});
