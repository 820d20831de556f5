import { ExpressionFailure } from "./failure.ts";
import { forbiddenPath, isForbiddenStep } from "./binding.ts";
import type { Meter } from "./meter.ts";
import type { Missing, Step } from "./step.ts";
import type { Problem } from "./binding.ts";
import type { Value } from "./value.ts";

/** One evaluation. */
export interface Run {
  readonly meter: Meter;
  /** The variables of the macros around, outermost first. */
  readonly locals: Value[];
  /** The value of a use, by its position in `Program.uses`. */
  read(use: number): Value | Missing;
  whyMissing(use: number): string;
}

export type Code = (run: Run) => Value;

/** The value, or the failure if it is one that `||`, `&&`, exists() and all() may absorb. A spent budget is not. */
export function attempt(code: Code, run: Run): Value | ExpressionFailure {
  try {
    return code(run);
  } catch (error) {
    if (error instanceof ExpressionFailure && error.code === "TEMPLATE_UNRESOLVED") return error;
    throw error;
  }
}

/** The guard says no. Thrown while an expression is compiled, and turned into its problem there. */
export class Refusal extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

export function forbid(message: string, hint?: string): Refusal {
  return new Refusal({ code: "EXPRESSION_FORBIDDEN", message, ...(hint === undefined ? {} : { hint }) });
}

export function tooComplex(what: string): Refusal {
  return new Refusal({ code: "EXPRESSION_TOO_COMPLEX", message: `An expression may not have ${what}.` });
}

export function wrongSyntax(message: string): Refusal {
  return new Refusal({ code: "TEMPLATE_SYNTAX", message });
}

export function allowStep(step: Step): void {
  if (isForbiddenStep(step)) throw new Refusal(forbiddenPath(step));
}
