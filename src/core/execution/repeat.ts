import type { Context, Need } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import type { RoundEnded } from "./events.ts";
import { templateError } from "./prepare.ts";
import { missingValues, ownScopeOf } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

export type Judgement =
  | { readonly kind: "judged"; readonly event: RoundEnded }
  | { readonly kind: "failed"; readonly error: ErrorValue }
  | { readonly kind: "needs"; readonly needs: readonly Need[] };

/** Whether the round that has just ended was the last: `until` says so, or there are no more. */
export function judgeRound(state: ExecutionState, unit: number, context: Context): Judgement {
  const { until, spec } = state.planOf(unit);
  const { every_seconds: everySeconds, max } = spec.repeat!;
  const { round, output } = state.runs[unit]!;
  const missing = missingValues(state, unit, context);
  if (output !== null && "past" in output && context.fetched(`past:${output.past.version}`) === undefined) {
    missing.push({ past: output.past });
  }
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const verdict = until!.evaluate(ownScopeOf(state, unit, context));
  if (verdict.kind === "needs") return { kind: "needs", needs: verdict.blobs.map((blob) => ({ blob })) };
  if (verdict.kind === "failed") return { kind: "failed", error: templateError(verdict.failure) };
  const event = { kind: "roundEnded" as const, atMs: context.nowMs, node: state.nameOf(unit), round };
  if (verdict.value) return { kind: "judged", event: { ...event, nextAtMs: null } };
  if (round >= max) {
    const message = `It was repeated ${round} times, and "until" never held`;
    return { kind: "failed", error: { code: "REPEAT_EXHAUSTED", message, retryable: false } };
  }
  return { kind: "judged", event: { ...event, nextAtMs: context.nowMs + everySeconds * 1000 } };
}
