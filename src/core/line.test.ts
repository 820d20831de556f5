import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Line } from "./line.ts";

test("a line gives what was put in, first in first out", () => {
  const line = new Line();
  for (const item of [5, 3, 9]) line.push(item);
  expect([line.length, line.at(0), line.at(2), line.at(3)]).toEqual([3, 5, 9, undefined]);
  line.remove(5);
  expect(line.toArray()).toEqual([3, 9]);
  line.clear();
  expect([line.length, line.at(0)]).toEqual([0, undefined]);
});

test("an item that is not there is not taken out", () => {
  const line = new Line();
  line.push(1);
  line.remove(2);
  expect(line.toArray()).toEqual([1]);
});

test("a line holds what an array would hold, whatever is taken out of it", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("push"), item: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ kind: fc.constant("remove"), item: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ kind: fc.constant("front"), item: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const line = new Line();
      const model: number[] = [];
      for (const { kind, item } of steps) {
        if (kind === "push") {
          line.push(item);
          model.push(item);
          continue;
        }
        const gone = kind === "front" ? model[0] : item;
        if (gone === undefined) continue;
        line.remove(gone);
        if (model.includes(gone)) model.splice(model.indexOf(gone), 1);
      }
      expect(line.toArray()).toEqual(model);
      expect(line.length).toBe(model.length);
    }),
  );
});

test("a long line taken from the front keeps its order past the point where it frees its memory", () => {
  const line = new Line();
  for (let i = 0; i < 5000; i++) line.push(i);
  for (let i = 0; i < 4990; i++) line.remove(i);
  expect(line.toArray()).toEqual([4990, 4991, 4992, 4993, 4994, 4995, 4996, 4997, 4998, 4999]);
});
