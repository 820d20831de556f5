import { expect, test } from "vitest";
import { ReadSize } from "./read-size.ts";

/** Messages of which so many fit into a read, and how many are fetched until all were read. */
function fetched(count: number, fit: number, limit: number): number {
  const size = new ReadSize();
  let all = 0;
  for (let left = count; left > 0;) {
    const found = Math.min(left, size.most(limit));
    const taken = Math.min(found, fit);
    size.note([{ found, taken }]);
    all += found;
    left -= taken;
  }
  return all;
}

test("large messages are not fetched again and again", () => {
  expect(fetched(4_000, 2, 125)).toBeLessThan(3 * 4_000);
  expect(fetched(4_000, 1, 125)).toBeLessThan(5 * 4_000);
});

test("small ones are read as many at a time as may be, also after large ones", () => {
  expect(fetched(4_000, 125, 125)).toBe(4_000);
  const size = new ReadSize();
  size.note([{ found: 125, taken: 2 }]);
  expect(size.most(125)).toBe(4);
  for (let i = 0; i < 5; i++) size.note([{ found: size.most(125), taken: size.most(125) }]);
  expect(size.most(125)).toBe(125);
});

test("partitions that are read together have what the fullest of them needs", () => {
  const size = new ReadSize();
  size.note([
    { found: 125, taken: 2 },
    { found: 125, taken: 30 },
    { found: 3, taken: 3 },
  ]);
  expect(size.most(125)).toBe(60);
});
