import { describe, expect, test } from "vitest";
import { blob, failed, none, optionsOf, output, scopeOf } from "./test-scope.ts";
import { compileCondition, compileExpression } from "./condition.ts";
import type { World } from "./test-scope.ts";

const WORLD: World = {
  nodes: {
    extract: output({ confidence: 0.6, ok: true, text: "yes", tags: ["a", "b"] }),
    "my-node": output({ x: 1 }),
    in: output({ x: 1 }),
    map: output({ x: 1 }),
    loop: output({ x: 1 }),
    "1st": output({ x: 1 }),
    skipped: none,
    broken: failed({ code: "HTTP_500" }),
    big: blob("h1"),
  },
  input: output({ limit: 5 }),
};

const evaluate = (text: string): object => compileCondition(text, optionsOf(WORLD)).evaluate(scopeOf(WORLD));

describe("a condition gives true or false", () => {
  test.each<[string, boolean]>([
    ["extract.confidence < 0.75", true],
    ["{{ extract.confidence < 0.75 }}", true],
    ["  {{extract.ok}}  ", true],
    ["extract.ok", true],
    ["extract.output.ok", true],
    ["extract.nope | default(false)", false],
    ["has(skipped.x)", false],
    ["has(skipped.x.y)", false],
    ["has(skipped.output)", false],
    ["has(extract.output)", true],
    ["has(extract.nope.deeper)", false],
    ["has(broken.error)", true],
    ["has(skipped.error)", false],
    ["has(broken.x)", false],
    ["broken.error.code == 'HTTP_500'", true],
    ["has(skipped.x) && skipped.x > 3", false],
    ["skipped == {}", true],
    ["size(skipped) == 0", true],
    ["'a' in extract.tags", true],
    ["'confidence' in extract", true],
    ['nodes["my-node"].x == 1', true],
    ["has(nodes['1st'].x)", true],
    ["has(extract['text'])", true],
    ["skipped.x == 1 || true", true],
    ["false && skipped.x == 1", false],
  ])("%s", (text, expected) => {
    expect(evaluate(text)).toEqual({ kind: "resolved", value: expected, holes: [] });
  });
});

describe("a condition fails with CONDITION_ERROR if it gives anything else", () => {
  test.each([
    "extract.confidence",
    "extract.text",
    "input.limit + 1",
    "extract.nope",
    "extract.nope == 1",
    "skipped",
    "skipped.x",
    "skipped.x == 1",
    "skipped.output == 1",
    "broken.x == 1",
    "skipped.x == 1 || false",
    "extract.text > 3",
    "item == 1",
    "null",
  ])("%s", (text) => {
    expect(evaluate(text)).toMatchObject({ kind: "failed", failure: { code: "CONDITION_ERROR", pointer: "" } });
  });
});

describe("a condition is refused", () => {
  test.each<[string, string, RegExp | undefined]>([
    ["secrets.A == 'x'", "EXPRESSION_FORBIDDEN", undefined],
    ["secrets.A", "EXPRESSION_FORBIDDEN", undefined],
    ["{{ secrets.A }}", "EXPRESSION_FORBIDDEN", undefined],
    ["nope.x == 1", "TEMPLATE_UNKNOWN_NODE", undefined],
    ["my-node.x == 1", "TEMPLATE_SYNTAX", /nodes\["my-node"\]/],
    ["in.x == 1", "TEMPLATE_SYNTAX", /nodes\["in"\]/],
    ["map.x == 1", "TEMPLATE_SYNTAX", /nodes\["map"\]/],
    ["loop.x == 1", "TEMPLATE_SYNTAX", /nodes\["loop"\]/],
    ["1st.x == 1", "TEMPLATE_SYNTAX", /nodes\["1st"\]/],
    ["{{ extract.ok }} == true", "TEMPLATE_SYNTAX", undefined],
    ["{{ extract.ok }} {{ extract.ok }}", "TEMPLATE_SYNTAX", undefined],
    ["{{ extract.ok", "TEMPLATE_SYNTAX", undefined],
    ["", "TEMPLATE_SYNTAX", undefined],
    ["{{ }}", "TEMPLATE_SYNTAX", undefined],
    ["extract.ok and extract.ok", "TEMPLATE_SYNTAX", undefined],
    ["has(extract)", "TEMPLATE_SYNTAX", undefined],
  ])("%s", (text, code, hint) => {
    const condition = compileCondition(text, optionsOf(WORLD));
    expect(condition.problems).toMatchObject([{ code, pointer: "" }]);
    if (hint !== undefined) expect(condition.problems[0]?.hint).toMatch(hint);
    expect(condition.evaluate(scopeOf(WORLD))).toMatchObject({ kind: "failed", failure: { code: "CONDITION_ERROR" } });
  });
});

test("a condition on a blob asks for it first", () => {
  expect(evaluate("big.x == 1 || true")).toMatchObject({ kind: "needs", blobs: [{ hash: "h1" }] });
});

describe("an expression gives any JSON", () => {
  test.each<[string, unknown]>([
    ["extract.confidence * 2", 1.2],
    ["{{ extract.tags }}", ["a", "b"]],
    ["extract.tags.map(t, {'tag': t})", [{ tag: "a" }, { tag: "b" }]],
    ["extract.tags | join('+')", "a+b"],
    ["7 / 2", 3],
    ["skipped", "TEMPLATE_UNRESOLVED"],
    ["extract.nope", "TEMPLATE_UNRESOLVED"],
  ])("%s", (text, expected) => {
    const resolution = compileExpression(text, optionsOf(WORLD)).resolve(scopeOf(WORLD));
    if (expected === "TEMPLATE_UNRESOLVED")
      expect(resolution).toMatchObject({ kind: "failed", failure: { code: expected } });
    else expect(resolution).toEqual({ kind: "resolved", value: expected, holes: [] });
  });

  test("a result over 4 MiB is refused", () => {
    const world: World = { nodes: { n: output({ q: '"'.repeat(3_000_000) }) } };
    const resolve = (text: string): object => compileExpression(text, optionsOf(world)).resolve(scopeOf(world));
    expect(resolve("n.q")).toMatchObject({ kind: "resolved" });
    for (const text of ["n.q | json", "[n, n]", "n.q | json | json | json | json"]) {
      expect(resolve(text)).toMatchObject({ kind: "failed", failure: { code: "RESOLVED_INPUT_TOO_LARGE" } });
    }
  });

  test("a blob in an expression is read, never passed by reference", () => {
    expect(compileExpression("big", optionsOf(WORLD)).resolve(scopeOf(WORLD))).toMatchObject({ kind: "needs" });
  });
});
