import { expect, test } from "vitest";
import { inWords, momentInWords } from "./in-words.ts";

test.each([
  [-5, "0 s"],
  [400, "0 s"],
  [12_000, "12 s"],
  [59_600, "1 min"],
  [240_000, "4 min"],
  [245_000, "4 min 5 s"],
  [3_600_000, "1 h"],
  [97_200_000, "1 d 3 h"],
  [30 * 86_400_000, "30 d"],
])("%d ms are %s", (ms, words) => {
  expect(inWords(ms)).toBe(words);
});

test("a moment of the last day is told by its time", () => {
  const now = Date.parse("2030-01-31T12:00:00Z");
  expect(momentInWords(now - 10_000_000, now)).toBe("09:13 UTC");
  expect(momentInWords(now - 100_000_000, now)).toBe("2030-01-30 08:13 UTC");
});
