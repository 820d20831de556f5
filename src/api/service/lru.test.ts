import { expect, test } from "vitest";
import { Lru } from "./lru.ts";

test("what was asked for last stays, and what was not goes first", () => {
  const kept = new Lru<number>(2);
  kept.set("a", 1, 1);
  kept.set("b", 2, 1);
  // The newest, which need not move; then one that must.
  expect([kept.get("b"), kept.get("a"), kept.get("a")]).toEqual([2, 1, 1]);
  kept.set("c", 3, 1);
  expect([kept.get("a"), kept.get("b"), kept.get("c")]).toEqual([1, undefined, 3]);
  expect(kept.get("a")).toBe(1);
  kept.delete("a");
  kept.set("d", 4, 1);
  kept.set("e", 5, 1);
  expect([kept.get("c"), kept.get("d"), kept.get("e"), kept.size]).toEqual([undefined, 4, 5, 2]);
});
