import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { NO_HANDLERS } from "./handlers.ts";
import { pricesOf } from "./prices.ts";
import { readDefinition } from "./read.ts";

const PRICES = pricesOf(["small=0.15/0.60", "nonsense"]);

function read(node: JsonObject, more: JsonObject = {}) {
  const text = JSON.stringify({ name: "w", nodes: [{ id: "a", handler: "step", ...node }], ...more });
  const handlers = { ...NO_HANDLERS, allowMissing: true, defaults: { prices: PRICES } };
  return readDefinition(text, { format: "json", handlers });
}

describe("budgets are written out", () => {
  test.each<readonly [Json, Json]>([
    [{ tokens: 5 }, { tokens: 5, on_limit: "fail" }],
    [
      { calls: 5, key: "{{ input.who }}", on_limit: "pause" },
      { calls: 5, key: "{{ input.who }}", on_limit: "pause" },
    ],
    [
      { seconds: 1.5, on_limit: "fallback", fallback: "small", estimate: { seconds: 2 } },
      { seconds: 1.5, on_limit: "fallback", fallback: "small", estimate: { seconds: 2 } },
    ],
    [{ usd: 1 }, { usd: 1, on_limit: "fail", prices: { small: { input: 0.15, output: 0.6 } } }],
    [
      { usd: 1, prices: { "*": { input: 1, output: 2 } } },
      { usd: 1, on_limit: "fail", prices: { small: { input: 0.15, output: 0.6 }, "*": { input: 1, output: 2 } } },
    ],
  ])("%j", (written, canonical) => {
    const ofNode = read({ budget: written });
    expect([ofNode.errors, ofNode.warnings]).toEqual([[], []]);
    expect(ofNode.workflow!.nodes[0]!.budget).toEqual(canonical);
    expect(read({}, { budget: written }).workflow!.budget).toEqual(canonical);
  });
});

describe("what does not fit is told", () => {
  test.each<readonly [string, JsonObject, JsonObject, string]>([
    ["nothing to go by", { budget: { on_limit: "fail" } }, {}, "/nodes/0/budget"],
    ["no object", { budget: 5 }, {}, "/nodes/0/budget"],
    ["nothing to spend", { budget: { usd: 0 } }, {}, "/nodes/0/budget/usd"],
    ["an unknown field", { budget: { usd: 1, eur: 2 } }, {}, "/nodes/0/budget/eur"],
    ["a fallback to nothing", { budget: { usd: 1, on_limit: "fallback" } }, {}, "/nodes/0/budget/on_limit"],
    ["an unknown end", { budget: { usd: 1, on_limit: "stop" } }, {}, "/nodes/0/budget/on_limit"],
    ["an estimate of nothing", { budget: { usd: 1, estimate: { tokens: -1 } } }, {}, "/nodes/0/budget/estimate/tokens"],
    ["a key of what has not run", {}, { budget: { usd: 1, key: "{{ a.who }}" } }, "/budget/key"],
    ["a budget of a node of the engine", { handler: "output", budget: { usd: 1 } }, {}, "/nodes/0/budget"],
  ])("%s", (_what, node, more, path) => {
    expect(read(node, more).errors.map((error) => error.path)).toContain(path);
  });
});
