import { describe } from "vitest";
import type { World } from "../history.ts";
import { caughtWorld, givenAgainWorld, plainWorld, poisonedWorld } from "./clean-worlds.ts";
import { change, itReports, node, orderOf, remain, TestWorld } from "./test-world.ts";

function deliveredTwice(world: World): World {
  return { ...world, history: [...world.history, world.history[orderOf(world, "delivered", 0)]!] };
}

describe("delivery", () => {
  itReports([
    [
      "I31",
      "a task has vanished from its queue",
      () => {
        const world = new TestWorld([node("a")]);
        return world.begin(world.dispatched("a")).world({ liveness: false });
      },
    ],
    ["I32", "a task is delivered twice", () => deliveredTwice(plainWorld())],
    ["I32", "a task is given again that had been given when the store was saved", () => givenBeforeSaved()],
    ["I32", "a task is given three times, and the store went back once", () => deliveredTwice(givenAgainWorld())],
    [
      "I32",
      "a handler is called twice",
      () => ({ ...deliveredTwice(plainWorld()), volatileTasks: true, history: twiceStarted() }),
    ],
    ["I32", "a worker that is well loses its task", () => healedFirst(lostWorld())],
    ["I32", "a task is given out after it was called back", () => calledBack()],
    ["I34", "a message is left", () => remain(plainWorld(), { inbox: 1 })],
    ["I34", "a task is left", () => remain(plainWorld(), { tasks: ["nonce-1:e1:1:a:1:1"] })],
    [
      "I35",
      "a failure leaves no dead letter",
      () => remain(change(caughtWorld(), "commit", 1, { deadLetters: [] }), { deadLetters: [] }),
    ],
    ["I35", "a dead letter is of the wrong class", () => wrongClass()],
    ["I35", "a dead letter is lost", () => remain(poisonedWorld(), { deadLetters: [] })],
  ]);
});

/** The same history, in a world where nothing was ever wrong. */
function healedFirst(world: World): World {
  return {
    ...world,
    volatileTasks: false,
    history: [{ log: "nemesis", kind: "healed", at: -10_000 }, ...world.history],
  };
}

function calledBack(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).cancel("r").pass(10);
  const token = world.token("a");
  world.commit([world.applied("r"), world.ended("cancelled", "cancel")], { revoke: [token] });
  return world.cancelled("r").pass(5_000).work("a").world();
}

function lostWorld(): World {
  const world = new TestWorld([node("a")]);
  world
    .begin(world.dispatched("a"))
    .work("a")
    .commit([world.lost("a"), world.dispatched("a", {}, [1, 2])]);
  world.work("a", 1, {}, [1, 2]).pass(10);
  return world.commit([world.completed("a", 1, [1, 2]), world.ended()]).world();
}

function givenBeforeSaved(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a", 1);
  world.rollBack(world.history.length, 1, 3).work("a", 1);
  return world.commit([world.completed("a", 1), world.ended()]).world({ lossy: true });
}

function twiceStarted(): World["history"] {
  const world = plainWorld();
  return [...world.history, world.history[orderOf(world, "handlerStart", 0)]!];
}

function wrongClass(): World {
  const deadLetters = [{ id: "e1:1:a", class: "exhausted", entity: "execution/e1", status: "open" }];
  return remain(change(caughtWorld(), "commit", 1, { deadLetters }), { deadLetters });
}
