import { expect, test } from "vitest";
import type { Machine } from "../core/machine.ts";
import { Resident } from "./resident.ts";
import { mustStoreWake, wakeBound } from "./wake-bound.ts";

interface Has {
  readonly ended?: true;
  readonly withdrawing?: string[];
  readonly work?: true;
  readonly tasks?: number;
  readonly timer?: number;
}

function entity({ ended, withdrawing = [], work, tasks = 0, timer }: Has, stored: number | null = null): Resident {
  const machine = {
    isEnded: () => ended === true,
    hasWork: () => work === true,
    liveTasks: () => new Map(tasks > 0 ? [["q", tasks]] : []),
    liveCount: () => tasks,
    nextWakeMs: () => timer ?? null,
  } as unknown as Machine;
  return Object.assign(new Resident("k", "k", machine, {}), { storedWakeMs: stored, withdrawing });
}

const NOW = 1_000;

test.each([
  // has                                 volatile  looked at
  [{}, false, null],
  [{ timer: 5_000 }, false, 5_000],
  [{ timer: 5_000, work: true }, false, NOW],
  [{ timer: 5_000, tasks: 1 }, false, 5_000],
  [{ timer: 5_000, tasks: 1 }, true, NOW],
  [{ timer: 5_000, ended: true }, false, null],
  [{ ended: true, withdrawing: ["token"] }, false, NOW],
] as readonly (readonly [Has, boolean, number | null])[])(
  "%j on a store with volatile tasks (%s) is looked at %s",
  (has, volatileTasks, expected) => {
    expect(wakeBound(entity(has), NOW, volatileTasks)).toBe(expected);
  },
);

test("of what lives for ever the time to remove it stays in the store while it is in use, if that is far", () => {
  const gate = entity({}, 500_000);
  Object.assign(gate.machine, { renewal: () => null });
  expect(mustStoreWake(gate, null, 60_000, 499_999)).toBe(false);
  expect(mustStoreWake(gate, null, 60_000, 500_000)).toBe(true);
  expect(mustStoreWake(gate, 5_000, 60_000, NOW)).toBe(true);
});

test.each([
  // has        stored  wake    written
  [{}, null, null, false],
  [{}, null, 5_000, true],
  [{}, 5_000, null, true],
  [{}, 5_000, 4_000, true],
  [{}, 5_000, 6_000, false],
  [{}, 5_000, 70_000, true],
  [{ tasks: 1 }, 5_000, 70_000, false],
  [{ work: true }, 5_000, 70_000, false],
] as const)("of %j with %s in the store, %s is written: %s", (has, stored, wake, expected) => {
  expect(mustStoreWake(entity(has, stored), wake, 60_000, NOW)).toBe(expected);
});
