import { array, assert, constantFrom, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { arrayLiteral, packed } from "./encoding.ts";

test.each([
  [[], "{}"],
  [[1, -2, 3.5], "{1,-2,3.5}"],
  [[true, false, null], "{true,false,NULL}"],
  [["a", "", "NULL", "a,b", "{}", " "], '{"a","","NULL","a,b","{}"," "}'],
  [['a"b', "a\\b", '\\"'], '{"a\\"b","a\\\\b","\\\\\\""}'],
])("%j is written as %s", (values, literal) => {
  expect(arrayLiteral(values)).toBe(literal);
});

/** As Postgres splits: at each place where the separator begins, from the left. */
function unpacked([separator, ...texts]: ReturnType<typeof packed>): readonly (readonly string[])[] {
  return texts.map((text) => text.split(separator).slice(1));
}

const SEPARATOR = packed()[0];

describe("texts are packed so that they can be told apart", () => {
  test.each<[string, readonly string[]]>([
    ["none", []],
    ["an empty one", [""]],
    ["several empty ones", ["", "", ""]],
    ["with the separator in them", [`a${SEPARATOR}b`, `${SEPARATOR}\u001f`, "c"]],
    [
      "that end or begin with parts of it",
      ["a\u001e", "\u001fb", "\u001e", "\u001f", SEPARATOR.slice(0, -1), SEPARATOR.slice(1)],
    ],
  ])("%s", (_, texts) => {
    expect(unpacked(packed(texts))).toEqual([texts]);
  });

  test("whatever they are made of", () => {
    const text = string({ unit: constantFrom("a", "\u001e", "\u001f", SEPARATOR, SEPARATOR.slice(1)) });
    assert(
      property(array(text), array(text), (texts, others) => {
        expect(unpacked(packed(texts, others))).toEqual([texts, others]);
      }),
    );
  });
});
