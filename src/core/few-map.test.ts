import { expect, test } from "vitest";
import { FewMap } from "./few-map.ts";

type Either = FewMap<string, number> | Map<string, number>;

const WORK: readonly ((map: Either) => unknown)[] = [
  (map) => map.get("a"),
  (map) => map.set("a", 1).size,
  (map) => map.set("a", 2).size,
  (map) => map.set("b", 3).size,
  (map) => map.set("c", 4).get("b"),
  (map) => [map.get("a"), map.get("d"), map.has("a"), map.has("b"), map.has("d")],
  // The first goes, and another that was there before it is set again: it is not there twice.
  (map) => [map.delete("a"), map.delete("a"), map.has("a"), map.size],
  (map) => map.set("b", 5).size,
  (map) => map.set("d", 6).size,
  (map) => [map.delete("c"), map.delete("e"), map.size],
  (map) => {
    const seen: string[] = [];
    map.forEach((value, key) => {
      seen.push(`${key}${value}`);
      map.delete(key);
    });
    return [seen.toSorted(), map.size];
  },
  (map) => map.set("a", 7).set("b", 8).size,
  (map) => (map.clear(), [map.size, map.has("a"), map.has("b")]),
];

test("a map of few is what a map is", () => {
  const few = new FewMap<string, number>();
  const real = new Map<string, number>();
  for (const work of WORK) {
    expect(work(few)).toEqual(work(real));
    expect(new Map(few)).toEqual(real);
    expect([...few]).toHaveLength(real.size);
  }
});
