import { added, type Amounts } from "./amounts.ts";
import type { GateName, GateRule } from "./rule.ts";
import { GateState, type Held, heldKey, unbegunOf } from "./state.ts";
import type { WaitingLine } from "./waiting-line.ts";

/** A snapshot of another format is ignored: it is a cache, and the events tell the same. */
export const GATE_SNAPSHOT_FORMAT = 2;

/** A whole gate. It stands in events too, so what is once written in it keeps its meaning, and what is new is optional. */
export interface GateBody {
  readonly version: number;
  readonly name: GateName | null;
  readonly rule: GateRule | null;
  readonly override: GateRule | null;
  readonly times: readonly [number, number, number, number];
  readonly level: number;
  readonly isTripped: boolean;
  readonly isQuarantined: boolean;
  readonly wasReminded: boolean;
  readonly requests: readonly string[];
  readonly breaker: Pick<GateState, "results" | "trust" | "hasDoubt" | "openedAtMs">;
  /** Of a budget only. */
  readonly budget?: { readonly spent: Amounts; readonly stalled: readonly string[] };
  readonly held: readonly Held[];
  readonly superseded?: readonly string[];
  readonly lapsed?: readonly Held[];
  readonly line: ReturnType<WaitingLine["toJSON"]>;
  readonly renewedVersion?: number;
  readonly isForsaken?: boolean;
}

export function snapshot(state: GateState): string {
  return JSON.stringify(bodyOf(state));
}

export function bodyOf(state: GateState): GateBody {
  const { version, name, rule, override, level, isTripped, isQuarantined, wasReminded, requests } = state;
  return {
    version,
    name,
    rule,
    override,
    times: [state.createdAtMs, state.lastAtMs, state.levelAtMs, state.closedUntilMs],
    level,
    isTripped,
    isQuarantined,
    wasReminded,
    requests,
    breaker: {
      results: state.results,
      trust: state.trust,
      hasDoubt: state.hasDoubt,
      openedAtMs: state.openedAtMs,
    },
    ...((state.stalled.size > 0 || Object.keys(state.spent).length > 0) && {
      budget: { spent: state.spent, stalled: [...state.stalled] },
    }),
    held: [...state.held.values()],
    ...(state.superseded.size > 0 && { superseded: [...state.superseded] }),
    ...(state.lapsed.size > 0 && { lapsed: [...state.lapsed.values()] }),
    line: state.line.toJSON(),
    ...(state.isForsaken && { isForsaken: true }),
    ...(state.renewedVersion > 0 && { renewedVersion: state.renewedVersion }),
  };
}

export function restore(id: string, text: string): GateState {
  const state = new GateState(id);
  fill(state, JSON.parse(text) as GateBody);
  return state;
}

/** Makes a gate what this says, whatever it was. */
export function fill(state: GateState, body: GateBody): void {
  state.version = body.version;
  state.name = body.name;
  state.rule = body.rule;
  state.override = body.override;
  [state.createdAtMs, state.lastAtMs, state.levelAtMs, state.closedUntilMs] = body.times;
  state.level = body.level;
  state.isTripped = body.isTripped;
  state.isQuarantined = body.isQuarantined;
  state.wasReminded = body.wasReminded;
  state.requests = [...body.requests];
  Object.assign(state, body.breaker);
  state.spent = body.budget?.spent ?? {};
  state.reserved = {};
  state.unbegun = 0;
  state.renewedVersion = body.renewedVersion ?? 0;
  state.isForsaken = body.isForsaken ?? false;
  for (const part of [state.stalled, state.held, state.lapsed, state.superseded, state.line]) part.clear();
  for (const key of body.budget?.stalled ?? []) state.stalled.add(key);
  for (const held of body.held) {
    state.held.set(heldKey(held.execution, held.ask), held);
    state.unbegun += unbegunOf(state, held);
    if (state.ruling?.kind === "budget") state.reserved = added(state.reserved, held.reserved ?? {});
  }
  for (const held of body.lapsed ?? []) state.lapsed.set(heldKey(held.execution, held.ask), held);
  for (const key of body.superseded ?? []) state.superseded.add(key);
  for (const [workflow, execution, asks] of body.line) state.line.add(execution, asks, workflow);
}
