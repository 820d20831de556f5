import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanJson } from "./scan.ts";

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

describe("scanJson", () => {
  test.each([
    // text, kind, offset, pointer, what it says
    ["", "syntax", 0, "", "ends too early"],
    ["{", "syntax", 1, "", "ends too early"],
    ['{"a":1', "syntax", 6, "", "ends too early"],
    ['{"a":1,}', "syntax", 7, "", "comma too many"],
    ["[1,]", "syntax", 3, "", "comma too many"],
    ['{"a":[}', "syntax", 6, "", '"}" does not close "["'],
    ["[{ ]", "syntax", 3, "", '"]" does not close "{"'],
    ['{"a" 1}', "syntax", 5, "", "not expected"],
    ["{a:1}", "syntax", 1, "", "not expected"],
    ["[1 2]", "syntax", 3, "", "not expected"],
    ["{} x", "syntax", 3, "", "after the end"],
    ["{}{}", "syntax", 2, "", "after the end"],
    ["tru", "syntax", 0, "", "not expected"],
    ["01", "syntax", 1, "", "after the end"],
    ["-", "syntax", 1, "", "ends too early"],
    ["1.", "syntax", 2, "", "ends too early"],
    ["1e", "syntax", 2, "", "ends too early"],
    ['"a', "syntax", 2, "", "ends too early"],
    ['"\\x"', "syntax", 2, "", "not expected"],
    ['"\\u12g4"', "syntax", 5, "", "not expected"],
    ['"a\nb"', "syntax", 2, "", "not expected"],
    ["NaN", "syntax", 0, "", "not expected"],
    ["\ufeff{}", "syntax", 0, "", "byte order mark"],
    [nested(65), "tooDeep", 64, "/0".repeat(64), ""],
    [nested(5_000), "tooDeep", 64, "/0".repeat(64), ""],
    ["[".repeat(1_000_000), "tooDeep", 64, "/0".repeat(64), ""],
    ['{"a":1,"b":{"c":1,"c":2}}', "duplicateKey", 18, "/b/c", "c"],
    ['{"a":1,"\\u0061":2}', "duplicateKey", 7, "/a", "a"],
    ['{"__proto__":1}', "forbiddenKey", 1, "/__proto__", "__proto__"],
    ['[{"constructor":1}]', "forbiddenKey", 2, "/0/constructor", "constructor"],
    ['{"\\u0070rototype":1}', "forbiddenKey", 1, "/prototype", "prototype"],
    ['{"a":1e999}', "numberRange", 5, "/a", "1e999"],
    ["[0,-1E400]", "numberRange", 3, "/1", "-1E400"],
    ["[1e-400]", "numberRange", 1, "/0", "1e-400"],
    [`[${"9".repeat(400)}]`, "numberRange", 1, "/0", "9".repeat(400)],
  ] as const)("text %# has its fault found in place", (text, kind, offset, pointer, says) => {
    const [fault] = scanJson(text);
    expect(fault).toMatchObject({ kind, offset, pointer });
    expect(fault!.text).toContain(says);
  });

  test.each([
    nested(64),
    "[0,-0.0,1e-3,0e-400,1E+5]",
    '{"a":{"a":1}}',
    '{"":1," ":2}',
    '"\\ud800"',
    " [ ] ",
    '{"x":"__proto__"}',
  ])("%s is fine", (text) => {
    expect(scanJson(text)).toEqual([]);
  });

  test("a repeated key is found in large objects too, and every repetition is reported", () => {
    const members = Array.from({ length: 1_000 }, (_, i) => `"k${i}":0`).join(",");
    const faults = scanJson(`{${members},"k0":1,"k999":1}`);
    expect(faults.map(({ kind, text }) => [kind, text])).toEqual([
      ["duplicateKey", "k0"],
      ["duplicateKey", "k999"],
    ]);
  });

  test("it accepts what JSON.parse accepts and refuses what JSON.parse refuses", () => {
    const accepts = (text: string): boolean => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    };
    const piece = fc.constantFrom(
      ...'{}[]:,"\\ \n'.split(""),
      "1",
      "-",
      "0",
      ".5",
      "e3",
      "true",
      "null",
      '"a"',
      '"b":',
      "\\u00e9",
      "x",
    );
    const jsonish = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
    const mutated = fc.tuple(fc.json(), fc.nat(), piece).map(([text, at, insert]) => {
      const cut = at % (text.length + 1);
      return text.slice(0, cut) + insert + text.slice(cut + 1);
    });
    fc.assert(
      fc.property(fc.oneof(jsonish, mutated, fc.json()), (text) => {
        expect(scanJson(text).some(({ kind }) => kind === "syntax")).toBe(!accepts(text));
      }),
      { numRuns: 2_000 },
    );
  });
});
