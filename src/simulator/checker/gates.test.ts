import { describe } from "vitest";
import type { World } from "../history.ts";
import { behindWorld, lapsedWorld, oneASecond, oneAtATime, placesWorld, rateWorld } from "./gate-worlds.ts";
import { dropEvent, itReports, node, TestWorld } from "./test-world.ts";

/** Both are out at once. */
function crowded(): World {
  const world = oneAtATime().beginAtGate().grant(1, 2);
  world
    .commit([...world.passed("a", 1), ...world.passed("b", 2)])
    .work("a", 1)
    .work("b", 1);
  const ends = [world.completed("a", 1), world.completed("b", 1), world.ended()];
  return world
    .commit([...ends, world.returned(1), world.returned(2)])
    .giveBack(1, 2)
    .world();
}

/** `b` goes out while its gate has let only `a` through. */
function slipped(): World {
  const world = oneAtATime().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world.commit([world.completed("a", 1), world.returned(1)]).giveBack(1);
  world.commit([world.dispatched("b")]).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
}

/** The first is let through a second before the other, and begins with it. */
function bunched(): World {
  const world = oneASecond().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).pass(1_000).grant(2);
  world.commit(world.passed("b", 2)).work("a", 1).work("b", 1);
  const events = [
    world.completed("a", 1),
    world.completed("b", 1),
    world.ended(),
    world.returned(1),
    world.returned(2),
  ];
  return world.commit(events).giveBack(1, 2).world();
}

/** Nobody tells the gate that `b` is done. */
function leaked(): World {
  const world = oneAtATime().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .giveBack(1)
    .grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world.commit([world.completed("b", 1), world.ended()]).world();
}

/** Its workflow may run once at a time, and it has not asked. */
function uninvited(): World {
  const world = new TestWorld([node("a")], { concurrency: { limit: 1, on_conflict: "queue" } });
  world.begin(world.dispatched("a")).work("a", 1);
  return world.commit([world.completed("a", 1), world.ended()]).world();
}

describe("gates", () => {
  itReports([
    ["I38", "two go through in less than a second", () => rateWorld(900)],
    ["I38e", "two begin at once that were let through a second apart", bunched],
    ["I38e", "two begin too soon after each other, and nobody has taken over between them", () => behindWorld(false)],
    ["I38e", "one has begun just before it lapses, and another soon after it", () => lapsedWorld(false)],
    ["I39", "two are out where one may be", crowded],
    ["I39a", "a task passes its gate unasked", slipped],
    ["I39a", "a task goes out though its execution was told nothing", () => dropEvent(placesWorld(), "gateGranted", 1)],
    ["I39b", "a place is never given back", leaked],
    ["I48", "an execution runs without a place among those of its workflow", uninvited],
    ["I39c", "a gate is waited at that was not asked", () => placesWorld(false)],
  ]);
});
