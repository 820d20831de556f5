import type { Context } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import { firstFailure } from "./end.ts";
import type { ExecutionEnded, ExecutionEvent } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/**
 * What follows at once when a unit fails for good; an item is the business of its map. Under `fail_fast` the execution
 * ends in the same commit, unless a dependant `on: failed | done` catches the failure; otherwise the join rules of the
 * dependants say what comes. Its error is the first failure: of a catch that fails too, the failure it was there for.
 */
export function afterFailure(
  state: ExecutionState,
  index: number,
  error: ErrorValue,
  context: Context,
): readonly ExecutionEvent[] {
  if (state.isItem(index)) return [];
  const { id, spec, caught } = state.planOf(index);
  if (spec.on_error !== "fail_fast" || caught) return [];
  const first = firstFailure(state);
  const ended: ExecutionEnded = {
    kind: "executionEnded",
    atMs: context.nowMs,
    status: "failed",
    reason: "fail_fast",
    error: first ?? { ...error, node: id },
    ...(first !== undefined && { cause: id }),
  };
  return [ended];
}
