import type { GateAsk } from "../message.ts";
import type { Amounts } from "./amounts.ts";
import { type GateName, type GateRule, isBucket, type RateRule, type TokensRule } from "./rule.ts";
import { type Turn, WaitingLine } from "./waiting-line.ts";

/** A grant that has not been given back. */
export interface Held {
  readonly execution: string;
  readonly ask: number;
  /** For people: the node instance it is for. */
  readonly node: string;
  readonly atMs: number;
  /** What is kept for it until it is known what it has used. */
  readonly reserved?: Amounts;
  /** Of a rate: what it takes, 1 if not said. */
  readonly cost?: number;
  /** Of a rate: which workflow it is of, if that was said. */
  readonly workflow?: string;
}

/** Less than this is missing only because numbers are rounded. */
export const ROUNDING = 1e-6;

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
  /** Of a rate: grants that nobody begins, and that others wait for no more; by `execution ask`. */
  readonly lapsed: Map<string, Held> = new Map();
  /** Of those, the ones whose executions were called off. */
  readonly superseded: Set<string> = new Set();
  readonly line: WaitingLine = new WaitingLine();
  /** Of a rate: the tokens there were at a moment. Below zero more was used than was thought. */
  level = 0;
  levelAtMs = 0;
  /** Of a rate: what those take together that were let through and are not known to have begun. */
  unbegun = 0;
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

/** It was granted, and was not given back. */
export function isOut({ held, lapsed }: Pick<GateState, "held" | "lapsed">, key: string): boolean {
  return held.has(key) || lapsed.has(key);
}

/** How many more may hold a grant now. */
export function freePlaces(state: GateState, rule: GateRule): number {
  switch (rule.kind) {
    case "concurrency":
      return rule.limit - state.held.size;
    case "rate":
    case "tokens":
    case "budget":
      return Infinity;
    case "breaker":
      return state.trust === null ? Infinity : state.trust - keepingOut(state).length;
  }
}

/** Those who keep others out for as long as they have not given back what they hold. */
export function keepingOut(state: GateState): readonly Held[] {
  const rule = state.ruling;
  if (rule === null || isBucket(rule)) return [];
  const held = Array.from(state.held.values());
  if (rule.kind !== "breaker") return held;
  // Calls from before it opened may hang for long: they show nothing.
  return state.trust === null ? [] : held.filter(({ atMs }) => atMs > state.openedAtMs);
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

/** What somebody takes of a rate who is not known to have begun. */
export function unbegunOf({ ruling }: Pick<GateState, "ruling">, { cost = 1 }: Held): number {
  return ruling?.kind === "rate" ? cost : 0;
}

/** So long it takes, in peace, until a gate hears that somebody has begun: a burst that is over sooner counts as so much. */
const HEARING_SECONDS = 0.1;

/** The most that can be called at one moment: what was let through before and has not begun, and what may be let through. */
export function mostAtOnce({ burst, perSecond }: RateRule): number {
  return Math.max(burst, 1 + perSecond * HEARING_SECONDS);
}

/**
 * How far a bucket fills. A rate is on calls, not on grants: whoever was let through may call at any moment until it is
 * known to have begun, so that much less may come together meanwhile. Then the calls of any time are at most those that
 * had not begun before it, what was there, and what came back.
 */
export function roomOf({ unbegun }: Pick<GateState, "unbegun">, rule: RateRule | TokensRule): number {
  return rule.kind === "rate" ? Math.max(0, Math.min(rule.burst, mostAtOnce(rule) - unbegun)) : rule.burst;
}

/** The tokens of a rate at a moment. */
export function levelAt(state: GateState, nowMs: number): number {
  const rule = state.ruling;
  if (!isBucket(rule)) return Infinity;
  const filled = state.level + (Math.max(0, nowMs - state.levelAtMs) / 1000) * rule.perSecond;
  return Math.min(roomOf(state, rule), filled);
}

/** Long enough for any queue that moves, and short enough for others who wait at the gate. */
const LAPSE_MS = 10_000;

const NOBODY: ReadonlySet<string> = new Set();

/** Of a rate: what workflows hold of which something has lapsed. */
export function heldByIdle({ ruling, held, lapsed }: GateState): ReadonlyMap<string, number> {
  const idle = new Map<string, number>();
  if (ruling?.kind !== "rate" || lapsed.size === 0) return idle;
  for (const { workflow = "" } of lapsed.values()) idle.set(workflow, 0);
  for (const { workflow = "", cost = 1 } of [...lapsed.values(), ...held.values()]) {
    const before = idle.get(workflow);
    if (before !== undefined) idle.set(workflow, before + cost);
  }
  return idle;
}

/**
 * Of a rate: workflows that hold as much as there may be at once, and begin nothing of it. They get no more until something
 * of theirs begins, or it would all begin together one day.
 */
export function passedBy(state: GateState): ReadonlySet<string> {
  const { ruling } = state;
  if (ruling?.kind !== "rate" || state.lapsed.size === 0) return NOBODY;
  const most = mostAtOnce(ruling);
  return new Set([...heldByIdle(state)].filter(([, cost]) => cost > most - 1).map(([workflow]) => workflow));
}

/** Who goes next, once there is enough. */
function nextInLine(state: GateState): Turn | undefined {
  return state.line.first(state.lastAtMs, passedBy(state));
}

/** Of a rate: nobody can be let through before somebody has begun, however long it fills. */
export function isWaitingForBeginnings(state: GateState): boolean {
  const rule = state.ruling;
  if (rule?.kind !== "rate") return false;
  const next = nextInLine(state);
  return next !== undefined && roomOf(state, rule) + ROUNDING < costOf(rule, next.ask);
}

/**
 * Of a rate at which somebody waits for beginnings: those of other workflows that have not begun for long. From now on they
 * keep only their own workflow back. They may still begin, all at once: that is the price of not waiting for ever for
 * those whose workers are gone.
 */
export function lapsing({ held, line }: GateState, nowMs: number): readonly Held[] {
  return Array.from(held.values()).filter(({ atMs, workflow = "" }) => {
    return atMs + LAPSE_MS <= nowMs && line.hasOthers(workflow);
  });
}

function firstLapseMs(state: GateState): number | null {
  const [first] = lapsing(state, Infinity);
  return first === undefined ? null : first.atMs + LAPSE_MS;
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
  const next = nextInLine(state);
  // What a budget has to say it says at once.
  if (rule?.kind === "budget") return null;
  if (rule === null || next === undefined || state.isTripped || freePlaces(state, rule) <= 0) return null;
  if (!isBucket(rule)) return Math.max(state.lastAtMs, state.closedUntilMs);
  if (isWaitingForBeginnings(state)) return firstLapseMs(state);
  const missing = costOf(rule, next.ask) - state.level;
  const enoughAtMs = missing <= 0 ? state.levelAtMs : state.levelAtMs + Math.ceil((missing / rule.perSecond) * 1000);
  return Math.max(enoughAtMs, state.closedUntilMs);
}
