import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson, canonicalHash, withSortedKeys } from "./canonical.ts";
import type { Json } from "./json.ts";

test("keys are sorted at every level, lists keep their order", () => {
  expect(canonicalJson({ b: 1, a: [{ d: 1, c: [] }, 2], "": null })).toBe('{"":null,"a":[{"c":[],"d":1},2],"b":1}');
});

test("what is sorted already is not copied", () => {
  const value: Json = { a: [{ b: 1, c: [1, 2] }], b: ["x"] };
  expect(withSortedKeys(value)).toBe(value);
});

test("a __proto__ key survives and changes no prototype", () => {
  const value = JSON.parse('{"b":1,"__proto__":{"x":1}}') as Json;
  expect(canonicalJson(value)).toBe('{"__proto__":{"x":1},"b":1}');
  expect(({} as { x?: number }).x).toBeUndefined();
});

test("equal values have equal text and hash, whatever the order of their keys; others do not", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), (a, b) => {
      const value = JSON.parse(JSON.stringify(a)) as Json;
      const other = JSON.parse(JSON.stringify(b)) as Json;
      expect(JSON.parse(canonicalJson(value))).toEqual(value);
      expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
      expect(canonicalHash(value) === canonicalHash(other)).toBe(canonicalJson(value) === canonicalJson(other));
    }),
  );
});

function reversed(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => reversed(item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}

test("a value that contains itself is an error of ours, not an endless loop", () => {
  const loop: { self?: unknown } = {};
  loop.self = loop;
  expect(() => canonicalJson(loop as Json)).toThrow("refers to itself");
});
