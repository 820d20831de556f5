import type { AsksReturned, GateCommanded, GateEvent, Place } from "./events.ts";
import { added, type Amounts, settled } from "./amounts.ts";
import type { GateAsk } from "../message.ts";
import { isBucket, type RateRule } from "./rule.ts";
import { fill } from "./snapshot.ts";
import { costOf, type GateState, type Held, heldKey, levelAt, reservation, roomOf, unbegunOf } from "./state.ts";

/** How many requests of people are remembered. */
const REMEMBERED_REQUESTS = 100;

/** Applies one event: the only function that changes a gate. */
export function evolve(state: GateState, event: GateEvent): void {
  state.version++;
  state.lastAtMs = event.atMs;
  state.wasReminded = event.kind === "gateReminded";
  switch (event.kind) {
    case "gateRuled":
      if (state.rule === null) state.createdAtMs = event.atMs;
      state.name = event.name;
      return changeRule(state, event.atMs, () => (state.rule = event.rule));
    case "commandApplied":
      return command(state, event);
    case "gateForsaken":
      state.isForsaken = true;
      state.override = null;
      state.isTripped = false;
      state.spent = {};
      state.stalled.clear();
      return;
    case "asksQueued":
      state.isForsaken = false;
      return state.line.add(event.execution, event.asks, event.workflow, event.atMs);
    case "asksGranted":
      for (const place of event.grants) letThrough(state, place, event.atMs);
      if (event.level === undefined) return;
      state.level = event.level;
      state.levelAtMs = event.atMs;
      return;
    case "breakerOpened":
      state.closedUntilMs = event.untilMs;
      state.openedAtMs = event.atMs;
      state.trust = 1;
      state.hasDoubt = false;
      state.results = [];
      return;
    case "asksReturned":
      for (const ask of event.good ?? []) learn(state, event.execution, ask, false);
      for (const ask of event.bad ?? []) learn(state, event.execution, ask, true);
      return giveBack(state, event);
    case "asksSuperseded":
      for (const { execution, ask } of event.asks) {
        if (state.held.has(heldKey(execution, ask))) state.superseded.add(heldKey(execution, ask));
        state.line.remove(execution, ask);
      }
      return;
    case "asksLapsed":
      fillUp(state, event.atMs);
      for (const { execution, ask } of event.asks) {
        const held = letGo(state, heldKey(execution, ask));
        if (held !== undefined) state.lapsed.set(heldKey(execution, ask), held);
      }
      return;
    case "gateClosed":
      state.closedUntilMs = Math.max(state.closedUntilMs, event.untilMs);
      return;
    case "quarantined":
      state.isQuarantined = true;
      return;
    case "released":
      state.isQuarantined = false;
      return;
    case "asksRefused":
      for (const ask of event.asks) {
        state.line.remove(event.execution, ask);
        state.stalled.delete(heldKey(event.execution, ask));
      }
      return;
    case "asksStalled":
      for (const { execution, ask } of event.asks) state.stalled.add(heldKey(execution, ask));
      return;
    case "gateRenewed":
      fill(state, event.state);
      state.version++;
      state.renewedVersion = state.version;
      state.lastAtMs = event.atMs;
      state.wasReminded = false;
      return;
    case "gateReminded":
    case "parked":
      return;
  }
}

/** What has come together under the old rule stays, as far as the new bucket holds it. A new one is full. */
function changeRule(state: GateState, atMs: number, change: () => void): void {
  const before = state.ruling;
  const level = levelAt(state, atMs);
  change();
  const after = state.ruling;
  // Whoever waits for more is judged, and told, anew.
  state.stalled.clear();
  if (!isBucket(after)) return;
  state.level = isBucket(before) ? Math.min(level, roomOf(state, after)) : after.burst;
  state.levelAtMs = atMs;
}

