import * as fc from "fast-check";
import { expect, test } from "vitest";
import { copyJson } from "./copy-json.ts";
import type { Json } from "./json.ts";

const reread = (value: Json): Json => JSON.parse(JSON.stringify(value)) as Json;

test("is what somebody has who read the text", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const read = reread(value as Json);
      expect(copyJson(value as Json)).toStrictEqual(read);
      // Keys in the same order, too.
      expect(JSON.stringify(copyJson(value as Json))).toBe(JSON.stringify(read));
    }),
  );
});

test.each<[string, string]>([
  ["-0", "[-0]"],
  ["too large for a number", '{"a":1e999}'],
  ["a key like the prototype's", '{"__proto__":{"a":[1]},"b":2}'],
  ["keys that are numbers", '{"b":1,"2":2,"1":3}'],
])("%s", (_, text) => {
  const value = JSON.parse(text) as Json;
  const copy = copyJson(value);
  expect(copy).toStrictEqual(reread(value));
  expect(Object.getPrototypeOf(copy)).toBe(Object.getPrototypeOf(value));
  expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
});

test("nothing that can be changed is shared", () => {
  const value = { a: [{ b: { c: 1 } }] };
  const copy = copyJson(value) as unknown as typeof value;
  copy.a[0]!.b.c = 2;
  copy.a.push(copy.a[0]!);
  expect(value).toEqual({ a: [{ b: { c: 1 } }] });
});
