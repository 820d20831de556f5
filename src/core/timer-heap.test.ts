import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TimerHeap } from "./timer-heap.ts";

/** A heap and the deadlines that count: what a state is to its timers. */
interface Timers {
  readonly heap: TimerHeap<ReadonlyMap<number, number>>;
  readonly due: Map<number, number>;
  readonly set: (node: number, atMs: number | null) => void;
}

function timers(): Timers {
  const due = new Map<number, number>();
  const heap = new TimerHeap<ReadonlyMap<number, number>>(due, (times, node) => times.get(node) ?? null);
  return {
    heap,
    due,
    set: (node, atMs) => {
      if (atMs === null) due.delete(node);
      else {
        due.set(node, atMs);
        heap.push(atMs, node);
      }
      heap.settle(due.size);
    },
  };
}

function sorted(due: ReadonlyMap<number, number>): [number, number][] {
  return [...due].sort(([nodeA, a], [nodeB, b]) => a - b || nodeA - nodeB);
}

describe("due", () => {
  test("deadlines come in the order of their times, those of the same time in the order of their nodes", () => {
    const { heap, set } = timers();
    for (const [node, atMs] of [
      [7, 30],
      [2, 10],
      [9, 10],
      [1, 20],
    ] as const)
      set(node, atMs);
    expect(heap.due(20, 10)).toEqual([2, 9, 1]);
    expect(heap.due(100, 2)).toEqual([2, 9]);
    expect(heap.due(9, 10)).toEqual([]);
  });

  test("looking takes nothing out", () => {
    const { heap, set } = timers();
    set(1, 10);
    expect([heap.due(10, 1), heap.due(10, 1), heap.peekMs()]).toEqual([[1], [1], 10]);
  });

  test("a node filed twice for the same moment is due once", () => {
    const { heap, set } = timers();
    set(1, 10);
    set(1, null);
    set(1, 10);
    expect(heap.due(10, 10)).toEqual([1]);
  });
});

test("a deadline that was moved later does not fire at its old time", () => {
  const { heap, set } = timers();
  set(1, 10);
  set(1, 50);
  expect([heap.peekMs(), heap.due(49, 10), heap.due(50, 10)]).toEqual([50, [], [1]]);
});

test("a cleared heap has nothing", () => {
  const { heap, set } = timers();
  set(1, 10);
  heap.clear();
  expect([heap.peekMs(), heap.due(1000, 10)]).toEqual([null, []]);
});

test("the heap agrees with a sorted list, whatever is set, moved and taken away", () => {
  const step = fc.tuple(fc.integer({ min: -1, max: 15 }), fc.option(fc.integer({ min: 0, max: 40 }), { nil: null }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 0, max: 45 }), (steps, nowMs) => {
      const { heap, due, set } = timers();
      for (const [node, atMs] of steps) {
        set(node, atMs);
        expect(heap.peekMs()).toBe(sorted(due)[0]?.[1] ?? null);
      }
      const expected = sorted(due).filter(([, atMs]) => atMs <= nowMs);
      expect(heap.due(nowMs, 1000)).toEqual(expected.map(([node]) => node));
      expect(heap.due(nowMs, 3)).toEqual(expected.slice(0, 3).map(([node]) => node));
    }),
  );
});

test("a heap that is mostly stale is built anew, and forgets nothing that counts", () => {
  const { heap, due, set } = timers();
  for (let i = 0; i < 20_000; i++) set(i % 10, 1_000_000 - i);
  expect(sorted(due).map(([node]) => node)).toEqual(heap.due(2_000_000, 100));
  expect(heap.peekMs()).toBe(1_000_000 - 19_999);
  const { times } = heap as unknown as { times: readonly number[] };
  expect(times.length).toBeLessThan(2048);
});
