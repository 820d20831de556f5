import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { NO_HANDLERS } from "./handlers.ts";
import { readDefinition } from "./read.ts";

const handlers = { ...NO_HANDLERS, allowMissing: true };

function read(node: JsonObject, more: JsonObject = {}, defaults = {}) {
  const text = JSON.stringify({ name: "w", nodes: [{ id: "a", handler: "step", ...node }], ...more });
  return readDefinition(text, { format: "json", handlers: { ...handlers, defaults } });
}

describe("limits are written out", () => {
  test.each<readonly [Json, Json]>([
    [{ rate: 50 }, { rate: 50, per: "second", burst: 50 }],
    [
      { rate: 90, per: "minute" },
      { rate: 90, per: "minute", burst: 2 },
    ],
    [
      { rate: 1, per: "hour", burst: 7 },
      { rate: 1, per: "hour", burst: 7 },
    ],
    [{ concurrency: 4 }, { concurrency: 4 }],
    [{ tokens_per_minute: 90_000 }, { tokens_per_minute: 90_000, tokens_burst: 90_000 }],
    [
      { rate: 2, tokens_per_minute: 0.5, tokens_burst: 7 },
      { rate: 2, per: "second", burst: 2, tokens_per_minute: 0.5, tokens_burst: 7 },
    ],
    [{ breaker: true }, { breaker: { failure_rate: 0.5, window: 20, min_calls: 10, open_seconds: 30 } }],
    [
      { breaker: { window: 5, open_seconds: 2 } },
      { breaker: { failure_rate: 0.5, window: 5, min_calls: 5, open_seconds: 2 } },
    ],
  ])("%j", (written, canonical) => {
    const { workflow, errors, warnings } = read({ limit: "x" }, { limits: { x: written } });
    expect([errors, warnings]).toEqual([[], []]);
    expect(workflow!.limits).toEqual({ x: canonical });
    expect(workflow!.nodes[0]!.limit).toBe("x");
  });

  test("also those of the settings, if somebody names them", () => {
    expect(read({ limit: "openai" }).workflow!.limits).toEqual({ openai: { rate: 50, per: "second", burst: 50 } });
    expect(read({}).workflow!).not.toHaveProperty("limits");
    const defaults = { limits: { gpu: { concurrency: 2 } } };
    expect(read({ limit: "gpu" }, {}, defaults).workflow!.limits).toEqual({ gpu: { concurrency: 2 } });
    expect(read({ limit: "openai" }, {}, defaults).errors.length).toBe(1);
    const own = read({ limit: "openai" }, { limits: { openai: { rate: 1 } } });
    expect(own.workflow!.limits).toEqual({ openai: { rate: 1, per: "second", burst: 1 } });
  });

  test("also that of a handler, on nodes that state none and call somebody", () => {
    const defaults = { limitOf: { step: "openai" } };
    const openai = { rate: 50, per: "second", burst: 50 };
    expect(read({}, {}, defaults).workflow).toMatchObject({ limits: { openai }, nodes: [{ limit: "openai" }] });
    expect(read({ limit: { rate: 3 } }, {}, defaults).workflow).toMatchObject({ nodes: [{ limit: { rate: 3 } }] });
    const map = { handler: "map", config: { items: [1], handler: "step", config: {} } };
    expect(read(map, {}, defaults).workflow).toMatchObject({ nodes: [{ limit: "openai" }] });
    for (const free of [read({ config: { mock: 1 } }, {}, defaults), read({}, {}, { ...defaults, limits: {} })]) {
      expect(free.errors).toEqual([]);
      expect(free.workflow!.nodes[0]).not.toHaveProperty("limit");
    }
  });

  test("and those of a node", () => {
    expect(read({ limit: { rate: 3 } }).workflow!.nodes[0]!.limit).toEqual({
      cost: 1,
      rate: 3,
      per: "second",
      burst: 3,
    });
    expect(read({ limit: { name: "openai", cost: 5 } }).workflow!.nodes[0]!.limit).toEqual({ name: "openai", cost: 5 });
    expect(read({ limit: { name: "openai", tokens: 9 } }).workflow!.nodes[0]!.limit).toEqual({
      name: "openai",
      cost: 1,
      tokens: 9,
    });
    expect(read({ concurrency: { limit: 2 } }).workflow!.nodes[0]!.concurrency).toEqual({
      limit: 2,
      on_conflict: "queue",
    });
  });
});

