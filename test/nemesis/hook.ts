import type { CommitBatch } from "../../src/store/contract.ts";
import type { Patch } from "../world/patch.ts";
import { type Plan, PLAN_VARIABLE } from "../world/plan.ts";
import { instrument, Witness } from "../world/witness.ts";
import { INSTRUMENTS, notedCommit, witnessed } from "./instruments.ts";
import { MUTANTS, patchedScript } from "./mutants.ts";

/** Puts into a process what writes its history down, and a deliberate bug if its plan names one. */
const { log, mutant } = JSON.parse(process.env[PLAN_VARIABLE]!) as Plan;
const bug = MUTANTS.find(({ name }) => name === mutant);
if (mutant !== undefined && bug === undefined) throw new Error(`there is no mutant ${mutant}`);

class NemesisWitness extends Witness {
  script(name: string, text: string): string {
    return witnessed(name, patchedScript(name, text, bug));
  }

  transacted(key: string, batch: CommitBatch): string[] {
    return notedCommit(key, batch);
  }
}

const patches: readonly Patch[] = [...(bug?.patches ?? []), ...INSTRUMENTS];
instrument(new NemesisWitness(log), patches);
