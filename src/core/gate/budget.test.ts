import { describe, expect, test } from "vitest";
import type { Amounts } from "./amounts.ts";
import { gateMachine } from "./machine.ts";
import type { BudgetRule } from "./rule.ts";
import { GateTrial } from "./test-gate.ts";

const budget = (limits: Amounts, onLimit: BudgetRule["onLimit"] = "fail"): BudgetRule => ({
  kind: "budget",
  limits,
  onLimit,
});

/** Asks of one execution, numbered from `first`, each with its estimate. */
function ask(gate: GateTrial, first: number, ...estimates: Amounts[]): GateTrial {
  return gate.acquire(
    "a",
    estimates.map((estimate, i) => ({ ask: first + i, node: "n", estimate })),
  );
}

const told = (gate: GateTrial, what: "granted" | "refused" | "stalled"): number[] =>
  gate.mail.flatMap(({ body }) => (body.kind === "gateAnswered" ? (body[what] ?? []).map((one) => one.ask) : []));

describe("a budget", () => {
  test("lets through as long as there is enough beside what others may use", () => {
    const gate = ask(new GateTrial(budget({ tokens: 100 })), 1, { tokens: 60 }, { tokens: 40 }, { tokens: 1 });
    expect(gate.granted).toEqual(["a1", "a2"]);
    expect([told(gate, "refused"), gate.state.line.length]).toEqual([[], 1]);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
  });

  test("is settled by what was used, and lets through who fits then", () => {
    const gate = ask(new GateTrial(budget({ tokens: 100 })), 1, { tokens: 60 }, { tokens: 60 });
    gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 40 } }] });
    expect(gate.granted).toEqual(["a1", "a2"]);
    expect([gate.state.spent, gate.state.reserved]).toEqual([{ tokens: 40 }, { tokens: 60 }]);
  });

  test("refuses who asks for more than is left, and only then", () => {
    const gate = ask(new GateTrial(budget({ tokens: 100 })), 1, { tokens: 60 }, { tokens: 60 });
    gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 41 } }] });
    expect([gate.granted, told(gate, "refused")]).toEqual([["a1"], [2]]);
    ask(gate, 3, { tokens: 59 });
    expect(gate.granted).toEqual(["a1", "a3"]);
    expect(gate.mail.at(-2)).toMatchObject({
      body: { refused: [{ ask: 2 }], budget: { limits: { tokens: 100 }, spent: { tokens: 41 } } },
    });
  });

  test("counts a lost call as its estimate, and what was never out as nothing", () => {
    const gate = ask(new GateTrial(budget({ calls: 2 })), 1, { calls: 1 }, { calls: 1 }, { calls: 1 });
    gate.returns("a", [1]);
    expect(gate.granted).toEqual(["a1", "a2", "a3"]);
    gate.returns("a", [2, 3], { used: [2, 3].map((each) => ({ ask: each, used: {} })) });
    expect([gate.state.spent, gate.state.reserved]).toEqual([{ calls: 2 }, {}]);
    expect(told(ask(gate, 4, { calls: 1 }), "refused")).toEqual([4]);
  });

  test("counts only what was reserved for: the rest is not its business", () => {
    const gate = ask(new GateTrial(budget({ tokens: 100, usd: 1 })), 1, { usd: 0.5 });
    gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 5_000, usd: 0.25 } }] });
    expect(gate.state.spent).toEqual({ usd: 0.25 });
  });

  test("never lets more through at once than is left, in any unit", () => {
    const gate = new GateTrial(budget({ usd: 1, calls: 100 }));
    for (let i = 0; i < 20; i++) ask(gate, i + 1, { usd: 0.1, calls: 1 });
    expect(gate.granted.length).toBe(10);
  });
});

