import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { GateEvent } from "../../core/gate/events.ts";
import type { GateRule } from "../../core/gate/rule.ts";
import type { BudgetSpec, LimitSpec } from "../../definition/workflow.ts";
import type { World } from "../history.ts";
import { node, TestWorld } from "./test-world.ts";

const FEW = "gate/concurrency:default:few";
const THIN = "gate/rate:default:thin";
const PURSE = "gate/budget:default:purse";

/** Two nodes at one gate, which is told of by hand. */
export class GateWorld extends TestWorld {
  readonly gate: string;
  readonly rule: GateRule;
  private gateVersion = 1;

  constructor(gate: string, rule: GateRule, limit: LimitSpec, onLimit: Partial<BudgetSpec> = {}) {
    const name = gate.split(":").at(-1)!;
    const at = rule.kind === "budget" ? { dlq: "none" as const } : { limit: name };
    const more = rule.kind === "budget" ? { budget: { ...rule.limits, on_limit: "fail" as const, ...onLimit } } : {};
    super([node("a", at), node("b", at)], { limits: { [name]: limit }, ...more });
    this.gate = gate;
    this.rule = rule;
  }

  /** Both have asked, and the gate has heard of it. */
  beginAtGate(isSent = true): this {
    this.submit().acquire();
    const estimate = this.rule.kind === "budget" ? { estimate: { tokens: 6 } } : {};
    const asks = [
      { ask: 1, node: "a", ...estimate },
      { ask: 2, node: "b", ...estimate },
    ];
    const body = { kind: "gateAcquire", asks };
    const mail = isSent ? [{ to: this.gate, from: this.entity, id: "m1", body }] : [];
    this.commit([this.accepted(), this.started(), this.asked("a", 1), this.asked("b", 2)], { mail }).submitted();
    const { rule, now: atMs, entity: execution } = this;
    const name = { kind: rule.kind, tenant: "default", name: "x" };
    return this.tell({ kind: "gateRuled", atMs, name, rule }, { kind: "asksQueued", atMs, execution, asks });
  }

  tell(...events: readonly GateEvent[]): this {
    const record = { entity: this.gate, version: this.gateVersion, events: events as unknown as ExecutionEvent[] };
    this.gateVersion += events.length;
    return this.commit([], { records: [record], wakes: [] });
  }

  /** Takes the gate away. */
  remove(): this {
    this.gateVersion = 1;
    return this.commit([], { purge: [this.gate], wakes: [] });
  }

  /** Takes the beginning of the gate's journal away. */
  cut(belowVersion: number): this {
    return this.commit([], { cut: [{ entity: this.gate, belowVersion }], wakes: [] });
  }

  grant(...asks: readonly number[]): this {
    const grants = asks.map((ask) => ({ execution: this.entity, ask }));
    return this.tell({ kind: "asksGranted", atMs: this.now, grants });
  }

  giveBack(...asks: readonly number[]): this {
    return this.tell({ kind: "asksReturned", atMs: this.now, execution: this.entity, asks });
  }

  /** Says what the calls have used. */
  settle(asks: readonly number[], tokens: number): this {
    const used = asks.map((ask) => ({ ask, used: { tokens } }));
    return this.tell({ kind: "asksReturned", atMs: this.now, execution: this.entity, asks, used });
  }

  asked(id: string, ask: number): ExecutionEvent {
    const isRate = this.rule.kind === "rate";
    const wait = this.rule.kind === "budget" ? "budget" : "concurrency";
    const how = isRate ? ({ wait: "rate_limit", until: "start" } as const) : ({ wait, until: "end" } as const);
    return { kind: "gateAsked", atMs: this.now, node: id, gate: this.gate, ask, ...how };
  }

  /** Let through, and out. */
  passed(id: string, ask: number): ExecutionEvent[] {
    return [{ kind: "gateGranted", atMs: this.now, node: id, gate: this.gate, ask }, this.dispatched(id)];
  }

  returned(ask: number): ExecutionEvent {
    return { kind: "gatesReturned", atMs: this.now, returns: [{ gate: this.gate, ask }] };
  }

