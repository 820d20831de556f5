import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { firstTryOf, formatToken, parseToken } from "./token.ts";

const token = { nonce: "5f", execution: "0198", generation: 2, instance: "ocr[17]@3", attempt: 4, delivery: 1 };

test("a token is its parts, in order, between colons", () => {
  expect(formatToken(token)).toBe("5f:0198:2:ocr[17]@3:4:1");
});

test("the end of a first try is what follows the execution", () => {
  const first = { ...token, generation: 1, attempt: 1, delivery: 1 };
  expect(`${first.nonce}:${first.execution}${firstTryOf(first.instance)}`).toBe(formatToken(first));
});

test("whatever was formatted is parsed to the same", () => {
  const text = fc.string({ unit: "grapheme-ascii", maxLength: 12 }).map((part) => part.replaceAll(":", ""));
  const number = fc.integer({ min: 1, max: 1_000_000 });
  const any = fc.record({
    nonce: text,
    execution: text,
    generation: number,
    instance: text,
    attempt: number,
    delivery: number,
  });
  fc.assert(
    fc.property(any, (given) => {
      expect(parseToken(formatToken(given))).toEqual(given);
    }),
  );
});

describe("a text that names no dispatch is no token", () => {
  test.each([
    ["nothing", ""],
    ["a word", "token"],
    ["too few parts", "5f:0198:1:a:1"],
    ["too many parts", "5f:0198:1:a:1:1:1"],
    ["attempt zero", "5f:0198:1:a:0:1"],
    ["delivery zero", "5f:0198:1:a:1:0"],
    ["generation zero", "5f:0198:0:a:1:1"],
    ["a negative attempt", "5f:0198:1:a:-1:1"],
    ["a fraction", "5f:0198:1:a:1.5:1"],
    ["a number beyond the safe ones", "5f:0198:1:a:9007199254740993:1"],
    ["a word for a number", "5f:0198:1:a:one:1"],
    ["an empty number", "5f:0198:1:a::1"],
    ["infinity", "5f:0198:1:a:Infinity:1"],
    ["not a number", "5f:0198:NaN:a:1:1"],
  ])("%s", (_, text) => expect(parseToken(text)).toBeUndefined());
});