describe("a budget that waits for a person", () => {
  const used = (): GateTrial => {
    const gate = ask(new GateTrial(budget({ tokens: 100 }, "pause")), 1, { tokens: 100 });
    return gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 90 } }] });
  };
  const raise = (gate: GateTrial, request: string, tokens: number): GateTrial =>
    gate.send({ kind: "gateCommand", action: "override", request, rule: budget({ tokens }, "pause") });

  test("tells who waits, once, and lets the smaller go", () => {
    const gate = ask(used(), 2, { tokens: 20 }, { tokens: 5 });
    expect([told(gate, "stalled"), gate.granted]).toEqual([[2], ["a1", "a3"]]);
    gate.at(1000).returns("a", [3]);
    expect(told(gate, "stalled")).toEqual([2]);
  });

  test("goes on when it is raised, and tells anew if that was not enough", () => {
    const gate = ask(used(), 2, { tokens: 20 });
    expect(told(raise(gate, "r1", 105), "stalled")).toEqual([2, 2]);
    expect(raise(gate, "r2", 110).granted).toEqual(["a1", "a2"]);
    expect(gate.state.stalled.size).toBe(0);
  });

  test("keeps what several allow at once: the most of each, and nobody undoes what another has said", () => {
    const gate = ask(used(), 2, { tokens: 20 });
    const allow = (request: string, amounts: Amounts, atLeast?: true): unknown => {
      const how = atLeast === undefined ? {} : { atLeast };
      gate.send({ kind: "gateCommand", action: "override", request, amounts, ...how });
      return gate.state.ruling;
    };
    expect(allow("r1", { tokens: 50 }, true)).toEqual(budget({ tokens: 100 }, "pause"));
    expect(gate.state.override).toBe(null);
    expect(allow("r2", { tokens: 200, usd: 5 })).toEqual(budget({ tokens: 200, usd: 5 }, "pause"));
    expect(allow("r3", { tokens: 150 }, true)).toEqual(budget({ tokens: 200, usd: 5 }, "pause"));
    expect(allow("r4", { usd: 7 }, true)).toEqual(budget({ tokens: 200, usd: 7 }, "pause"));
    expect(allow("r5", { tokens: 120 })).toEqual(budget({ tokens: 120, usd: 7 }, "pause"));
    expect(gate.granted).toEqual(["a1", "a2"]);
  });

  test("that has no limit of a unit is not given one by a raise", () => {
    const gate = used();
    gate.send({ kind: "gateCommand", action: "override", request: "r1", amounts: { usd: 5 }, atLeast: true });
    expect(gate.state.ruling).toEqual(budget({ tokens: 100 }, "pause"));
  });

  test("begins anew when it is reset", () => {
    const gate = ask(used(), 2, { tokens: 20 }).send({ kind: "gateCommand", action: "reset", request: "r" });
    expect([gate.granted, gate.state.spent]).toEqual([["a1", "a2"], {}]);
  });

  test("forgets who does not wait any more", () => {
    const gate = ask(used(), 2, { tokens: 20 }).returns("a", [2]);
    expect(raise(gate, "r1", 500).granted).toEqual(["a1"]);
  });

  test("keeps what it has let through since somebody wanted to leave the line", () => {
    const gate = raise(ask(used(), 2, { tokens: 20 }, { tokens: 50 }), "r1", 110);
    expect([gate.held, gate.state.line.length]).toEqual([["a2"], 1]);
    gate.returns("a", [2, 3], { ifWaiting: [2, 3] });
    expect([gate.held, gate.state.line.length, gate.state.stalled.size]).toEqual([["a2"], 0, 0]);
    gate.returns("a", [2], { used: [{ ask: 2, used: { tokens: 15 } }] });
    expect([gate.held, gate.state.spent]).toEqual([[], { tokens: 105 }]);
  });

  test("lets nobody through while it is tripped", () => {
    const gate = used().send({ kind: "gateCommand", action: "trip", request: "r" });
    expect(ask(gate, 2, { tokens: 1 }).granted).toEqual(["a1"]);
    expect(gate.send({ kind: "gateCommand", action: "reset", request: "r2" }).granted).toEqual(["a1", "a2"]);
  });
});
