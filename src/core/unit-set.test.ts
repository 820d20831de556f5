import { describe, expect, test } from "vitest";
import { UnitSet } from "./unit-set.ts";

describe("a set of units is what a set is", () => {
  test.each([3, 16, 17, 40])("with %i of them", (count) => {
    const units = new UnitSet();
    const real = new Set<number>();
    const both = (work: (set: UnitSet | Set<number>) => unknown): void => expect(work(units)).toEqual(work(real));
    for (let i = 0; i < count; i++) both((set) => set.add(i * 3).size);
    both((set) => set.add(0).size);
    for (const unit of [0, 6, 6, 1]) both((set) => [set.delete(unit), set.has(unit), set.size, [...set]]);
    both((set) => [...set.add(0)]);
    both((set) => {
      const seen: number[] = [];
      for (const unit of set) {
        seen.push(unit);
        set.delete(3);
        set.delete(unit);
      }
      return [seen, set.size];
    });
    units.clear();
    expect([units.size, [...units], units.has(0)]).toEqual([0, [], false]);
  });
});
