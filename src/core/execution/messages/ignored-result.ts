import type { Context } from "../../machine.ts";
import { decided, type ExecutionDecision } from "../decision.ts";
import type { ExecutionState } from "../state.ts";

/** A result that counts for nothing is written down all the same: somebody did the work, and will ask. */
export function ignoredResult(
  state: ExecutionState,
  token: string,
  why: "stale" | "unknown" | "late" | "taken",
  context: Context,
): ExecutionDecision {
  const reason = why === "unknown" ? "unknownDispatch" : why === "late" ? "closed" : "staleAttempt";
  const reply =
    why === "late"
      ? { ok: { accepted: false, recorded: true } }
      : { refused: why === "unknown" ? "TASK_TOKEN_INVALID" : "STALE_ATTEMPT" };
  return decided(state, context, [{ kind: "resultIgnored", atMs: context.nowMs, token, reason }], { reply });
}
