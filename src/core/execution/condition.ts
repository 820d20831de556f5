import type { CompiledCondition } from "../../expression/scope.ts";
import type { Context, Need } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import { templateError } from "./prepare.ts";
import { missingValues, scopeOf } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

export type ConditionOutcome =
  | { readonly kind: "run" }
  | { readonly kind: "skip" }
  | { readonly kind: "failed"; readonly error: ErrorValue }
  | { readonly kind: "needs"; readonly needs: readonly Need[] };

/** Whether a node whose join said run does run. A condition that cannot be evaluated fails it, or skips it if it says so. */
export function evaluateCondition(
  state: ExecutionState,
  index: number,
  condition: CompiledCondition,
  context: Context,
): ConditionOutcome {
  const missing = missingValues(state, index, context);
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const resolution = condition.evaluate(scopeOf(state, index, context));
  if (resolution.kind === "needs") return { kind: "needs", needs: resolution.blobs.map((blob) => ({ blob })) };
  if (resolution.kind === "resolved") return { kind: resolution.value ? "run" : "skip" };
  if (state.planOf(index).spec.condition_on_error === "skip") return { kind: "skip" };
  return { kind: "failed", error: templateError(resolution.failure) };
}
