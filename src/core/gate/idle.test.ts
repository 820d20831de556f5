import { describe, expect, test } from "vitest";
import { gateMachine } from "./machine.ts";
import type { GateRule } from "./rule.ts";
import { GateTrial } from "./test-gate.ts";

const since = (gate: GateTrial): number | null => {
  const idleMs = gateMachine.idleSinceMs!(gate.state);
  return idleMs === null || idleMs === 0 ? idleMs : idleMs - 1_000_000;
};

const PLACES: GateRule = { kind: "concurrency", limit: 1, onConflict: "queue" };
const RATE: GateRule = { kind: "rate", perSecond: 2, burst: 4 };
const BUDGET: GateRule = { kind: "budget", limits: { calls: 5 }, onLimit: "fail" };
const BREAKER: GateRule = { kind: "breaker", failureRate: 0.5, window: 4, minCalls: 2, openMs: 1_000 };

describe("a gate is of no use", () => {
  test("once nobody holds anything and nobody waits", () => {
    const gate = new GateTrial(PLACES).ask("a").ask("b");
    expect(since(gate)).toBe(null);
    gate.at(100).returns("a", [1]);
    expect(since(gate)).toBe(null);
    gate.at(200).returns("b", [2]);
    expect(since(gate)).toBe(200);
  });

  test("not while it is as a person has set it", () => {
    const gate = new GateTrial(PLACES).ask("a").returns("a", [1]);
    gate.send({ kind: "gateCommand", action: "trip", request: "r1" });
    expect(since(gate)).toBe(null);
    gate.send({ kind: "gateCommand", action: "reset", request: "r2" });
    expect(since(gate)).toBe(0);
    gate.send({ kind: "gateCommand", action: "override", request: "r3", rule: { ...PLACES, limit: 9 } });
    expect(since(gate)).toBe(null);
    gate.send({ kind: "gateCommand", action: "override", request: "r4", rule: null });
    expect(since(gate)).toBe(0);
  });

  test("once its bucket is full, and its time to be closed is over", () => {
    const gate = new GateTrial(RATE).ask("a", 3).returns("a", [1, 2, 3]);
    expect(since(gate)).toBe(1_500);
    gate.ask("a", 1).returns("a", [4], { closeForMs: 9_000 });
    expect(since(gate)).toBe(9_000);
  });

  test("once a breaker that was open lets all through again", () => {
    const gate = new GateTrial(BREAKER).ask("a", 2).returns("a", [1, 2], { good: [1], bad: [2] });
    expect(since(gate)).toBe(null);
    gate.send({ kind: "gateCommand", action: "reset", request: "r" });
    expect(since(gate)).toBe(0);
  });
});

describe("a budget", () => {
  const spent = (): GateTrial => {
    const gate = new GateTrial(BUDGET).acquire("a", [{ ask: 1, node: "n", estimate: { calls: 1 } }]);
    return gate.at(100).returns("a", [1], { used: [{ ask: 1, used: {} }] });
  };

  test("is of use for as long as there is an execution that may spend more, and then of none", () => {
    const gate = spent();
    expect(gate.state.spent).toEqual({ calls: 1 });
    expect(since(gate)).toBe(null);
    gate.send({ kind: "gateForsaken", execution: "execution/a" });
    expect(since(gate)).toBe(0);
    const { length } = gate.events;
    gate.send({ kind: "gateForsaken", execution: "execution/a" });
    expect(gate.events.length).toBe(length);
  });

  test("that was forsaken begins anew for whoever asks under the same name", () => {
    const gate = spent().send({ kind: "gateForsaken", execution: "execution/a" });
    gate.acquire("b", [{ ask: 1, node: "n", estimate: { calls: 1 } }]);
    expect(since(gate)).toBe(null);
    expect(gate.state.spent).toEqual({});
    gate.returns("b", [1], { used: [{ ask: 1, used: {} }] });
    expect(gate.state.spent).toEqual({ calls: 1 });
    expect(since(gate)).toBe(null);
  });
});

test("other gates have nobody who could forsake them", () => {
  const gate = new GateTrial(PLACES).ask("a");
  const { length } = gate.events;
  expect(gate.send({ kind: "gateForsaken", execution: "execution/a" }).events.length).toBe(length);
});
