import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { openMemory } from "../src/drivers/memory/memory-store.ts";
import { openSqlite } from "../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../src/host/node-host.ts";
import type { JsonObject } from "../src/json/json.ts";
import type { Store } from "../src/store/contract.ts";
import { countingBytes } from "./support/allocated-bytes.ts";
import { type Counts, countRun } from "./support/counted-run.ts";

/**
 * What a step may cost, in counts: no clock is looked at, so that a slow or busy machine finds the same as a fast one. The
 * bounds are wide. What breaks one is a disaster, such as a commit for every message or a load for every step.
 */
const folder = mkdtempSync(join(tmpdir(), "millrace-cost-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const DIAMOND: readonly JsonObject[] = [
  { id: "a" },
  { id: "b", dependencies: ["a"] },
  { id: "c", dependencies: ["a"] },
  { id: "d", dependencies: ["b", "c"] },
];
const FAN: readonly JsonObject[] = [
  { id: "a" },
  ...Array.from({ length: 100 }, (_, i) => ({ id: `k${i}`, dependencies: ["a"] })),
  { id: "d", dependencies: Array.from({ length: 100 }, (_, i) => `k${i}`) },
];

const STORES: readonly (readonly [string, () => Promise<Store> | Store])[] = [
  ["memory", () => openMemory({ host: nodeHost })],
  ["SQLite", () => openSqlite({ host: nodeHost, file: join(folder, `${nodeHost.id()}.db`) })],
];

type Bounds = Readonly<Partial<Record<keyof Counts | "allocatedBytes", number>>>;

/** For each step. */
const SHAPES: readonly (readonly [string, readonly JsonObject[], number, Bounds])[] = [
  [
    "400 diamonds",
    DIAMOND,
    400,
    {
      messages: 2,
      tasks: 1.1,
      records: 1.6,
      headers: 0.5,
      wakes: 0.8,
      commits: 0.1,
      posts: 0.1,
      leases: 0.1,
      loads: 0.05,
      journalChars: 700,
      trafficChars: 1_100,
      allocatedBytes: 45_000,
    },
  ],
  [
    "20 of 1→100→1",
    FAN,
    20,
    {
      messages: 1.5,
      tasks: 1.1,
      records: 0.4,
      headers: 0.02,
      wakes: 0.05,
      commits: 0.1,
      posts: 0.1,
      leases: 0.1,
      loads: 0.05,
      journalChars: 550,
      trafficChars: 1_100,
      allocatedBytes: 28_000,
    },
  ],
];

describe.each(STORES)("a step on %s costs no more than", (_, open) => {
  test.each(SHAPES)("%s", async (_, nodes, executions, bounds) => {
    const store = await open();
    const { result, bytes } = await countingBytes(() => countRun(store, nodes, executions));
    const counts = { ...result, allocatedBytes: bytes };
    const { steps } = counts;
    expect(steps).toBe(nodes.length * executions);
    const perStep = Object.entries(bounds).map(([name, bound]) => [
      name,
      counts[name as keyof typeof counts] / steps,
      bound,
    ]);
    expect(perStep.filter(([, cost, bound]) => cost! > bound!)).toEqual([]);
  });
});
