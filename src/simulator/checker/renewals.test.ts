import { describe, expect, it } from "vitest";
import { bodyOf } from "../../core/gate/snapshot.ts";
import type { GateEvent } from "../../core/gate/events.ts";
import { evolve } from "../../core/gate/evolve.ts";
import { GateState } from "../../core/gate/state.ts";
import type { World } from "../history.ts";
import { check } from "./check.ts";
import { type GateWorld, oneAtATime, tenTokens } from "./gate-worlds.ts";
import { itReports } from "./test-world.ts";

/** What the gate is by now, said by itself. */
function renewal(world: GateWorld): Extract<GateEvent, { readonly kind: "gateRenewed" }> {
  const state = new GateState("budget:default:purse");
  for (const entry of world.history) {
    if (entry.log !== "journal" || entry.kind !== "commit") continue;
    for (const { entity, events } of entry.records) {
      if (entity === world.gate) for (const event of events as unknown as GateEvent[]) evolve(state, event);
    }
  }
  return { kind: "gateRenewed", atMs: world.now, state: bodyOf(state) };
}

/** One has gone through and used something, and the other is under way. */
function spent(): GateWorld {
  const world = tenTokens().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .settle([1], 3)
    .grant(2);
  return world;
}

function end(world: GateWorld): World {
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .settle([2], 5)
    .world();
}

function whole(): World {
  const world = spent();
  const event = renewal(world);
  world.tell(event).cut(event.state.version + 1);
  return end(world);
}

function forgetsSpent(): World {
  const world = spent();
  const event = renewal(world);
  const { budget: _, ...state } = event.state;
  return end(world.tell({ ...event, state }));
}

function forgetsHeld(): World {
  const world = spent();
  const event = renewal(world);
  return end(world.tell({ ...event, state: { ...event.state, held: [] } }));
}

function cutTooFar(): World {
  const world = spent();
  const event = renewal(world);
  world.tell(event).cut(event.state.version + 2);
  return end(world);
}

/** Its execution goes on, and may spend what is left. */
function removedEarly(): World {
  const world = spent();
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .settle([2], 5)
    .remove()
    .world();
}

function removedInUse(): World {
  const world = oneAtATime().beginAtGate().grant(1).remove();
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .giveBack(1)
    .grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
}

describe("renewals", () => {
  itReports([
    ["I49", "a renewal forgets what was spent", forgetsSpent],
    ["I49", "a renewal forgets who is under way", forgetsHeld],
    ["I49", "a budget goes before its execution", removedEarly],
    ["I49", "a gate goes that somebody has passed", removedInUse],
    ["I49", "a journal loses the event that holds all of it", cutTooFar],
  ]);

  it("finds nothing wrong with a journal that is cut at a renewal", () => {
    expect(check(whole())).toEqual([]);
  });
});
