import { expect, test } from "vitest";
import { isoTime } from "./execution-view.ts";

test.each([
  0, 1, 999, 1_000, 1_750_000_000_123, 1_750_000_000_007, 1_750_000_000_123.9, -1, -1_001, -0.5, 8.64e15, -8.64e15,
])("the moment %d is written as a date writes it", (ms) => {
  expect(isoTime(ms)).toBe(new Date(ms).toISOString());
  expect(isoTime(ms)).toBe(new Date(ms).toISOString());
});

test("what is no moment is refused, as by a date, and harms no other", () => {
  expect(() => isoTime(Number.NaN)).toThrow(RangeError);
  expect(() => isoTime(8.64e15 + 1_000)).toThrow(RangeError);
  expect(isoTime(1_500)).toBe("1970-01-01T00:00:01.500Z");
});
