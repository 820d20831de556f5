import { describe, expect, test } from "vitest";
import { compileValue } from "./template.ts";
import { optionsOf, output, scopeOf } from "./test-scope.ts";
import type { Json } from "../json/json.ts";

const DATA: Json = {
  text: "  Grüße  ",
  emoji: "a😀b",
  list: ["a", 1, null, { b: 2 }],
  nulls: [null],
  empty: [],
  object: { x: 1, y: 2 },
  number: 2.345,
  half: 1.005,
  negative: -2.5,
  huge: 1e21,
  tiny: 1e-9,
  nothing: null,
  yes: true,
};

function resolve(filter: string): object {
  const world = { nodes: { n: output(DATA) } };
  const compiled = compileValue(`{{ n.${filter} }}`, optionsOf(world));
  expect(compiled.problems).toEqual([]);
  return compiled.resolve(scopeOf(world));
}

describe("filters give", () => {
  test.each<[string, Json]>([
    ["text | trim", "Grüße"],
    ["text|trim|upper", "GRÜSSE"],
    ["text | trim() | lower", "grüße"],
    ["object | json", '{"x":1,"y":2}'],
    ["text | json", '"  Grüße  "'],
    ["nothing | json", "null"],
    ["emoji | length", 3],
    ["list | length", 4],
    ["object | length", 2],
    ["empty | length", 0],
    ["list | first", "a"],
    ["list | last", { b: 2 }],
    ["nulls | first", null],
    ["nulls | first | default(1)", 1],
    ['list | join(", ")', 'a, 1, null, {"b":2}'],
    ["list | join('')", 'a1null{"b":2}'],
    ["empty | join('-')", ""],
    ["number | round(2)", 2.35],
    ["half | round(2)", 1.01],
    ["number | round", 2],
    ["negative | round()", -3],
    ["huge | round(2)", 1e21],
    ["tiny | round(2)", 0],
    ["nothing | default('it\\'s')", "it's"],
    ['nothing | default("\\u00e9\\n")', "é\n"],
    ["nothing | default(-1.5)", -1.5],
    ["nothing | default(false)", false],
    ['nothing | default({"a": [")"]})', { a: [")"] }],
    ["nothing | upper | default('x')", "x"],
    ["nope | length | default(0)", 0],
  ])("%s", (filter, expected) => {
    expect(resolve(filter)).toEqual({ kind: "resolved", value: expected, holes: [] });
  });
});

describe("filters fail on a value they are not for", () => {
  test.each([
    "number | upper",
    "list | trim",
    "nothing | lower",
    "yes | length",
    "text | first",
    "object | last",
    "text | join(',')",
    "text | round",
  ])("%s", (filter) => {
    expect(resolve(filter)).toMatchObject({ kind: "failed", failure: { code: "TEMPLATE_UNRESOLVED" } });
  });
});

test("more than 16 filters are too complex", () => {
  const compiled = compileValue(`{{ input.x ${"| trim ".repeat(17)} }}`, { nodeIds: new Set() });
  expect(compiled.problems).toMatchObject([{ code: "EXPRESSION_TOO_COMPLEX" }]);
});