  /** Only of executions does anybody keep a list. */
  override world(more: Partial<World> = {}): World {
    const world = super.world(more);
    const isOurs = ({ entity }: { readonly entity: string }): boolean => entity === this.entity;
    const { headers, folds } = world.remains;
    return { ...world, remains: { ...world.remains, headers: headers.filter(isOurs), folds: folds.filter(isOurs) } };
  }
}

export function oneAtATime(): GateWorld {
  return new GateWorld(FEW, { kind: "concurrency", limit: 1, onConflict: "queue" }, { concurrency: 1 });
}

export function oneASecond(): GateWorld {
  return new GateWorld(THIN, { kind: "rate", perSecond: 1, burst: 1 }, { rate: 1, per: "second", burst: 1 });
}

/** Ten tokens, and each call may use six. */
export function tenTokens(): GateWorld {
  return new GateWorld(PURSE, { kind: "budget", limits: { tokens: 10 }, onLimit: "fail" }, { concurrency: 9 });
}

/** The second goes when it is known that the first has used little. */
function budgetWorld(): World {
  const world = tenTokens().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .settle([1], 4)
    .grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .settle([2], 5)
    .world();
}

/** One after the other. */
export function placesWorld(isSent = true): World {
  const world = oneAtATime().beginAtGate(isSent).grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world
    .commit([world.completed("a", 1), world.returned(1)])
    .giveBack(1)
    .grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
}

/** One, and a second later the other. */
export function rateWorld(apartMs = 1_000): World {
  const world = oneASecond().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world.commit([world.completed("a", 1), world.returned(1)]).giveBack(1);
  world.pass(apartMs).grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
}

/** An owner that is behind the clock, and perhaps another that is not: between the calls is less than a second. */
export function behindWorld(isSucceeded = true): World {
  const behindMs = 200;
  const world = oneASecond().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  world.commit([world.completed("a", 1), world.returned(1)]).giveBack(1);
  const { length } = world.history;
  if (isSucceeded) world.pass(500).acquire("engine-2").pass(500);
  else world.pass(1_000);
  world.grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  const whole = world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
  const history = whole.history.map((entry, i) => (i < length ? { ...entry, at: entry.at + behindMs } : entry));
  return { ...whole, history };
}

/**
 * Nobody begins the first for so long that it lapses; it begins while that is decided and not stored yet, or had just begun, and
 * less than a second before the other.
 */
export function lapsedWorld(isDecided = true): World {
  const world = oneASecond().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).pass(10_000);
  const decidedMs = world.now + (isDecided ? 0 : 240);
  world.pass(200).work("a", 1).pass(50);
  world.tell({ kind: "asksLapsed", atMs: decidedMs, asks: [{ execution: world.entity, ask: 1 }] });
  world.pass(800).grant(2);
  world.commit([world.completed("a", 1), ...world.passed("b", 2)]).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(1), world.returned(2)])
    .giveBack(1, 2)
    .world();
}

/** The first comes back with word that there is no more for three seconds, and the other waits for so long. */
export function closedWorld({ isTold = true, isMinded = true } = {}): World {
  const closeForMs = 3_000;
  const world = oneASecond().beginAtGate().grant(1);
  world.commit(world.passed("a", 1)).work("a", 1);
  const body = { kind: "gateReturn", asks: [1], ...(isTold && { closeForMs }) };
  const mail = [{ to: world.gate, from: world.entity, id: "m2", body }];
  world.commit([{ ...world.completed("a", 1), closeForMs } as ExecutionEvent, world.returned(1)], { mail }).giveBack(1);
  if (isMinded) world.tell({ kind: "gateClosed", atMs: world.now, untilMs: world.now + closeForMs });
  world.pass(closeForMs).grant(2);
  world.commit(world.passed("b", 2)).work("b", 1);
  return world
    .commit([world.completed("b", 1), world.ended(), world.returned(2)])
    .giveBack(2)
    .world();
}

export const GATE_WORLDS: Readonly<Record<string, () => World>> = {
  placesWorld,
  rateWorld,
  behindWorld,
  lapsedWorld,
  budgetWorld,
  closedWorld,
};
