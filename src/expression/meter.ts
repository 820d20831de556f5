import { ExpressionFailure } from "./failure.ts";

export const MAX_STEPS = 10_000;
const MAX_BUILT_CHARACTERS = 1_048_576;

/** Characters that may be looked at for the price of one step. */
const CHARACTERS_PER_STEP = 4_096;

/**
 * What one evaluation may still spend. It counts work and not time, so that the same expression on the same data ends
 * the same way on every machine and at every replay.
 */
export class Meter {
  #steps = MAX_STEPS;
  #characters = MAX_BUILT_CHARACTERS;

  get stepsLeft(): number {
    return this.#steps;
  }

  /** One operator, call, comparison or round of a macro. */
  step(count = 1): void {
    this.#steps -= count;
    if (this.#steps < 0) throw exceeded(`more than ${MAX_STEPS} steps`);
  }

  /** Characters looked at. Without this, a thousand comparisons of 1 MB strings would be a thousand steps. */
  scan(characters: number): void {
    if (characters >= CHARACTERS_PER_STEP) this.step(Math.floor(characters / CHARACTERS_PER_STEP));
  }

  /** Characters about to be built. Asked before building, so that a doubling chain stops before it has the memory. */
  build(characters: number): void {
    this.#characters -= characters;
    if (this.#characters < 0) throw exceeded(`more than ${MAX_BUILT_CHARACTERS} characters of new text`);
  }
}

export function exceeded(what: string): ExpressionFailure {
  return new ExpressionFailure(
    "EXPRESSION_BUDGET_EXCEEDED",
    `The expression needs ${what}. Do such work in a handler.`,
  );
}
