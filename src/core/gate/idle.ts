import { isBucket } from "./rule.ts";
import type { GateState } from "./state.ts";

/**
 * Since when a gate is no other than one that nobody has ever asked: then it may go, and comes back with the next ask. null
 * while something would be forgotten with it.
 */
export function idleSinceMs(state: GateState): number | null {
  const rule = state.ruling;
  const isInUse = state.held.size > 0 || state.lapsed.size > 0 || state.line.length > 0;
  if (rule === null || isInUse || state.isTripped || state.override !== null || state.isQuarantined) return null;
  // What was spent is spent, for as long as there is somebody who may spend more.
  if (rule.kind === "budget") return state.isForsaken ? 0 : null;
  if (rule.kind === "breaker" && state.trust !== null) return null;
  return Math.max(state.lastAtMs, state.closedUntilMs, fullAtMs(state));
}

/** When the bucket of a rate has filled up. */
function fullAtMs({ ruling: rule, level, levelAtMs }: GateState): number {
  if (!isBucket(rule)) return 0;
  return levelAtMs + Math.ceil((Math.max(0, rule.burst - level) / rule.perSecond) * 1000);
}
