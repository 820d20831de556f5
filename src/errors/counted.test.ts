import { expect, test } from "vitest";
import { counted } from "./counted.ts";

test("one of something is not several", () => {
  expect([0, 1, 2].map((count) => counted(count, "execution"))).toEqual([
    "0 executions",
    "1 execution",
    "2 executions",
  ]);
  expect(counted(1, "runs again", "run again")).toBe("1 runs again");
});
