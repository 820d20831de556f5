import { entityKey } from "../entity.ts";
import type { Context, Machine } from "../machine.ts";
import type { Message } from "../message.ts";
import { hasBudgetWork } from "./budget.ts";
import { decide, listed } from "./decide.ts";

import { GATE_EVENT_FORMAT, type GateEvent } from "./events.ts";
import { evolve } from "./evolve.ts";
import { answers, type GateDecision, grant } from "./grant.ts";

import { idleSinceMs } from "./idle.ts";
import { isBucket } from "./rule.ts";
import { bodyOf, GATE_SNAPSHOT_FORMAT, restore, snapshot } from "./snapshot.ts";
import { GateState, heldKey, mustOpen, opensAtMs, supersedable } from "./state.ts";

/**
 * The gate as a kind of entity: a rate, or a number of places. Executions ask by mail and give back by mail; whatever
 * dies in between, the mail arrives.
 */
export const gateMachine: Machine<GateState, GateEvent> = {
  kind: "gate",
  eventFormat: GATE_EVENT_FORMAT,
  snapshotFormat: GATE_SNAPSHOT_FORMAT,
  definitionOf: () => undefined,
  isStart: (body) => body.kind === "gateAcquire",
  prepareDefinition: () => undefined,
  create: (id) => new GateState(id),
  decide,
  advance: grant,
  recovered,
  debtors,
  forgotten,
  evolve,
  check,
  hasWork: (state) => {
    const atMs = opensAtMs(state);
    if (mustOpen(state) || supersedable(state) > 0 || hasBudgetWork(state)) return true;
    return atMs !== null && atMs <= state.lastAtMs;
  },
  nextWakeMs: (state) => (hasBudgetWork(state) ? state.lastAtMs : opensAtMs(state)),
  liveTokens: () => [],
  liveTasks: () => NO_TASKS,
  liveCount: () => 0,
  openTasks: () => ({ tasks: [], needs: [] }),
  withdrawn: () => [],
  isEnded: () => false,
  idleSinceMs,
  versionOf: (state) => state.version,
  renewal,
  isRenewal: ({ kind }) => kind === "gateRenewed",
  renewedVersion: (state) => state.renewedVersion,
  header: (state) => ({
    class: "open",
    status: "GATE",
    workflow: "",
    tenant: state.name?.tenant ?? "default",
    createdAtMs: state.createdAtMs,
    endedAtMs: null,
  }),
  snapshot,
  restore: (id, _definition, text) => restore(id, text),
  definitionOfSnapshot: () => undefined,
};

const NO_TASKS: ReadonlyMap<string, number> = new Map();

/**
 * Who waits asks anew, by another number, or has forgotten that it asked and may ask something else by the same: nobody is
 * left in line. Returns that were on their way are lost: whoever holds nothing any more says so when it is told of its grant
 * again.
 */
function recovered(state: GateState, context: Context): GateDecision {
  const atMs = context.nowMs;
  const listings = state.name === null ? [] : [listed(state.id, state.name)];
  const waiting = Map.groupBy(state.line.inTurn(state.lastAtMs), ({ execution }) => execution);
  const left = Array.from(waiting, ([execution, asks]): GateEvent => {
    return { kind: "asksReturned", atMs, execution, asks: asks.map(({ ask }) => ask.ask) };
  });
  if (left.length > 0) return { events: left.slice(0, context.maxEvents), listings };
  const out = [...state.held.values(), ...state.lapsed.values()];
  if (state.wasReminded || out.length === 0) return { events: [], listings };
  const mail = answers(state, out);
  return { events: [{ kind: "gateReminded", atMs }], mail, listings };
}

function debtors(state: GateState): ReadonlyMap<string, readonly number[]> {
  const out = [...state.held.values(), ...state.lapsed.values()];
  const held = Map.groupBy(out, ({ execution }) => execution);
  return new Map(Array.from(held, ([execution, own]) => [execution, own.map(({ ask }) => ask)]));
}

/** What it has used nobody can know, as nobody knows of it. */
function forgotten(state: GateState, execution: string, asks: readonly number[]): Message {
  return {
    id: `gateReturn:${execution}:forgotten:${state.version}`,
    to: entityKey("gate", state.id),
    by: execution,
    trace: "",
    tenant: state.name?.tenant ?? "default",
    body: { kind: "gateReturn", execution, asks },
  };
}

/** A renewal may weigh so many events in line or under way; beyond that it waits until fewer are left. */
const MAX_RENEWED = 20_000;

/** Of a gate at which many wait, so many events for each of them: what it writes again is a part of what it has written. */
const EVENTS_PER_ENTRY = 4;

/** It says all it knows once in so many events, and what was before may go. */
function renewal(state: GateState, atMs: number, everyEvents: number): GateEvent | null {
  const weight = state.held.size + state.lapsed.size + state.line.length;
  if (weight > MAX_RENEWED || state.isQuarantined) return null;
  const due = Math.max(everyEvents, weight * EVENTS_PER_ENTRY);
  if (state.version - state.renewedVersion < due) return null;
  return { kind: "gateRenewed", atMs, state: bodyOf(state) };
}

/** Our own bug, caught before it is stored. */
function check(state: GateState, whole: boolean): void {
  const { level, ruling } = state;
  const broken = (what: string): never => {
    throw new Error(`gate ${state.id}: ${what}`);
  };
  if (!Number.isFinite(level) || (level < 0 && ruling?.kind !== "tokens")) broken(`${level} tokens are left`);
  if (isBucket(ruling) && level > ruling.burst) broken(`${level} tokens are there, ${ruling.burst} may be`);
  if (state.line.length < 0) broken(`${state.line.length} wait`);
  if (!whole || ruling === null) return;
  let waiting = 0;
  for (const { execution, ask } of state.line.inTurn(state.lastAtMs)) {
    waiting++;
    if (state.held.has(heldKey(execution, ask.ask))) broken(`ask ${ask.ask} of ${execution} waits and is granted`);
  }
  if (waiting !== state.line.length) broken(`${waiting} wait, ${state.line.length} are counted`);
}
