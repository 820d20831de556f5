import type { Plan } from "../world/plan.ts";

/** What a server process is told about its death. */
export interface CrashPlan extends Plan {
  /** Where it is to die, and at which hit. */
  readonly death?: { readonly name: string; readonly hit: number };
  /** How far its calendar is ahead of the machine's, or behind it. */
  readonly clockMs: number;
}
