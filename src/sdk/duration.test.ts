import { describe, expect, test } from "vitest";
import { type Duration, durationMs, durationSeconds } from "./duration.ts";

describe("a duration", () => {
  test.each<[Duration, number]>([
    [250, 250],
    [0, 0],
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
  ])("%s is %i ms", (duration, ms) => {
    expect(durationMs(duration, "timeout")).toBe(ms);
  });

  test("is said in seconds to the engine", () => {
    expect(durationSeconds("250ms", "timeout")).toBe(0.25);
  });

  test.each(["5 parsecs", "5", "", "-5s", "1e3s", -1, Number.NaN, Infinity, null, undefined, {}])(
    "cannot be %s, and the error says what it can be",
    (duration) => {
      const wrong = () => durationMs(duration as Duration, "timeout");
      expect(wrong).toThrow(/"timeout" must be a number of milliseconds, or a text such as "500ms"/);
    },
  );
});
