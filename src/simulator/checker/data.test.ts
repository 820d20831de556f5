import { describe } from "vitest";
import type { World } from "../history.ts";
import { plainWorld, retriedWorld } from "./clean-worlds.ts";
import { change, changeEvent, itReports, node, TestWorld } from "./test-world.ts";

const SECRET_IN_THE_NOTE = { value: 7, note: "s3cret", auth: "Bearer s3cret" };

/** A secret where no template names it, in a config that the reference resolver does not cover. */
function leak(): World {
  const world = new TestWorld([node("a", { config: { note: "{{ input.text | upper }}" } })]);
  world.begin(world.dispatched("a")).work("a", 1, { note: "s3cret" });
  return world.commit([world.completed("a", 1), world.ended()]).world();
}

describe("data", () => {
  itReports([
    ["I18", "a dispatch is of another input", () => changeEvent(plainWorld(), "taskDispatched", 1, { inputHash: "x" })],
    ["I18", "a task made again sees more", () => changeEvent(retriedWorld(), "taskDispatched", 1, { seen: 4 })],
    ["I18", "a task sees less than its join did", () => changeEvent(plainWorld(), "taskDispatched", 1, { seen: 3 })],
    ["I18", "a handler gets another config", () => change(plainWorld(), "handlerStart", 1, { config: { value: 8 } })],
    [
      "I18",
      "a handler gets inputs it did not ask for",
      () => change(plainWorld(), "handlerStart", 1, { inputs: { a: 1 } }),
    ],
    [
      "I18",
      "a node is dispatched though a template has no value",
      () => {
        const world = new TestWorld([node("a", { config: { x: "{{ input.x }}" } })]);
        world.begin(world.dispatched("a", { x: null })).work("a", 1, { x: null });
        return world.commit([world.completed("a", 1), world.ended()]).world();
      },
    ],
    [
      "I18",
      "a node fails by a template that has a value",
      () => {
        const world = new TestWorld([node("a", { config: { x: "{{ input.n }}" }, dlq: "none" })]);
        return world.begin(world.nodeFailed("a", "TEMPLATE_UNRESOLVED"), world.ended("failed")).world();
      },
    ],
    ["I19", "another output is taken", () => change(retriedWorld(), "handlerEnd", 3, { output: { ok: false } })],
    [
      "I19",
      "the output of a handler that failed is taken",
      () => change(retriedWorld(), "handlerEnd", 3, { failed: true }),
    ],
    [
      "I19",
      "the engine's own node gives something else",
      () => {
        const world = new TestWorld([node("out", { handler: "output", config: { n: "{{ input.n }}" } })]);
        return world.begin(world.nodeCompleted("out", { n: 2 }), world.ended()).world();
      },
    ],
    ["M18", "a secret is where no template names it", leak],
    [
      "I18",
      "a text that looks like a template is filled in",
      () => change(plainWorld(), "handlerStart", 1, { config: SECRET_IN_THE_NOTE }),
      ["M18"],
    ],
    [
      "M19",
      "the key changes with the attempt",
      () => change(retriedWorld(), "delivered", 1, { idempotencyKey: "e1/a/2" }),
    ],
    ["M19", "two nodes have one key", () => change(plainWorld(), "delivered", 1, { idempotencyKey: "e1/a/1" })],
  ]);
});
