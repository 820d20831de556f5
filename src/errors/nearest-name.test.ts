import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { editDistance, nearestName, NearestName } from "./nearest-name.ts";

describe("nearest name", () => {
  const names = ["fetch", "extract", "review", "save", "http", "meta", "Ocr"];
  test.each<[string, string | undefined, string]>([
    ["fecth", "fetch", "neighbours swapped are one edit"],
    ["fetchh", "fetch", "a letter too many"],
    ["etch", "fetch", "a letter too few"],
    ["OCR", "Ocr", "only the case differs"],
    ["htpt", "http", "two letters swapped in a short name"],
    ["sxve", "save", "a wrong letter"],
    ["metadata", undefined, "four letters more is another word"],
    ["zzz", undefined, "nothing is near"],
    ["", undefined, "an empty name is near nothing"],
    ["ab", undefined, "two edits turn a name of two letters into anything"],
  ])("%s → %s: %s", (asked, expected) => {
    expect(nearestName(asked, names)).toBe(expected);
  });

  test("a name is never its own suggestion", () => {
    expect(nearestName("fetch", ["fetch"])).toBeUndefined();
  });

  test("the distance is symmetric, zero only for equal names, and bounded by the limit", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b, 99)).toBe(editDistance(b, a, 99));
        expect(editDistance(a, b, 99) === 0).toBe(a === b);
        expect(editDistance(a, b, 1)).toBe(Math.min(editDistance(a, b, 99), 2));
      }),
    );
  });

  test("100,000 names are asked 10,000 times without a table for each pair", () => {
    const index = new NearestName(Array.from({ length: 100_000 }, (_, i) => `node_${i}`));
    for (let i = 0; i < 10_000; i++) index.find(`nodes_${i}x`);
    // The work limit is used up by now; a fresh index still answers.
    expect(new NearestName(["node_1"]).find("nod_1")).toBe("node_1");
  });
});
