import * as fc from "fast-check";
import { expect, test } from "vitest";
import { checkJson } from "./check-json.ts";
import { smallCopy } from "./small-copy.ts";

const LIMIT = 1024;

/** Anything that a handler may return: plain data mostly, and all that is none. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSparseArray: true }),
  fc.dictionary(fc.string({ unit: "binary" }), fc.string({ unit: "binary" })),
);

test("what it copies is what is stored of it by way of its text, and smaller than was said", () => {
  let copied = 0;
  fc.assert(
    fc.property(anything, (value) => {
      const copy = smallCopy(value, LIMIT);
      if (copy === undefined) return;
      copied++;
      expect(checkJson(value)).toBeUndefined();
      const text = JSON.stringify(value);
      expect(copy).toStrictEqual(JSON.parse(text));
      expect(JSON.stringify(copy)).toBe(text);
      expect(Buffer.byteLength(text)).toBeLessThan(LIMIT);
    }),
    { numRuns: 500 },
  );
  expect(copied).toBeGreaterThan(50);
});

test("plain data is copied, if it is surely small", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      if (JSON.stringify(value).length * 30 > LIMIT || checkJson(value) !== undefined) return;
      expect(smallCopy(value, LIMIT)).toBeDefined();
    }),
  );
});

const inherits: unknown = Object.create({ a: 1 });
const circle: unknown[] = [];
circle.push(circle);

test.each<[string, unknown]>([
  ["undefined in a list", [undefined]],
  ["a hole in a list", Array(2)],
  ["a list with a toJSON", Object.assign([1], { toJSON: () => 2 })],
  ["a toJSON", { toJSON: () => 1 }],
  ["a toJSON that is not listed", Object.defineProperty({ a: 1 }, "toJSON", { value: () => 2 })],
  ["a proxy that says it has one", new Proxy({ a: 1 }, { has: (object, key) => key === "toJSON" || key in object })],
  ["what inherits", inherits],
  ["a list of a class", new (class extends Array<number> {})()],
  ["a circle", circle],
  ["NaN", NaN],
  ["half a pair", "\ud800"],
  ["a NUL in a key", { "a\0": 1 }],
  ["a key like the prototype's", JSON.parse('{"__proto__":1}')],
  ["a function", () => 1],
])("is not sure of %s", (_, value) => {
  expect(smallCopy(value, LIMIT)).toBeUndefined();
});

test("an inherited member of all objects is nobody's", () => {
  const polluted = { value: 1, enumerable: true, configurable: true, writable: true };
  const all: { polluted?: unknown } = Object.prototype;
  Object.defineProperty(all, "polluted", polluted);
  const copy = smallCopy({ a: 1 }, LIMIT);
  delete all.polluted;
  expect(copy).toBeUndefined();
});

test("each member is read once", () => {
  let reads = 0;
  const value = Object.defineProperty({}, "a", { enumerable: true, get: () => ++reads });
  expect(smallCopy(value, LIMIT)).toEqual({ a: 1 });
  expect(
    smallCopy(new Proxy([1], { get: (list, key) => (key === "0" ? ++reads : Reflect.get(list, key)) }), LIMIT),
  ).toEqual([2]);
});
