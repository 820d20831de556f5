import { expect, test } from "vitest";
import { type Usage, UsageMeter } from "./usage.ts";

test("what was used adds up by unit", () => {
  const meter = new UsageMeter();
  expect(meter.total()).toBeUndefined();
  meter.add({ tokens: 3, pages: 0.5 });
  meter.add({ tokens: 4 });
  expect(meter.total()).toEqual({ tokens: 7, pages: 0.5 });
});

test.each<[string, unknown]>([
  ["NaN", { a: Number.NaN }],
  ["infinity", { a: Infinity }],
  ["less than nothing", { a: -1 }],
  ["a text", { a: "7" }],
  ["a BigInt", { a: 7n }],
  ["a name that is no name", { "a b\0": 1 }],
  ["a name without end", { ["x".repeat(65)]: 1 }],
  ["nothing", undefined],
  ["null", null],
])("%s is not counted", (_, usage) => {
  const meter = new UsageMeter();
  meter.add(usage as Usage);
  expect(meter.total()).toBeUndefined();
});

test("a handler that makes up a unit for every call fills no journal", () => {
  const meter = new UsageMeter();
  for (let i = 0; i < 1_000; i++) meter.add({ [`unit${i}`]: 1 });
  expect(Object.keys(meter.total()!)).toHaveLength(32);
  meter.add({ unit0: 1 });
  expect(meter.total()).toMatchObject({ unit0: 2 });
});
