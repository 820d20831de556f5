import { describe, expect, test } from "vitest";
import { readYaml } from "./read-yaml.ts";

const levels = (depth: number): string => Array.from({ length: depth }, (_, i) => `${" ".repeat(i)}a:`).join("\n");
const letters = "abcdefghij";
const bomb = letters
  .split("")
  .map((letter, i) =>
    i === 0 ? "a: &a [x, x, x, x, x, x, x, x, x]" : `${letter}: &${letter} [${`*${letters[i - 1]}, `.repeat(9)}]`,
  );

describe("bad YAML is refused with its place, quickly", () => {
  test.each([
    // what it is, text, code, offset
    ["an alias bomb", bomb.join("\n"), "YAML_UNSAFE", undefined],
    ["an anchor that contains itself", "a: &a [*a]", "YAML_UNSAFE", 7],
    ["a map that contains itself", "a: &a\n  b: *a", "YAML_UNSAFE", 11],
    ["a tag of its own", "a: !foo b", "YAML_UNSAFE", 3],
    ["a tag of another language", "a: !!js/function 'x'", "YAML_UNSAFE", 3],
    ["a tag written out", "a: !<tag:x,2000:y> b", "YAML_UNSAFE", 3],
    ["binary data", "a: !!binary aGk=", "YAML_UNSAFE", 3],
    ["a wide ordered map", `a: !!omap\n${"- k: 1\n".repeat(20_000)}`, "YAML_UNSAFE", 3],
    ["a set", "a: !!set {x}", "YAML_UNSAFE", 3],
    ["a plain tag that was redefined", "%TAG !! tag:evil,2000:\n---\na: !!str x", "YAML_UNSAFE", undefined],
    ["a merge key", "a: &a {x: 1}\nb:\n  <<: *a", "YAML_UNSAFE", 18],
    ["a merge key that would reach a prototype", "a:\n  <<: {__proto__: {x: 1}}", "YAML_UNSAFE", undefined],
    [
      "a million merges",
      `a: &a {x: 1}\n${Array.from({ length: 200 }, (_, i) => `k${i}: {<<: *a}`).join("\n")}`,
      "YAML_UNSAFE",
      undefined,
    ],
    ["an older YAML", "%YAML 1.1\n---\na: yes", "YAML_UNSAFE", 0],
    ["a key that is a list", "? [a]\n: b", "YAML_UNSAFE", 2],
    ["a prototype key", "a: {__proto__: 1}", "FORBIDDEN_KEY", 4],
    ["a repeated key", "a: 1\nb: 2\na: 3", "DUPLICATE_KEY", 10],
    ["65 levels of flow", "[".repeat(65) + "]".repeat(65), "JSON_TOO_DEEP", 64],
    ["5,000 levels of flow", "[".repeat(5_000), "JSON_TOO_DEEP", undefined],
    ["a million levels of flow", "[".repeat(1_000_000), "JSON_TOO_DEEP", undefined],
    ["500 levels of blocks", levels(500), "JSON_TOO_DEEP", undefined],
    ["20,000 list marks in a row", "- ".repeat(20_000), "JSON_TOO_DEEP", undefined],
    ["20,000 key marks in a row", "? ".repeat(20_000), "JSON_TOO_DEEP", undefined],
    [
      "depth by aliases",
      `a: &a ${"[".repeat(40)}${"]".repeat(40)}\nb: ${"[".repeat(30)}*a${"]".repeat(30)}`,
      "JSON_TOO_DEEP",
      undefined,
    ],
    ["100,000 quotes", '"'.repeat(100_000), "INVALID_JSON", 2],
    ["an open bracket", "a: [1, 2", "INVALID_JSON", undefined],
    ["an open brace", "a:\n  - b: {c: 1\n  - d: 2\n", "INVALID_JSON", 18],
    ["a tab as indentation", "a:\n\t- b", "INVALID_JSON", undefined],
    ["a tab as indentation further down", "a:\n  - b: 1\n\tc: 2\n", "INVALID_JSON", 12],
    ["a quote that is never closed", 'a:\n  - b: "c\\"\n    d: 1\n', "INVALID_JSON", 10],
    ["a single quote that is never closed", "a:\n  - b: 'c\n    d: 1\n", "INVALID_JSON", 10],
    ["two colons in a line", "a:\n  - b: c: d\n", "INVALID_JSON", 10],
    ["a column too few", "a:\n  - b: 1\n    c: 2\n   d: 3\n", "INVALID_JSON", 21],
    ["a column too many", "a:\n  - b: 1\n     c: 2\n", "INVALID_JSON", 10],
    ["an unknown alias", "a: *b", "INVALID_JSON", 3],
    ["two documents", "a: 1\n---\nb: 2", "INVALID_JSON", 5],
    ["a byte order mark", "\ufeffa: 1", "INVALID_JSON", 0],
  ])("%s", (_, text, code, offset) => {
    const start = performance.now();
    const { value, faults } = readYaml(text);
    const ms = performance.now() - start;
    expect(value).toBeUndefined();
    expect(faults[0]!.code).toBe(code);
    if (offset !== undefined) expect(faults[0]!.offset).toBe(offset);
    // Milliseconds; code that looks at everything for every character would need minutes.
    expect(ms).toBeLessThan(20_000);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

test("YAML 1.2 means what it looks like", () => {
  const text = "on: failed\nyes: no\n1: one\nn: 0x10\nf: 1.5\nnothing:\ntext: !!str 12\nmulti: |\n  a\n  b\n";
  expect(readYaml(text).value).toEqual({
    on: "failed",
    yes: "no",
    "1": "one",
    n: 16,
    f: 1.5,
    nothing: null,
    text: "12",
    multi: "a\nb\n",
  });
});

test("aliases within the limit stand for their anchors, and places below them are found", () => {
  const text = "retry: &r\n  max_attempts: 5\nnodes:\n  - { id: a, retry: *r }\n";
  const document = readYaml(text);
  expect(document.value).toEqual({ retry: { max_attempts: 5 }, nodes: [{ id: "a", retry: { max_attempts: 5 } }] });
  const places = document.locate(["/nodes/0/retry/max_attempts", "/nodes/0/id", "/nodes/5", "/retry/none"]);
  expect(text.slice(places.get("/nodes/0/retry/max_attempts")!.value).startsWith("5")).toBe(true);
  expect(text.slice(places.get("/nodes/0/id")!.key).startsWith("id")).toBe(true);
  expect(places.size).toBe(2);
});

test("numbers that JSON cannot write are reported, but the document is readable", () => {
  const { value, faults } = readYaml("a: .inf\nb: .nan\nc: 1e999");
  expect(value).toBeDefined();
  expect(faults.map(({ code, pointer }) => [code, pointer])).toEqual([
    ["NUMBER_OUT_OF_RANGE", "/a"],
    ["NUMBER_OUT_OF_RANGE", "/b"],
    ["NUMBER_OUT_OF_RANGE", "/c"],
  ]);
});

describe("a template without quotes gets a hint", () => {
  test.each([
    ["alone", "a: {{ x }}"],
    ["in a map", "a: {b: {{ x.y }}}"],
    ["in a list", "a: [{{ x }}, 1]"],
    ["with text behind it", "a: {{ x }} and more"],
    ["below other lines", "a: 1\nb:\n  c: {{ x }}\n"],
  ])("%s", (_, text) => {
    expect(readYaml(text).faults[0]!.hint).toContain('"{{ … }}"');
  });

  test.each([
    ["one in quotes", `a: "{{ x }}": b`],
    ["one on another line", `a: {{ x: 1 }: 2}\nb: c: d`],
  ])("but %s is not meant", (_, text) => {
    const { faults } = readYaml(text);
    expect(faults[0]!.code).toBe("INVALID_JSON");
    expect(faults[0]!.hint).toBeUndefined();
  });
});