/** It stands in the line no more, and holds what it has asked for. */
function letThrough(state: GateState, { execution, ask }: Place, atMs: number): void {
  const asked = state.line.get(execution, ask);
  const reserved = reservation(state.ruling, asked);
  const workflow = state.line.groupOf(execution);
  state.line.take(execution, ask);
  const begin = state.ruling?.kind === "rate" ? beginning(state.ruling, asked ?? {}, workflow) : {};
  const more = { ...(reserved && { reserved }), ...begin };
  const held: Held = { execution, ask, node: asked?.node ?? "", atMs, ...more };
  state.held.set(heldKey(execution, ask), held);
  state.unbegun += unbegunOf(state, held);
  state.stalled.delete(heldKey(execution, ask));
  if (state.ruling?.kind === "budget") state.reserved = added(state.reserved, held.reserved ?? {});
}

/** They hold nothing any more, and wait for nothing. */
function giveBack(state: GateState, { execution, asks, used = [], atMs }: AsksReturned): void {
  const usedBy = new Map(used.map((one) => [one.ask, one.used]));
  fillUp(state, atMs);
  for (const ask of asks) {
    const key = heldKey(execution, ask);
    const reserved = letGo(state, key)?.reserved;
    state.lapsed.delete(key);
    state.line.remove(execution, ask);
    state.stalled.delete(key);
    state.superseded.delete(key);
    if (reserved !== undefined) settle(state, reserved, settled(reserved, usedBy.get(ask)), atMs);
  }
}

/** What a rate has to know of one it lets through. */
function beginning(rule: RateRule, asked: Pick<GateAsk, "cost">, workflow: string | undefined): Partial<Held> {
  const cost = costOf(rule, asked);
  return { ...(cost !== 1 && { cost }), ...(workflow !== undefined && workflow !== "" && { workflow }) };
}

/** How far a rate is filled depends on who has begun: what has come together until then is written down first. */
function fillUp(state: GateState, atMs: number): void {
  if (state.ruling?.kind !== "rate") return;
  state.level = levelAt(state, atMs);
  state.levelAtMs = atMs;
}

function letGo(state: GateState, key: string): Held | undefined {
  const held = state.held.get(key);
  if (held === undefined) return undefined;
  state.held.delete(key);
  // What rounding has left is nobody's.
  state.unbegun = state.held.size === 0 ? 0 : state.unbegun - unbegunOf(state, held);
  return held;
}

/** What was reserved and not used is there again; what was used beyond it is missing. */
function settle(state: GateState, reserved: Amounts, cost: Amounts, atMs: number): void {
  const rule = state.ruling;
  if (rule?.kind === "budget") {
    state.spent = added(state.spent, cost);
    // What rounding has left is nobody's.
    state.reserved = state.held.size === 0 ? {} : added(state.reserved, reserved, -1);
  }
  if (!isBucket(rule)) return;
  state.level = Math.min(rule.burst, levelAt(state, atMs) + (reserved.tokens ?? 0) - (cost.tokens ?? 0));
  state.levelAtMs = atMs;
}

/** With so many at a time all may go again. */
const FULL_TRUST = 32;

/** How a call has ended. Of calls from before it opened the breaker knows enough. */
function learn(state: GateState, execution: string, ask: number, failed: boolean): void {
  const rule = state.ruling;
  const held = state.held.get(heldKey(execution, ask));
  if (rule?.kind !== "breaker" || held === undefined || held.atMs <= state.openedAtMs) return;
  if (state.trust === null) {
    state.results = [...state.results, failed].slice(-rule.window);
    return;
  }
  if (failed) state.hasDoubt = true;
  else state.trust *= 2;
  if (state.trust >= FULL_TRUST && !state.hasDoubt) state.trust = null;
}

function command(state: GateState, { command: what, request, rule, atMs }: GateCommanded): void {
  state.requests = [...state.requests, request].slice(-REMEMBERED_REQUESTS);
  if (what === "override") return changeRule(state, atMs, () => (state.override = rule ?? null));
  state.isTripped = what === "trip";
  if (what !== "reset") return;
  state.spent = {};
  state.stalled.clear();
  state.closedUntilMs = 0;
  state.trust = null;
  state.hasDoubt = false;
  state.results = [];
}
