import { array, assert, constant, integer, oneof, property, tuple } from "fast-check";
import { expect, test } from "vitest";
import { QueueCounts } from "./queue-counts.ts";

type Step =
  | readonly ["set", queue: number, count: number]
  | readonly ["clear"]
  | readonly ["delete", queue: number]
  | readonly ["take"];

const queue = integer({ min: 0, max: 29 });
const step = oneof(
  { weight: 20, arbitrary: tuple(constant("set" as const), queue, integer({ min: 0, max: 3 })) },
  { weight: 1, arbitrary: tuple(constant("clear" as const)) },
  { weight: 2, arbitrary: tuple(constant("delete" as const), queue) },
  { weight: 5, arbitrary: tuple(constant("take" as const)) },
);

test("whoever looks only at what is said to have changed knows all, however many queues there are", () => {
  assert(
    property(array<Step>(step, { maxLength: 120, size: "max" }), (steps) => {
      const counts = new QueueCounts();
      let known = new Map<string, number>();
      for (const [kind, at = 0, count = 0] of [...steps, ["take"] as const]) {
        if (kind === "set") counts.set(`q${at}`, count);
        if (kind === "clear") counts.clear();
        if (kind === "delete") counts.delete(`q${at}`);
        if (kind !== "take") continue;
        const changed = counts.takeChanged();
        if (changed === undefined) known = new Map(counts);
        for (const name of changed ?? []) {
          if (counts.has(name)) known.set(name, counts.get(name)!);
          else known.delete(name);
        }
        expect(known).toEqual(new Map(counts));
        expect(counts.total).toBe([...known.values()].reduce((sum, one) => sum + one, 0));
      }
    }),
  );
});

test("of few queues nobody is told which, of many only those", () => {
  const counts = new QueueCounts();
  for (let i = 0; i < 16; i++) counts.set(`q${i}`, 1);
  expect([counts.takeChanged(), counts.takeChanged()]).toEqual([undefined, undefined]);
  counts.set("q16", 1);
  expect(counts.takeChanged()).toBeUndefined();
  expect(counts.takeChanged()).toEqual(new Set());
  counts.set("q3", 2).set("q17", 1);
  expect(counts.takeChanged()).toEqual(new Set(["q3", "q17"]));
  expect(counts.takeChanged()).toEqual(new Set());
});
