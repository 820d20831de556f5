import { describe } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import { againWorld, failedAgainWorld, lateWorld, replayedWorld } from "./control-worlds.ts";
import { change, changeEvent, dropEvent, itReports, node, remain, TestWorld } from "./test-world.ts";

/** `a` has completed; the retry of another node runs it again. */
function keptRuns(): World {
  const world = new TestWorld([node("a"), node("b")]);
  world.begin(world.dispatched("a"), world.dispatched("b")).work("a", 1).work("b", 1);
  world.commit([world.completed("a", 1), world.completed("b", 1), world.ended()]);
  world.ask("t", { kind: "retry", scope: "node", from: "b" });
  world.commit([
    world.applied("t", "retry"),
    world.opened("node", { from: "b" }),
    world.dispatched("b"),
    world.dispatched("a"),
  ]);
  world.answered("t", "retry").work("b", 2, {}, [1, 1, 2]).work("a", 2);
  return world.commit([world.completed("a", 2), world.completed("b", 2), world.ended()]).world();
}

/** Two who asked at once both got what they wanted. */
function twoGenerations(): World {
  const world = new TestWorld([node("a")]);
  world
    .begin(world.dispatched("a"))
    .work("a", 1)
    .commit([world.completed("a", 1), world.ended()]);
  const retry = { kind: "retry", scope: "node", from: "a" } as const;
  world.ask("t1", retry).ask("t2", retry);
  world.commit([world.applied("t1", "retry"), world.opened("node", { from: "a" })]);
  world.commit([world.applied("t2", "retry"), world.opened("node", { from: "a" }), world.dispatched("a")]);
  return world
    .work("a", 2, {}, [1, 1, 2])
    .commit([world.completed("a", 2), world.ended()])
    .world();
}

/** The late result is not taken, and the work is done again. */
function lateIgnored(): World {
  const world = kept(cancelledEarly()).ask("t1", { kind: "retry", scope: "failed" });
  world.commit([world.applied("t1", "retry"), world.opened("failed"), world.dispatched("a")]).work("a", 1);
  return world.commit([world.completed("a", 1), world.ended()]).world();
}

describe("generations", () => {
  itReports([
    ["C5-retry", "a kept node runs again", keptRuns],
    ["C5-operations", "two retries at once open two generations", twoGenerations, ["C5-retry"]],
    ["C5-operations", "a generation that nobody wanted", () => dropEvent(againWorld(), "commandApplied", 0), ["I43"]],
    [
      "I27",
      "the timeout does not begin anew",
      () => changeEvent(againWorld(), "generationOpened", 0, { deadlineAtMs: 601_000 - 1 }),
    ],
    ["C5-retry", "a number is left out", () => numbered(3)],
    [
      "C5-operations",
      "another scope than was asked for",
      () => changeEvent(againWorld(), "generationOpened", 0, { scope: "descendants", from: "b" }),
    ],
    ["C5-late", "a late result is taken for other work", edited],
    ["C5-late", "a late result is not kept", () => cancelledEarly().world()],
    ["C5-late", "a late result is ignored", lateIgnored],
    [
      "C5-late",
      "another output is taken for the late one",
      () => changeEvent(lateWorld(), "nodeCompleted", 0, { output: { json: 2 } }),
    ],
    ["M19", "the key stays although the handler had answered", () => keyed(againWorld(), "e1/b/1")],
    ["I35", "a dead letter is replayed, and not marked", () => unmarked()],
    ["I35", "a dead letter is not thrown away", () => notThrownAway()],
    ["C5-operations", "a replay of what was run again is not refused", () => failedAgainWorld(["e1:1:a"]), ["I35"]],
  ]);
});

/** Cancelled while `a` is out, whose result comes afterwards. */
function cancelledEarly(): TestWorld {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a", 1).cancel("r1");
  world.commit([world.applied("r1"), world.ended("cancelled", "cancel")], { revoke: [world.token("a")] });
  return world.cancelled("r1");
}

function kept(world: TestWorld): TestWorld {
  const late = {
    kind: "lateResult",
    atMs: world.now,
    node: "a",
    attempt: 1,
    delivery: 1,
    output: { json: 1 },
  } as const;
  return world.commit([late], { wakes: [] });
}

/** The config was edited, and the late result is taken all the same. */
function edited(): World {
  const world = kept(cancelledEarly());
  const config = { x: 1 };
  world.ask("t1", { kind: "retry", scope: "node", from: "a", config });
  const done = { ...world.nodeCompleted("a", 1), reason: "late_result" } as ExecutionEvent;
  const opened = world.opened("node", { from: "a", config });
  return world.commit([world.applied("t1", "retry"), opened, done, world.ended()]).world();
}

function numbered(generation: number): World {
  const world = new TestWorld([node("a")]);
  world
    .begin(world.dispatched("a"))
    .work("a", 1)
    .commit([world.completed("a", 1), world.ended()]);
  world.ask("t", { kind: "retry", scope: "node", from: "a" });
  const opened = world.opened("node", { from: "a", generation });
  world.commit([world.applied("t", "retry"), opened, world.dispatched("a")]).answered("t", "retry");
  return world
    .work("a", 2, {}, [1, 1, 2])
    .commit([world.completed("a", 2), world.ended()])
    .world();
}

/** The last delivery has this key. */
function keyed(world: World, idempotencyKey: string): World {
  return change(world, "delivered", 2, { idempotencyKey });
}

function unmarked(): World {
  const world = replayedWorld();
  const letters = world.remains.deadLetters.map((letter) => ({ ...letter, status: "open" }));
  return remain(change(world, "commit", 2, { deadLetters: [] }), { deadLetters: letters });
}

function notThrownAway(): World {
  const world = replayedWorld();
  const letter = { id: "e1:1:b", class: "poison", entity: "execution/e1", status: "open" };
  return remain(change(world, "commit", 3, { discard: [] }), { deadLetters: [...world.remains.deadLetters, letter] });
}
