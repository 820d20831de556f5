import type { GateAsk } from "../message.ts";
import type { Amounts } from "./amounts.ts";
import { type GateName, type GateRule, isBucket } from "./rule.ts";
import { WaitingLine } from "./waiting-line.ts";

/** A grant that has not been given back. */
export interface Held {
  readonly execution: string;
  readonly ask: number;
  /** For people: the node instance it is for. */
  readonly node: string;
  readonly atMs: number;
  /** What is kept for it until it is known what it has used. */
  readonly reserved?: Amounts;
}

/** The state of one gate: the fold of its events. */
export class GateState {
  readonly id: string;
  version = 0;
  name: GateName | null = null;
  /** What the definitions say; `override` goes before it. */
  rule: GateRule | null = null;
  override: GateRule | null = null;
  createdAtMs = 0;
  lastAtMs = 0;
  /** By `execution ask`, oldest first. */
  readonly held: Map<string, Held> = new Map();
  /** Of those, the ones whose executions were called off. */
  readonly superseded: Set<string> = new Set();
  readonly line: WaitingLine = new WaitingLine();
  /** Of a rate: the tokens there were at a moment. Below zero more was used than was thought. */
  level = 0;
  levelAtMs = 0;
  closedUntilMs = 0;
  isTripped = false;
  /** Requests of people that were decided, newest last. */
  requests: string[] = [];
  wasReminded = false;
  /** Of a breaker: whether each of the last calls failed, oldest first. */
  results: boolean[] = [];
  /** Of one that was open: how many may try at a time; null while all may. */
  trust: number | null = null;
  /** A call has failed that was to show whether things are well again. */
  hasDoubt = false;
  openedAtMs = 0;
  isQuarantined = false;
  /** Of a budget: whose it was is gone, and nobody has asked since. */
  isForsaken = false;
  /** The event that last said all there is; 0 if none has. */
  renewedVersion = 0;
  /** Of a budget: what was used up, and what is kept for those who are under way. */
  spent: Amounts = {};
  reserved: Amounts = {};
  /** Of a budget: who was told that there is not enough left, and waits for more. */
  readonly stalled: Set<string> = new Set();

  constructor(id: string) {
    this.id = id;
  }

  get ruling(): GateRule | null {
    return this.override ?? this.rule;
  }
}

export function heldKey(execution: string, ask: number): string {
  return `${execution} ${ask}`;
}

/**
 * How long a grant may go unused without holding up others: so much of the rate may be granted, beside the burst, and not
 * yet known to have begun. Beginnings are reported a second late; workers that stand still must not save calls up.
 */
const UNUSED_SECONDS = 5;

/** How many more may hold a grant now. Of a rate those hold one that are not known to have begun. */
export function freePlaces(state: GateState, rule: GateRule): number {
  switch (rule.kind) {
    case "concurrency":
      return rule.limit - state.held.size;
    case "rate":
      return Math.ceil(rule.burst + rule.perSecond * UNUSED_SECONDS) - state.held.size;
    case "tokens":
    case "budget":
      return Infinity;
    case "breaker": {
      if (state.trust === null) return Infinity;
      // Calls from before it opened may hang for long: they show nothing.
      const trying = Array.from(state.held.values()).filter(({ atMs }) => atMs > state.openedAtMs);
      return state.trust - trying.length;
    }
  }
}

/** How many have to make room for those who came after them. */
export function supersedable({ ruling, held, line, superseded }: GateState): number {
  if (ruling?.kind !== "concurrency" || ruling.onConflict !== "cancel_old") return 0;
  return Math.max(0, held.size + line.length - superseded.size - ruling.limit);
}

/** Whether a breaker has seen enough. */
export function mustOpen(state: GateState): boolean {
  const rule = state.ruling;
  if (rule?.kind !== "breaker") return false;
  if (state.trust !== null) return state.hasDoubt;
  const { results } = state;
  const failed = results.filter(Boolean).length;
  return results.length >= rule.minCalls && failed > 0 && failed >= results.length * rule.failureRate;
}

/** The tokens of a rate at a moment. */
export function levelAt(state: GateState, nowMs: number): number {
  const rule = state.ruling;
  if (!isBucket(rule)) return Infinity;
  return Math.min(rule.burst, state.level + (Math.max(0, nowMs - state.levelAtMs) / 1000) * rule.perSecond);
}

/** What one ask takes of a rate. More than the bucket holds can never be there at once. */
export function costOf(rule: GateRule, { cost = 1, estimate }: Pick<GateAsk, "cost" | "estimate">): number {
  if (rule.kind === "tokens") return Math.min(estimate?.tokens ?? 0, rule.burst);
  return rule.kind === "rate" ? Math.min(cost, rule.burst) : 1;
}

/** What is kept for an ask from its grant to its end. */
export function reservation(
  rule: GateRule | null,
  ask: Pick<GateAsk, "cost" | "estimate"> | undefined,
): Amounts | undefined {
  if (rule?.kind === "tokens" && ask !== undefined) return { tokens: costOf(rule, ask) };
  return rule?.kind === "budget" ? (ask?.estimate ?? {}) : undefined;
}

/** When the next in line can be let through; null if only somebody's return, or a person, can bring that about. */
export function opensAtMs(state: GateState): number | null {
  const rule = state.ruling;
  const next = state.line.first(state.lastAtMs);
  // What a budget has to say it says at once.
  if (rule?.kind === "budget") return null;
  if (rule === null || next === undefined || state.isTripped || freePlaces(state, rule) <= 0) return null;
  if (!isBucket(rule)) return Math.max(state.lastAtMs, state.closedUntilMs);
  const missing = costOf(rule, next) - state.level;
  const enoughAtMs = missing <= 0 ? state.levelAtMs : state.levelAtMs + Math.ceil((missing / rule.perSecond) * 1000);
  return Math.max(enoughAtMs, state.closedUntilMs);
}