describe("what does not fit is told", () => {
  test.each<readonly [string, JsonObject, JsonObject, string, string]>([
    ["an unknown limit", { limit: "opanai" }, {}, "/nodes/0/limit", 'Did you mean "openai"?'],
    ["one in an object", { limit: { name: "x" } }, {}, "/nodes/0/limit/name", 'Add it: "limits"'],
    ["a number", { limit: 5 }, {}, "/nodes/0/limit", ""],
    ["nothing to go by", { limit: { cost: 2 } }, {}, "/nodes/0/limit", "For instance"],
    ["a rate of nothing", { limit: { rate: 0 } }, {}, "/nodes/0/limit/rate", ""],
    ["an unknown field", { limit: { rate: 1, brust: 2 } }, {}, "/nodes/0/limit/brust", 'Did you mean "burst"?'],
    ["a rule beside a name", { limit: { name: "openai", rate: 1 } }, {}, "/nodes/0/limit/rate", ""],
    ["a list of limits", {}, { limits: [] }, "/limits", ""],
    ["a limit that is a number", {}, { limits: { x: 5 } }, "/limits/x", ""],
    ["a name that is none", {}, { limits: { "a b": { rate: 1 } } }, "/limits/a b", ""],
    ["a word of time", {}, { limits: { x: { rate: 1, per: "day" } } }, "/limits/x/per", ""],
    [
      "a breaker that never opens",
      {},
      { limits: { x: { breaker: { window: 2, min_calls: 3 } } } },
      "/limits/x/breaker/min_calls",
      "",
    ],
    ["a breaker that is text", {}, { limits: { x: { breaker: "yes" } } }, "/limits/x/breaker", ""],
    ["a concurrency without a limit", { concurrency: {} }, {}, "/nodes/0/concurrency/limit", ""],
    ["a concurrency of nobody", { concurrency: { limit: 0 } }, {}, "/nodes/0/concurrency/limit", ""],
    [
      "an unknown conflict",
      { concurrency: { limit: 1, on_conflict: "wait" } },
      {},
      "/nodes/0/concurrency/on_conflict",
      "",
    ],
    [
      "a conflict that only workflows have",
      { concurrency: { limit: 1, on_conflict: "cancel_old" } },
      {},
      "/nodes/0/concurrency/on_conflict",
      "Only whole executions make room for newer ones: say it in the concurrency of the workflow, or let the node's tasks queue.",
    ],
    ["a key that names nobody", { concurrency: { limit: 1, key: "{{ b.x }}" } }, {}, "/nodes/0/concurrency/key", ""],
    ["a key of an item", { concurrency: { limit: 1, key: "{{ item }}" } }, {}, "/nodes/0/concurrency/key", ""],
    [
      "a limit of the engine's own",
      { handler: "wait", config: { seconds: 1 }, limit: "openai" },
      {},
      "/nodes/0/limit",
      "",
    ],
  ])("%s", (_, node, more, path, hint) => {
    const { errors } = read(node, more);
    expect(errors.map((error) => error.path)).toContain(path);
    expect(errors.find((error) => error.path === path)!.hint ?? "").toContain(hint);
  });

  test("and what is dropped, because it says more of what is not there", () => {
    const told = ({ warnings }: ReturnType<typeof read>) => warnings.map(({ code, path }) => `${code} ${path}`);
    expect(told(read({ limit: { concurrency: 1, per: "minute", burst: 2, tokens_burst: 3 } }))).toEqual([
      "IGNORED_FIELD /nodes/0/limit/per",
      "IGNORED_FIELD /nodes/0/limit/burst",
      "IGNORED_FIELD /nodes/0/limit/tokens_burst",
    ]);
    const prices = { "*": { input: 1, output: 2 } };
    expect(told(read({}, { budget: { calls: 1, fallback: "small", prices } }))).toEqual([
      "IGNORED_FIELD /budget/fallback",
      "IGNORED_FIELD /budget/prices",
    ]);
    expect(read({ limit: { concurrency: 1, burst: 2 } }).warnings[0]!.hint).toBe('It goes with "rate".');
  });

  test("of a map, whose tasks are those of its items", () => {
    const map = (config: JsonObject) => ({ handler: "map", config: { items: [1], ...config }, limit: "openai" });
    expect(read(map({ handler: "step", config: {} })).errors).toEqual([]);
    const keyed = { ...map({ handler: "step", config: {} }), concurrency: { limit: 1, key: "{{ item }}" } };
    expect(read(keyed).errors).toEqual([]);
    expect(read(map({ handler: "delay", config: { seconds: 1 } })).errors.map(({ path }) => path)).toEqual([
      "/nodes/0/limit",
    ]);
    const inner = map({ nodes: [{ id: "i", handler: "step", limit: "openai" }] });
    expect(read(inner).errors.map(({ path }) => path)).toEqual(["/nodes/0/limit"]);
    const { limit: _, ...free } = inner;
    expect(read(free)).toMatchObject({ errors: [], workflow: { limits: { openai: { rate: 50 } } } });
  });
});

test("the model of the settings is written out where results are kept, and nowhere else", () => {
  const defaults = { modelOf: { step: "house" } };
  const configOf = (node: JsonObject) => read(node, {}, defaults).workflow!.nodes[0]!.config;
  expect(configOf({ cache: true, config: { prompt: "p" } })).toEqual({ model: "house", prompt: "p" });
  expect(configOf({ cache: true })).toEqual({ model: "house" });
  expect(configOf({ cache: true, config: { model: "own" } })).toEqual({ model: "own" });
  expect(configOf({ cache: true, config: { mock: 1 } })).toEqual({ mock: 1 });
  expect(configOf({ config: { prompt: "p" } })).toEqual({ prompt: "p" });
  const map = { handler: "map", config: { items: [1], handler: "step", config: { prompt: "p" } }, cache: true };
  expect(configOf(map)).toMatchObject({ handler: "step", config: { model: "house", prompt: "p" } });
});
