import { describe, expect, test } from "vitest";
import { z } from "zod";
import { compileCondition } from "../expression/condition.ts";
import { compileValue } from "../expression/template.ts";
import type { Scope } from "../expression/scope.ts";
import type { Json } from "../json/json.ts";
import { type Expr, expr, secret, text, WRITTEN } from "./expression.ts";
import { workflow } from "./workflow-builder.ts";

const wf = workflow("w", { input: z.object({ least: z.number(), "odd key": z.string() }) });
const load = wf.node("load", () => ({ pages: [{ text: "one" }], bytes: 3, in: 1, "a-b": 2, error: "own" }));
const quoted = wf.node("a.b-c", () => 7);

const OUTPUTS: Readonly<Record<string, Json>> = {
  load: { pages: [{ text: "one" }], bytes: 3, in: 1, "a-b": 2, error: "own" },
  "a.b-c": 7,
};
const SCOPE: Scope = {
  node: (id) => (OUTPUTS[id] === undefined ? undefined : { kind: "output", value: OUTPUTS[id] }),
  input: { kind: "output", value: { least: 2.5, "odd key": "odd" } },
  executionId: "e",
};

/** What the engine makes of it. */
function worth(expression: Expr<unknown>): Json {
  const nodeIds = new Set(Object.keys(OUTPUTS));
  const compiled = compileValue(expression[WRITTEN].template, { nodeIds });
  expect(compiled.problems).toEqual([]);
  const resolution = compiled.resolve(SCOPE);
  if (resolution.kind !== "resolved") throw new Error(JSON.stringify(resolution));
  return resolution.value;
}

describe("a place", () => {
  test.each<[string, Expr<unknown>, Json]>([
    ["of a node", load.output, OUTPUTS["load"]!],
    ["in a list", load.output.pages[0]!.text, "one"],
    ["whose key is a word of CEL", load.output.in, 1],
    ["whose key is no word", load.output["a-b"], 2],
    ["whose key is called error", load.output.error, "own"],
    ["of a node whose id is no word", quoted.output, 7],
    ["in the input", wf.input.least, 2.5],
    ["in the input whose key is no word", wf.input["odd key"], "odd"],
  ])("%s is what the engine finds there", (_, place, value) => {
    expect(worth(place)).toEqual(value);
  });

  test("is no promise", async () => {
    expect(worth(await Promise.resolve(load.output.bytes))).toBe(3);
  });
});

describe("an expression", () => {
  test.each<[string, Expr<unknown>, Json]>([
    ["compares places", expr`${load.output.bytes} > ${wf.input.least}`, true],
    ["takes handles", expr`${load}.bytes == 3`, true],
    ["takes numbers", expr`${load.output.bytes} * ${2}`, 6],
    ["takes texts as literals, whatever is in them", expr<string>`${'" + "x'} + "!"`, '" + "x!'],
    ["takes lists and objects", expr`${[1, { a: null }]}`, [1, { a: null }]],
    ["keeps the order of what it is made of", expr`${expr<number>`${load.output.bytes} - 1`} * 2`, 4],
    ["has macros", expr`${load.output.pages}.map(p, p.text + "!")`, ["one!"]],
  ])("%s", (_, expression, value) => {
    expect(worth(expression)).toEqual(value);
  });

  test("is a condition without braces", () => {
    const { source } = expr`${load.output.bytes} > ${wf.input.least}`[WRITTEN];
    const condition = compileCondition(source!, { nodeIds: new Set(["load"]) });
    expect(condition.evaluate(SCOPE)).toMatchObject({ kind: "resolved", value: true });
  });
});

describe("a text", () => {
  test.each<[string, Expr<unknown>, Json]>([
    ["holds values", text`Pay ${load.output.bytes} € for ${wf.input["odd key"]}?`, "Pay 3 € for odd?"],
    ["of one value is a text too", text`${load.output.bytes}`, "3"],
    ["holds expressions", text`${expr<number>`${load.output.bytes} + 1`}!`, "4!"],
    [
      "holds braces of the author's own",
      text`{{ input.least }} ${"{{ 1 }}"} ${load.output.bytes}`,
      "{{ input.least }} {{ 1 }} 3",
    ],
  ])("%s", (_, expression, value) => {
    expect(worth(expression)).toEqual(value);
  });

  test("cannot stand inside an expression", () => {
    expect(() => expr`${text`a`} == "a"`).toThrow(/cannot stand inside an expression/);
  });
});

test("a secret is a hole for the worker", () => {
  const { template } = secret("TOKEN")[WRITTEN];
  expect(compileValue({ key: template }, { nodeIds: new Set() }).resolve(SCOPE)).toMatchObject({
    holes: [{ pointer: "/key", kind: "secret", parts: [{ secret: "TOKEN" }] }],
  });
});
