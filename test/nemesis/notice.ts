import type { Mutant } from "./mutants.ts";
import { sweep } from "./sweep.ts";

/** How many worlds may pass a deliberate bug by before it counts as not noticed: a blow does not always strike home. */
const WORLDS = 4;

/** What was said of a deliberate bug; undefined if nothing was. */
export async function notice(mutant: Mutant, seed: number): Promise<string | undefined> {
  for (let i = 0; i < WORLDS; i++) {
    const { violations } = await sweep({ seed: seed + i, store: mutant.store, mutant, loses: mutant.loses }, "never");
    const found = violations.find((violation) => mutant.says.test(violation));
    if (found !== undefined) return found;
  }
  return undefined;
}
