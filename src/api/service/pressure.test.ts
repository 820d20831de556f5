import { describe, expect, test } from "vitest";
import type { Counts, Registration } from "../../store/contract.ts";
import { closedBy, type HighWater } from "./pressure.ts";

const COUNTS: Counts = { storeTimeMs: 10_000_000, inbox: 0, queued: { q: 5 }, leased: 0, deadLetters: 0 };
const HIGH: HighWater = { queueAgeMs: 60_000, fill: 0.75, memory: 0.9 };
const WORKER: Registration = { process: "w", role: "worker", text: JSON.stringify({ handlers: ["h"], queues: ["q"] }) };

describe("new work", () => {
  const since = (ageMs: number): Counts => ({ ...COUNTS, oldestAtMs: { q: COUNTS.storeTimeMs - ageMs } });
  const cases: readonly [string, Counts, readonly Registration[], HighWater, string | undefined][] = [
    ["is let in by a store that says nothing of itself", COUNTS, [WORKER], HIGH, undefined],
    ["is let in while tasks wait no longer than they may", since(60_000), [WORKER], HIGH, undefined],
    ["is refused when a task waits longer", since(60_001), [WORKER], HIGH, "queue_age"],
    ["is let in when the queue where it waits is nobody's", since(60_001), [], HIGH, undefined],
    ["is let in when the age does not count", since(60_001), [WORKER], { ...HIGH, queueAgeMs: 0 }, undefined],
    ["is let in by a store that is three quarters full", { ...COUNTS, fill: 0.75 }, [], HIGH, undefined],
    ["is refused by a store that is fuller", { ...COUNTS, fill: 0.76 }, [], HIGH, "store"],
    ["is refused by a store that has no room", { ...COUNTS, isFull: true }, [], HIGH, "store"],
  ];
  test.each(cases)("%s", (_name, counts, registrations, high, by) => {
    expect(closedBy(counts, registrations, high)?.by).toBe(by);
  });
});
