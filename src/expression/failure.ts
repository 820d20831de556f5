import type { ResolveFailure } from "./scope.ts";

/**
 * Evaluation stops here. Thrown only inside this folder: `resolve` and `evaluate` turn it into a value.
 *
 * TEMPLATE_UNRESOLVED stands for any wrong value (a missing key, a wrong type); `a || b` may absorb it, as CEL
 * prescribes. The other two mean that a limit was reached, and nothing absorbs them.
 */
export class ExpressionFailure extends Error {
  readonly code: Exclude<ResolveFailure["code"], "CONDITION_ERROR">;

  constructor(code: ExpressionFailure["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export function unresolved(message: string): ExpressionFailure {
  return new ExpressionFailure("TEMPLATE_UNRESOLVED", message);
}

export function tooLarge(): ExpressionFailure {
  return new ExpressionFailure(
    "RESOLVED_INPUT_TOO_LARGE",
    "The config would be larger than 4 MiB once its templates are filled in. Read less of what came before.",
  );
}
