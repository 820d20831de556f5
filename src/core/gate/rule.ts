import { contentHash } from "../../json/hash.ts";
import { entityKey } from "../entity.ts";
import type { Amounts } from "./amounts.ts";

/** What a gate lets through. It travels with every ask, so that the newest definition counts. */
export type GateRule = RateRule | TokensRule | ConcurrencyRule | BreakerRule | BudgetRule;

/** A bucket of tokens: so many come back in a second, and at most `burst` are ever there. */
export interface RateRule {
  readonly kind: "rate";
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The same for what a call uses up and nobody knows before: an estimate is taken out, and when the call is over what was
 * too much of it is put back, or what was missing is owed.
 */
export interface TokensRule {
  readonly kind: "tokens";
  readonly perSecond: number;
  readonly burst: number;
}

/** So many at a time; who comes when it is full stands in line, is sent away, or has those called off that came first. */
export interface ConcurrencyRule {
  readonly kind: "concurrency";
  readonly limit: number;
  readonly onConflict: "queue" | "reject" | "cancel_old";
}

/** Lets nothing through for a while once too many of the last calls have failed; then a few, and more and more. */
export interface BreakerRule {
  readonly kind: "breaker";
  /** Which part of the last `window` calls must have failed, once there were `minCalls`. */
  readonly failureRate: number;
  readonly window: number;
  readonly minCalls: number;
  readonly openMs: number;
}

/** So much may be used up in all. Who would use more is sent away, or waits until somebody allows more. */
export interface BudgetRule {
  readonly kind: "budget";
  readonly limits: Amounts;
  readonly onLimit: "fail" | "pause";
}

/** What people call a gate. */
export interface GateName {
  readonly kind: GateRule["kind"];
  readonly tenant: string;
  readonly name: string;
  /** What the key of a `concurrency` or a `budget` came to; of a budget without one the execution. */
  readonly key?: string;
}

/** Names that can stand in an entity's key as they are, in every store. */
const PLAIN = /^[\w.#@-]{1,100}$/;

/** The entity of a gate: whoever asks under the same name meets the same one, wherever it runs. */
export function gateEntity({ kind, tenant, name, key }: GateName): string {
  const parts = key === undefined ? [tenant, name] : [tenant, name, key];
  const id = parts.every((part) => PLAIN.test(part))
    ? parts.join(":")
    : contentHash(JSON.stringify(parts)).slice(0, 32);
  return entityKey("gate", `${kind}:${id}`);
}

export function sameRule(one: GateRule | null, other: GateRule): boolean {
  return one !== null && JSON.stringify(one) === JSON.stringify(other);
}

/** Something comes back with time. */
export function isBucket(rule: GateRule | null): rule is RateRule | TokensRule {
  return rule?.kind === "rate" || rule?.kind === "tokens";
}
