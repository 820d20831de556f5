import { describe } from "vitest";
import type { World } from "../history.ts";
import { tenTokens } from "./gate-worlds.ts";
import { itReports } from "./test-world.ts";

/** Both go at once, though they may use twelve. */
function overspent(): World {
  const world = tenTokens().beginAtGate().grant(1, 2);
  world
    .commit([...world.passed("a", 1), ...world.passed("b", 2)])
    .work("a", 1)
    .work("b", 1);
  const ends = [world.completed("a", 1), world.completed("b", 1), world.ended()];
  return world
    .commit([...ends, world.returned(1), world.returned(2)])
    .settle([1, 2], 3)
    .world();
}

/** What the first has used is forgotten. */
function forgotten(): World {
  const world = tenTokens().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .giveBack(1)
    .grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .settle([2], 5)
    .world();
}

/** Two raise it, and the second to less than the first. */
function lowered(): World {
  const world = tenTokens().beginAtGate();
  const raise = (request: string, tokens: number): void => {
    const rule = { kind: "budget", limits: { tokens }, onLimit: "fail" } as const;
    const how = { kind: "commandApplied", command: "override", by: "p", request, rule } as const;
    world.tell({ ...how, atMs: world.now });
  };
  raise("r1", 20);
  raise("r2", 15);
  return world.world({ liveness: false });
}

describe("budgets", () => {
  itReports([
    ["I38a", "more may be used than there is", overspent],
    ["I38a", "somebody who raises it takes back what another has allowed", lowered],
    ["I38b", "something was out and is not counted", forgotten],
  ]);
});
