import { expect, test } from "vitest";
import { SlotMap } from "./slot-map.ts";

test("is what a map is, whatever comes and goes", () => {
  const slots = new SlotMap<string, number>();
  const real = new Map<string, number>();
  const both = (work: (map: SlotMap<string, number> | Map<string, number>) => unknown): void =>
    expect(work(slots)).toEqual(work(real));
  let n = 17;
  for (let i = 0; i < 2_000; i++) {
    n = (n * 1_103_515_245 + 12_345) % 2_147_483_648;
    const key = `k${n % 40}`;
    if (n % 3 === 0) both((map) => [map.delete(key), map.size, map.has(key), map.get(key)]);
    else if (n % 5 === 0) {
      expect(slots.insert(key, i)).toBe(!real.has(key));
      if (!real.has(key)) real.set(key, i);
    } else both((map) => [map.set(key, i).size, map.get(key)]);
    if (i % 50 === 0) both((map) => [[...map], [...map.keys()], [...map.values()]]);
  }
  both((map) => {
    const seen: unknown[] = [];
    map.forEach((value, key) => seen.push([key, value]));
    for (const [key] of map) {
      seen.push(key);
      map.delete(key);
      if (seen.length < 60) map.set(key, 0);
    }
    return [seen, map.size];
  });
  both((map) => (map.clear(), [map.size, [...map]]));
  both((map) => [...map.set("again", 1)]);
});
