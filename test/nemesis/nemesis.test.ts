import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { patched, SRC } from "../world/patch.ts";
import { KILLS_PER_WORLD } from "./fault-plan.ts";
import { INSTRUMENTS } from "./instruments.ts";
import { MUTANTS, patchedScript } from "./mutants.ts";
import { notice } from "./notice.ts";
import { report } from "./report.ts";
import { sweep, type Verdict } from "./sweep.ts";

/** Fresh every time: what it finds, `npm run nemesis` repeats by the command that a failure prints. */
const SEED = Math.floor(Math.random() * 1e6);
/** With an archive it is part of `npm run test:long`. */
const STORES = ["redis", "postgres"] as const;
/** On a machine that is busy with other things; in peace a world takes a minute. */
const TIMEOUT_MS = 900_000;

describe("the patches of the nemesis", () => {
  test("fit the sources", () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    for (const own of [[], ...MUTANTS.map(({ patches }) => patches)]) {
      const byFile = Map.groupBy([...own, ...INSTRUMENTS], ({ file }) => file);
      for (const [file, patches] of byFile) patched(file, patches);
    }
    for (const mutant of MUTANTS) {
      for (const { script } of mutant.scripts) {
        patchedScript(script, readFileSync(join(SRC, "drivers/redis/lua", `${script}.lua`), "utf8"), mutant);
      }
    }
  });
});

describe("a fleet whose processes and store die, stop and are cut off loses nothing and doubles nothing", () => {
  const verdicts: Verdict[] = [];

  test.concurrent.each(STORES)(`on %s, seed ${SEED}`, { timeout: TIMEOUT_MS }, async (store) => {
    const verdict = await sweep({ seed: SEED, store });
    verdicts.push(verdict);
    const { violations, kills, command, folder } = verdict;
    expect(violations, `${command}; its files are in ${folder ?? "no place"}`).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(20);
  });

  test("was killed often enough", () => {
    console.log(report(verdicts));
    expect(KILLS_PER_WORLD).toBeGreaterThanOrEqual(20);
    expect(verdicts.length).toBe(STORES.length);
  });
});

describe("the nemesis notices", () => {
  // The quickest of them; `npm run test:long` has all.
  const [mutant] = MUTANTS.filter(({ name }) => name === "redis-hasty-lapse");

  test(`${mutant!.name}: ${mutant!.thought}`, { timeout: TIMEOUT_MS }, async () => {
    expect(await notice(mutant!, SEED)).toMatch(mutant!.says);
  });
});
