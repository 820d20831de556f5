import { instrument, Witness } from "../world/witness.ts";
import { PLAN_VARIABLE } from "../world/plan.ts";
import type { Patch } from "../world/patch.ts";
import type { CrashPlan } from "./crash-plan.ts";
import { failpointOf } from "./failpoints.ts";
import { instruments } from "./instruments.ts";
import { MUTANTS } from "./mutants.ts";

/**
 * Makes a process die where it is told to: `node --import ./test/crash/hook.ts bin/millrace.js …`, with a plan in the
 * environment. The failpoint, and what writes the history down, are put into the sources as they are loaded.
 */
const plan = JSON.parse(process.env[PLAN_VARIABLE]!) as CrashPlan;

class CrashWitness extends Witness {
  #hits = 0;

  point(name: string): void {
    if (++this.#hits !== plan.death!.hit) return;
    this.tell({ kind: "died", name });
    process.kill(process.pid, "SIGKILL");
    for (;;);
  }
}

instrument(new CrashWitness(plan.log), patches());

function patches(): readonly Patch[] {
  const { death, mutant, clockMs } = plan;
  const bug = MUTANTS.find(({ name }) => name === mutant);
  if (mutant !== undefined && bug === undefined) throw new Error(`there is no mutant ${mutant}`);
  const failpoint = death === undefined ? undefined : failpointOf(death.name);
  if (death !== undefined && failpoint === undefined) throw new Error(`there is no failpoint ${death.name}`);
  // A bug first: it may move the place at which to die.
  return [...(bug?.patches ?? []), ...instruments(clockMs), ...(failpoint === undefined ? [] : [failpoint.patch])];
}
