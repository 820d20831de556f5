import { describe, expect, test } from "vitest";
import { ALL_NAMES, FAILPOINTS } from "./failpoints.ts";
import { instruments } from "./instruments.ts";
import { Lanes } from "../world/lanes.ts";
import { MUTANTS } from "./mutants.ts";
import { patched } from "../world/patch.ts";
import { summary } from "./summary.ts";
import { sweep, type Verdict } from "./sweep.ts";
import { worldsOf } from "./worlds.ts";

/** Fresh every time: what it finds, `npm run crash` repeats by the command that a failure prints. */
const SEED = Math.floor(Math.random() * 1e6);
/** Every failpoint once, and a few a second time. */
const KILLS = ALL_NAMES.length + 1;
/** How many worlds may pass a deliberate bug by before it counts as not noticed. */
const WORLDS_FOR_A_MUTANT = 8;
/** Worlds at the same time. Each has a process that starts most of the time, and one that waits for it. */
const LANES = 2;
/** Waiting for a lane included, on a machine that is busy with other things; in peace all of it takes a minute. */
const TIMEOUT_MS = 900_000;

describe("the patches of the crash sweep", () => {
  test("have names of their own", () => {
    expect(new Set(ALL_NAMES).size).toBe(ALL_NAMES.length);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  });

  test("fit the sources, each by itself and with what is always there", () => {
    const always = instruments(0);
    const lists = [always, ...FAILPOINTS.map(({ patch }) => [...always, patch])];
    for (const { patches, failpoints } of MUTANTS) {
      for (const name of failpoints) {
        lists.push([...patches, ...always, FAILPOINTS.find((failpoint) => failpoint.name === name)!.patch]);
      }
    }
    for (const patches of lists) {
      for (const [file, own] of Map.groupBy(patches, (patch) => patch.file)) patched(file, own);
    }
  });
});

describe("a process that is killed at every failpoint loses nothing, doubles nothing, and goes on at once", () => {
  const verdicts: Verdict[] = [];
  const lanes = new Lanes(LANES);

  test.concurrent.each(worldsOf(SEED, KILLS).map((world) => [world.seed, world.failpoints.join(" "), world] as const))(
    "seed %i: %s",
    { timeout: TIMEOUT_MS },
    async (_seed, _names, world) => {
      const verdict = await lanes.take(() => sweep(world));
      verdicts.push(verdict);
      expect(verdict.violations, verdict.command).toEqual([]);
    },
  );

  test("was killed often enough, and at every failpoint", () => {
    console.log(summary(verdicts));
    const kills = verdicts.flatMap((verdict) => verdict.kills);
    expect(kills.length).toBeGreaterThanOrEqual(60);
    expect(ALL_NAMES.filter((name) => !kills.includes(name))).toEqual([]);
  });
});

describe("the sweep notices", () => {
  test.each(MUTANTS.map((mutant) => [mutant.name, mutant.thought, mutant] as const))(
    "%s: %s",
    { timeout: TIMEOUT_MS },
    async (name, _thought, { failpoints, says }) => {
      // A kill does not always strike where the bug is: the mail it swallowed may have been one nobody waits for.
      let found: string[] = [];
      for (let i = 0; i < WORLDS_FOR_A_MUTANT && found.length === 0; i += 1) {
        const { violations } = await sweep({ seed: SEED + i, failpoints, mutant: name }, "never");
        found = violations.filter((violation) => says.test(violation));
      }
      expect(found).not.toEqual([]);
    },
  );
});
