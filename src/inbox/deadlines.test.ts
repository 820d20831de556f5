import { expect, test } from "vitest";
import { Deadlines } from "./deadlines.ts";

/** A clock that is moved by hand, and how often somebody slept. */
function world(): {
  readonly deadlines: Deadlines;
  readonly sleeps: number[];
  pass: (ms: number) => Promise<void>;
} {
  let nowMs = 0;
  let wake = (): void => {};
  const sleeps: number[] = [];
  const sleep = (ms: number): Promise<void> => {
    sleeps.push(ms);
    return new Promise((resolve) => (wake = resolve));
  };
  const deadlines = new Deadlines(() => nowMs, sleep);
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    wake();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { deadlines, sleeps, pass };
}

test("each is told when its own time is up, and not before, in whatever order they came", async () => {
  const { deadlines, pass } = world();
  const late: string[] = [];
  deadlines.add(300, () => late.push("long"));
  deadlines.add(100, () => late.push("short"));
  await pass(99);
  expect(late).toEqual([]);
  await pass(1);
  expect(late).toEqual(["short"]);
  await pass(200);
  expect(late).toEqual(["short", "long"]);
});

test("what is over is not told, and nothing ticks while nobody waits", async () => {
  const { deadlines, sleeps, pass } = world();
  const late: string[] = [];
  for (let i = 0; i < 50; i++) deadlines.delete(deadlines.add(10_000, () => late.push("over")));
  expect(sleeps).toEqual([100]);
  await pass(100);
  await pass(10_000);
  expect(late).toEqual([]);
  expect(sleeps).toHaveLength(1);
  // And it ticks again for the next.
  deadlines.add(20, () => late.push("next"));
  expect(sleeps).toEqual([100, 20]);
  await pass(20);
  expect(late).toEqual(["next"]);
});

test("each is found again, whoever was taken away before", async () => {
  const { deadlines, pass } = world();
  const late: number[] = [];
  const open = [0, 1, 2, 3, 4].map((i) => deadlines.add(100, () => late.push(i)));
  expect([0, 4, 2].map((i) => deadlines.delete(open[i]!))).toEqual([true, true, true]);
  expect(deadlines.delete(open[0]!)).toBe(false);
  await pass(100);
  expect(new Set(late)).toEqual(new Set([1, 3]));
});

test("one that is told may end another", async () => {
  const { deadlines, pass } = world();
  const late: string[] = [];
  const other = deadlines.add(100, () => late.push("other"));
  deadlines.delete(other);
  const first = deadlines.add(100, () => {
    late.push("first");
    deadlines.delete(second);
  });
  const second = deadlines.add(100, () => {
    late.push("second");
    deadlines.delete(first);
  });
  await pass(100);
  expect(late).toHaveLength(1);
});
