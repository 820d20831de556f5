/** What a server process is told about its death, in its environment. */
export interface Plan {
  /** Where it writes down what it hears and sees. */
  readonly log: string;
  /** Where it is to die, and at which hit. */
  readonly death?: { readonly name: string; readonly hit: number };
  /** How far its calendar is ahead of the machine's, or behind it. */
  readonly clockMs: number;
  /** A deliberate bug. */
  readonly mutant?: string;
}

export const PLAN_VARIABLE = "CRASH_PLAN";
export const LEDGER_VARIABLE = "CRASH_LEDGER";
