import { describe, expect, test } from "vitest";
import type { MemoryStore } from "../../src/drivers/memory/memory-store.ts";
import { cases } from "../../src/store/conformance/cases.ts";
import type { Case } from "../../src/store/conformance/harness.ts";
import type { Store } from "../../src/store/contract.ts";
import { openMemoryHarness } from "./memory-harness.ts";
import { mutants } from "./mutants/mutant-list.ts";

/** A case needs the one or the other: no store has both durable and volatile tasks, or is both shared and exclusive. */
const STORES = [{ partitions: 4 }, { volatileTasks: true, exclusive: true, queuesCommits: true }];

/** Longer than any case takes: one that hangs has failed. */
const TOO_LONG_MS = 5000;

type Verdict = "passed" | "failed" | "skipped";

async function tryCase({ requires, run }: Case, wrap: (store: MemoryStore) => Store): Promise<Verdict> {
  for (const options of STORES) {
    const harness = await openMemoryHarness(options, wrap);
    if (requires?.isMet(harness) === false) continue;
    try {
      await withinTime(run(harness));
      return "passed";
    } catch {
      return "failed";
    } finally {
      await harness.close();
    }
  }
  return "skipped";
}

async function withinTime(running: Promise<void>): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("the case does not end")), TOO_LONG_MS);
  try {
    await Promise.race([running, promise]);
  } finally {
    clearTimeout(timer);
  }
}

describe("the conformance suite", () => {
  const killed = new Set<Case>();
  const report: string[] = [];

  test("every case runs on one of the stores, and passes without a mutant", async () => {
    for (const one of cases) expect([one.name, await tryCase(one, (store) => store)]).toEqual([one.name, "passed"]);
  });

  test("every case and every mutant has a name of its own", () => {
    expect(new Set(cases.map(({ role, name }) => `${role}: ${name}`)).size).toBe(cases.length);
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  });

  for (const { name, wrap } of mutants) {
    test(`a driver is caught in which ${name}`, async () => {
      const caughtBy: Case[] = [];
      for (const one of cases) if ((await tryCase(one, wrap)) === "failed") caughtBy.push(one);
      // One that breaks everything says nothing about the cases that fail with it.
      if (caughtBy.length <= cases.length / 8) for (const one of caughtBy) killed.add(one);
      const names = caughtBy.map(({ role, name }) => `${role}: ${name}`);
      report.push(`${name}: ${names.length} cases, such as ${names.slice(0, 2).join(" | ")}`);
      expect(caughtBy.length).toBeGreaterThan(0);
    });
  }

  test("every case catches one of the mutants", () => {
    console.log(`${mutants.length} mutants, ${cases.length} cases\n${report.join("\n")}`);
    const useless = cases.filter((one) => !killed.has(one)).map(({ role, name }) => `${role}: ${name}`);
    expect(useless).toEqual([]);
  });
});
