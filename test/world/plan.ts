/** What a process of a world is told, in its environment. */
export interface Plan {
  /** Where it writes down what it hears and sees. */
  readonly log: string;
  /** A deliberate bug. */
  readonly mutant?: string;
}

export const PLAN_VARIABLE = "WORLD_PLAN";
export const LEDGER_VARIABLE = "WORLD_LEDGER";
