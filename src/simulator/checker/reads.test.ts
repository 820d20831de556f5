import { describe } from "vitest";
import { cancelledWorld, plainWorld } from "./clean-worlds.ts";
import { change, itReports, node, TestWorld } from "./test-world.ts";

describe("reads", () => {
  itReports([
    ["I40", "a read sees what is not committed", () => change(plainWorld(), "read", 0, { version: 5 })],
    ["I40", "a read sees half a commit", () => change(plainWorld(), "read", 1, { version: 4 })],
    ["I40", "a read goes back", () => change(plainWorld(), "read", 2, { version: 3, status: "RUNNING" })],
    ["I40", "a read sees another status", () => change(plainWorld(), "read", 2, { status: "RUNNING" })],
    ["I40", "a read finds nothing after an ok", () => change(plainWorld(), "read", 0, { found: false, version: 0 })],
    [
      "I40",
      "a read misses an answered cancel",
      () => change(cancelledWorld(), "read", 0, { version: 3, status: "RUNNING" }),
    ],
    [
      "M2",
      "a client is told ok before the commit",
      () => {
        const world = new TestWorld([node("a")]);
        world.submit().submitted().acquire();
        world.commit([world.accepted(), world.started(), world.dispatched("a")]).work("a", 1);
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "M2",
      "a cancel is answered before its commit",
      () => {
        const world = new TestWorld([node("a")]);
        world.begin(world.dispatched("a")).work("a").cancel("r1").cancelled("r1");
        const events = [world.applied("r1"), world.ended("cancelled", "cancel")];
        return world.commit(events, { revoke: [world.token("a")] }).world();
      },
    ],
  ]);
});
