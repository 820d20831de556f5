import { describe, expect, test } from "vitest";
import { gateMachine } from "./machine.ts";
import { gateEntity, type GateRule } from "./rule.ts";
import { GateTrial } from "./test-gate.ts";

const rate = (perSecond: number, burst: number): GateRule => ({ kind: "rate", perSecond, burst });
const places = (limit: number, onConflict: "queue" | "reject" = "queue"): GateRule => ({
  kind: "concurrency",
  limit,
  onConflict,
});
const tokens = (perSecond: number, burst: number): GateRule => ({ kind: "tokens", perSecond, burst });
const breaker: GateRule = { kind: "breaker", failureRate: 0.5, window: 4, minCalls: 2, openMs: 1000 };

describe("a rate", () => {
  test("lets a burst through at once, and then what comes back", () => {
    const gate = new GateTrial(rate(10, 3)).ask("a", 6).begin();
    expect(gate.granted).toEqual(["a1", "a2", "a3"]);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(gate.nowMs + 100);
    expect(gate.at(99).granted.length).toBe(3);
    expect(gate.at(100).granted.length).toBe(4);
    expect(gate.begin().at(300).granted.length).toBe(6);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
  });

  test("saves no more than the burst up", () => {
    const gate = new GateTrial(rate(10, 2)).ask("a", 2).begin().at(60_000).ask("a", 5);
    expect(gate.granted.length).toBe(4);
  });

  test("takes what a call costs, and lets nobody past who waits for more", () => {
    const gate = new GateTrial(rate(1, 4)).ask("a", 1, 3).ask("b", 1, 3).ask("c", 1, 1).begin();
    expect(gate.granted).toEqual(["a1"]);
    expect(gate.at(2000).granted).toEqual(["a1", "b2"]);
    expect(gate.begin().at(3000).granted).toEqual(["a1", "b2", "c3"]);
  });

  test("takes a cost beyond the burst for the whole burst", () => {
    const gate = new GateTrial(rate(1, 2)).ask("a", 2, 100).begin();
    expect(gate.granted).toEqual(["a1"]);
    expect(gate.at(2000).granted).toEqual(["a1", "a2"]);
  });

  test("is closed while whoever is behind it wants to be left alone", () => {
    const gate = new GateTrial(rate(10, 1)).ask("a").returns("a", [1], { closeForMs: 5000 }).ask("a");
    expect(gate.at(4999).granted).toEqual(["a1"]);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(1_005_000);
    expect(gate.at(5000).granted).toEqual(["a1", "a2"]);
  });

  test("lets nobody through beside those who may begin at any moment: the calls are limited, not the grants", () => {
    const gate = new GateTrial(rate(10, 3)).ask("a", 9);
    expect(gate.at(9_000).granted).toEqual(["a1", "a2", "a3"]);
    // From the moment on that one has begun, its place comes back; not before.
    gate.returns("a", [2]);
    expect(gate.granted.length).toBe(3);
    expect(gate.at(9_099).granted.length).toBe(3);
    expect(gate.at(9_100).granted.length).toBe(4);
    expect(gate.at(9_900).granted.length).toBe(4);
    expect(gate.begin().at(10_000).granted.length).toBe(5);
  });

  test("counts at least a tenth of a second's worth as under way: it takes that long to hear of a beginning", () => {
    const gate = new GateTrial(rate(50, 1)).ask("a", 100);
    for (let ms = 20; ms < 1_000; ms += 20) gate.at(ms);
    expect(gate.granted.length).toBe(6);
    const after = new GateTrial(rate(50, 1)).ask("a").begin().at(1_000).ask("a", 3);
    expect(after.granted.length).toBe(2);
  });

  test("waits for its own, however long: they may begin at any moment", () => {
    const gate = new GateTrial(rate(10, 2)).ask("a", 2).ask("b", 1);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
    expect(gate.at(3_600_000).granted).toEqual(["a1", "a2"]);
    expect(gate.begin().at(3_600_100).granted).toEqual(["a1", "a2", "b3"]);
  });

  test("does not keep other workflows waiting for those whose tasks nobody begins", () => {
    const gate = new GateTrial(rate(10, 2));
    for (let i = 1; i <= 5; i++) gate.askAs("ghosts", `g${i}-`);
    gate.askAs("real", "r").askAs("real", "r").askAs("real", "r");
    expect(gate.granted).toEqual(["g1-1", "g2-2"]);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(1_010_000);
    expect(gate.at(9_999).held).toEqual(["g1-1", "g2-2"]);
    gate.at(10_000).at(10_100);
    for (const [ask, ms] of [
      [6, 10_200],
      [7, 10_300],
      [8, 10_400],
    ] as const) {
      gate.returns("r", [ask]).at(ms);
    }
    expect(gate.granted).toEqual(["g1-1", "g2-2", "r6", "r7", "r8"]);
    // They get no more while they hold as much as there may be, also if nobody else waits: else all would begin one day.
    expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
    expect(gate.at(3_600_000).granted.length).toBe(5);
    // Once one of them has begun, late as it is, the next of theirs goes.
    expect(gate.returns("g1-", [1]).granted.slice(5)).toEqual(["g3-3"]);
    expect(gate.returns("g2-", [2]).returns("g3-", [3]).at(3_601_000).granted.slice(6)).toEqual(["g4-4", "g5-5"]);
    expect([gate.begin().state.lapsed.size, gate.held]).toEqual([0, []]);
  });

  test("is open to those who need more than there is room for while others have not begun, once they have", () => {
    const gate = new GateTrial(rate(10, 4)).ask("a").ask("b", 1, 4);
    expect(gate.at(5_000).granted).toEqual(["a1"]);
    expect(gate.begin().granted).toEqual(["a1"]);
    expect(gate.at(5_100).granted).toEqual(["a1", "b2"]);
  });

  test("keeps what has come together when its rule changes, as far as the new one holds it", () => {
    const gate = new GateTrial(rate(1, 10)).ask("a", 2).begin();
    gate.acquire(
      "b",
      [3, 4, 5, 6].map((ask) => ({ ask, node: "n" })),
      rate(1, 3),
    );
    expect(gate.granted).toEqual(["a1", "a2", "b3", "b4", "b5"]);
  });
});

describe("LLM tokens", () => {
  /** Asks of one execution, each with its estimate. */
  const asks = (gate: GateTrial, ...estimates: number[]): GateTrial =>
    gate.acquire(
      "a",
      estimates.map((estimate, i) => ({ ask: i + 1, node: "n", estimate: { tokens: estimate } })),
    );

  test("are reserved by an estimate", () => {
    const gate = asks(new GateTrial(tokens(10, 100)), 60, 60);
    expect(gate.granted).toEqual(["a1"]);
    expect(gate.at(1_999).granted).toEqual(["a1"]);
    expect(gate.at(2_000).granted).toEqual(["a1", "a2"]);
  });

  test("are put back as far as they were not used", () => {
    const gate = asks(new GateTrial(tokens(10, 100)), 60, 60);
    expect(gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 45 } }] }).granted).toEqual(["a1"]);
    expect(gate.at(500).granted).toEqual(["a1", "a2"]);
  });

  test("are owed if more were used", () => {
    const gate = asks(new GateTrial(tokens(10, 100)), 60, 10, 1);
    expect(gate.granted).toEqual(["a1", "a2", "a3"]);
    gate.returns("a", [1], { used: [{ ask: 1, used: { tokens: 160 } }] });
    expect(gate.state.level).toBe(-71);
    gate.acquire("b", [{ ask: 9, node: "n", estimate: { tokens: 9 } }]);
    expect(gate.at(7_999).granted.length).toBe(3);
    expect(gate.at(8_000).granted.at(-1)).toBe("b9");
  });

  test("are put back whole if the task was not out, and are gone if nobody says what became of it", () => {
    const out = asks(new GateTrial(tokens(10, 100)), 60, 60).returns("a", [1]);
    expect(out.granted).toEqual(["a1", "a2"]);
    const lost = asks(new GateTrial(tokens(10, 100)), 60, 60).returns("a", [1], { used: [{ ask: 1, used: {} }] });
    expect([lost.granted, lost.state.level]).toEqual([["a1"], 40]);
  });

  test("a bucket never holds more than its burst, whatever comes back", () => {
    const gate = asks(new GateTrial(tokens(10, 100)), 60)
      .at(60_000)
      .returns("a", [1]);
    expect(gate.state.level).toBe(100);
    expect(asks(new GateTrial(tokens(10, 100)), 1_000).granted).toEqual(["a1"]);
  });
});

describe("places", () => {
  test("are given to as many as there are, and again when they are given back", () => {
    const gate = new GateTrial(places(2)).ask("a", 3);
    expect(gate.granted).toEqual(["a1", "a2"]);
    expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
    expect(gate.returns("a", [1]).granted).toEqual(["a1", "a2", "a3"]);
    expect(gate.held).toEqual(["a2", "a3"]);
  });

  test("are free when somebody gives up who waited", () => {
    const gate = new GateTrial(places(1)).ask("a").ask("b").ask("c").returns("b", [2]).returns("a", [1]);
    expect(gate.granted).toEqual(["a1", "c3"]);
  });

  test("mean nothing to a return of what is not known, and are asked for once", () => {
    const gate = new GateTrial(places(1)).ask("a").returns("a", [7]).returns("b", [1]);
    gate.acquire("a", [{ ask: 1, node: "n" }]);
    expect(gate.held).toEqual(["a1"]);
    expect(gate.state.line.length).toBe(0);
    const before = gate.events.length;
    gate.returns("a", [1]).returns("a", [1]);
    expect(gate.events.length).toBe(before + 1);
  });

  test("are refused to whom does not want to wait", () => {
    const gate = new GateTrial(places(1, "reject")).ask("a", 2);
    expect(gate.granted).toEqual(["a1"]);
    expect(gate.mail.map(({ to, body }) => [to, body])).toEqual([
      ["a", { kind: "gateAnswered", gate: "gate/g", refused: [{ ask: 2, node: "n" }] }],
      ["a", { kind: "gateAnswered", gate: "gate/g", granted: [{ ask: 1, node: "n" }] }],
    ]);
    expect(gate.returns("a", [1]).ask("a").granted).toEqual(["a1", "a3"]);
  });

  test("are more or fewer as somebody sets them", () => {
    const gate = new GateTrial(places(1)).ask("a", 4);
    const command = { kind: "gateCommand", action: "override" } as const;
    gate.send({ ...command, request: "r1", rule: places(3) });
    expect(gate.granted.length).toBe(3);
    gate.send({ ...command, request: "r2", rule: null }).returns("a", [1]);
    expect(gate.granted.length).toBe(3);
    expect(gate.returns("a", [2, 3]).granted.length).toBe(4);
  });
});

test("executions take turns, whoever brings a flood", () => {
  const gate = new GateTrial(places(1)).ask("a", 5).ask("b", 2).ask("c");
  for (let turn = 0; turn < 8; turn++) {
    const [held] = gate.state.held.values();
    gate.returns(held!.execution, [held!.ask]);
  }
  expect(gate.granted).toEqual(["a1", "a2", "b6", "c8", "a3", "b7", "a4", "a5"]);
});

test("somebody can close it, and open it again; the same request twice is one", () => {
  const gate = new GateTrial(rate(1, 1));
  gate.ask("x").begin().send({ kind: "gateCommand", action: "trip", request: "r1" }).ask("a");
  expect(gate.at(60_000).granted).toEqual(["x1"]);
  expect(gateMachine.nextWakeMs(gate.state)).toBe(null);
  gate.send({ kind: "gateCommand", action: "reset", request: "r2" });
  expect(gate.granted).toEqual(["x1", "a2"]);
  const before = gate.events.length;
  gate.send({ kind: "gateCommand", action: "trip", request: "r1" });
  expect(gate.last.events).toEqual([]);
  expect(gate.events.length).toBe(before);
});

describe("a breaker", () => {
  const failing = (count: number): GateTrial => {
    const gate = new GateTrial(breaker).ask("a", count);
    return gate.returns(
      "a",
      Array.from({ length: count }, (_, i) => i + 1),
      {
        bad: Array.from({ length: count }, (_, i) => i + 1),
      },
    );
  };

  test("lets everything through while all is well, and concludes nothing from little", () => {
    const gate = new GateTrial(breaker).ask("a", 50);
    expect(gate.granted.length).toBe(50);
    expect(failing(1).events.some(({ kind }) => kind === "breakerOpened")).toBe(false);
  });

  test("opens at its failure rate, of the last calls only", () => {
    const gate = new GateTrial(breaker).ask("a", 8);
    gate.returns("a", [1, 2, 3, 4, 5], { good: [1, 2, 3, 4], bad: [5] });
    expect(gate.state.trust).toBe(null);
    gate.returns("a", [6], { bad: [6] });
    expect(gate.events.at(-1)).toMatchObject({ kind: "breakerOpened", untilMs: gate.nowMs + 1000 });
  });

  test("knows nothing of calls that ended without an answer", () => {
    const gate = new GateTrial(breaker).ask("a", 8).returns("a", [1, 2, 3, 4, 5, 6, 7, 8]);
    expect(gate.state.trust).toBe(null);
  });

  test("lets one through when its time is over, then twice as many for each that goes well, then all", () => {
    const gate = failing(4).ask("b", 100);
    expect(gate.at(999).granted.length).toBe(4);
    expect(gate.at(1000).held).toEqual(["b5"]);
    gate.returns("b", [5], { good: [5] });
    expect(gate.held).toEqual(["b6", "b7"]);
    gate.returns("b", [6, 7], { good: [6, 7] });
    expect(gate.held.length).toBe(8);
    gate.returns("b", [8, 9], { good: [8, 9] });
    expect(gate.state.trust).toBe(null);
    expect(gate.state.line.length).toBe(0);
  });

  test("opens again when the one that tries fails, and does not hear of those that went before", () => {
    const gate = new GateTrial(breaker)
      .ask("a", 3)
      .returns("a", [1, 2], { bad: [1, 2] })
      .ask("b", 2);
    gate.at(1000);
    expect(gate.held).toEqual(["a3", "b4"]);
    gate.returns("a", [3], { bad: [3] });
    expect(gate.events.filter(({ kind }) => kind === "breakerOpened").length).toBe(1);
    gate.returns("b", [4], { bad: [4] });
    expect(gate.events.filter(({ kind }) => kind === "breakerOpened").length).toBe(2);
    expect(gate.at(1999).held).toEqual([]);
    expect(gate.at(2000).held).toEqual(["b5"]);
  });

  test("is reset by a person", () => {
    const gate = failing(2).ask("b", 3).send({ kind: "gateCommand", action: "reset", request: "r" });
    expect(gate.held).toEqual(["b3", "b4", "b5"]);
  });
});

test("who holds something is told again after the store was lost, once", () => {
  const gate = new GateTrial(places(2)).ask("a").ask("b");
  const again = gateMachine.recovered!(gate.state, gate.context);
  expect(again.mail?.map(({ to }) => to)).toEqual(["a", "b"]);
  expect(again.listings?.length).toBe(1);
  gate.take(again);
  expect(gateMachine.recovered!(gate.state, gate.context).events).toEqual([]);
});

test("who waits asks anew after the store was lost: nobody is left in line, and who holds something stays", () => {
  const gate = new GateTrial(places(1)).ask("a").ask("b", 2).ask("c");
  gate.maxEvents = 1;
  const left: unknown[] = [];
  for (;;) {
    const again = gateMachine.recovered!(gate.state, gate.context);
    if (again.events.length === 0) break;
    left.push(...again.events);
    gate.take(again);
  }
  expect(left).toMatchObject([
    { kind: "asksReturned", execution: "b", asks: [2, 3] },
    { kind: "asksReturned", execution: "c", asks: [4] },
    { kind: "gateReminded" },
  ]);
  expect(gate.settle().held).toEqual(["a1"]);
  expect([...gateMachine.debtors!(gate.state)]).toEqual([["a", [1]]]);
  // By the same number as one who has forgotten, for something else.
  expect(gate.acquire("b", [{ ask: 2, node: "other" }]).returns("a", [1]).held).toEqual(["b2"]);
});

test("lets through in slices, so that no decision grows with the line", () => {
  const gate = new GateTrial(rate(1, 1000));
  gate.maxEvents = 10;
  gate.ask("a", 95);
  const sizes = gate.events.flatMap((event) => (event.kind === "asksGranted" ? [event.grants.length] : []));
  expect(sizes).toEqual([10, 10, 10, 10, 10, 10, 10, 10, 10, 5]);
});

test.each([
  [{ kind: "rate", tenant: "default", name: "openai" }, "gate/rate:default:openai"],
  [{ kind: "concurrency", tenant: "default", name: "w", key: "k" }, "gate/concurrency:default:w:k"],
] as const)("the name of %j is %s", (name, entity) => {
  expect(gateEntity(name)).toBe(entity);
});

test("no two names share a gate, whatever is in them", () => {
  const names = [
    { name: "a", key: "b" },
    { name: "a:b" },
    { name: "a b" },
    { name: "a", key: "" },
    { name: "a" },
    { name: "ü".repeat(300) },
  ];
  const entities = names.map((name) => gateEntity({ kind: "concurrency", tenant: "default", ...name }));
  expect(new Set(entities).size).toBe(names.length);
  for (const entity of entities) expect(entity).toMatch(/^gate\/concurrency:[\w.:#@-]{1,200}$/);
});

describe("places that go to the newest", () => {
  const newest = { kind: "concurrency", limit: 2, onConflict: "cancel_old" } as const;
  const cancelled = (trial: GateTrial): string[] =>
    trial.mail.flatMap(({ to, body }) => (body.kind === "cancel" ? [`${to}${body.entry!.ask}`] : []));

  test("call off the oldest, once, and are had when that has ended", () => {
    const trial = new GateTrial(newest).ask("a").ask("b").ask("c");
    expect([trial.held, cancelled(trial)]).toEqual([["a1", "b2"], ["a1"]]);
    trial.at(10).returns("a", [1]);
    expect([trial.held, cancelled(trial)]).toEqual([["b2", "c3"], ["a1"]]);
  });

  test("call off also those who wait, if still newer ones come", () => {
    const trial = new GateTrial({ ...newest, limit: 1 }).ask("a").ask("b").ask("c");
    expect(cancelled(trial)).toEqual(["a1", "b2"]);
    trial.returns("b", [2]).returns("a", [1]);
    expect(trial.held).toEqual(["c3"]);
  });

  test("wait for nobody while there is room", () => {
    expect(cancelled(new GateTrial(newest).ask("a").ask("b"))).toEqual([]);
  });
});

describe("who comes next", () => {
  const one = { kind: "concurrency", limit: 1, onConflict: "queue" } as const;

  /** Who is let through, one after the other, each when the one before has given its place back. */
  function order(trial: GateTrial, stepMs = 0): string[] {
    for (let ms = stepMs; trial.state.held.size > 0; ms += stepMs) {
      const [held] = trial.state.held.values();
      trial.at(ms).returns(held!.execution, [held!.ask]);
    }
    return trial.granted.map((each) => each.replace(/\d+$/, ""));
  }

  test("a workflow with a flood of executions waits for its turn like any other", () => {
    const trial = new GateTrial(one);
    for (let i = 0; i < 100; i++) trial.askAs("flood", `f${i}-`);
    trial.askAs("small", "s1-").askAs("small", "s2-").askAs("other", "o-");
    expect(order(trial).slice(0, 6)).toEqual(["f0-", "f1-", "s1-", "o-", "f2-", "s2-"]);
  });

  test("of higher priority they go first, and one after the other where it is the same", () => {
    const trial = new GateTrial(one).askAs("w", "first-");
    trial.askAs("low", "l-").askAs("a", "a1-", 5).askAs("a", "a2-", 5).askAs("b", "b-", 5);
    expect(order(trial)).toEqual(["first-", "a1-", "b-", "a2-", "l-"]);
  });

  test("who has waited long enough is like those of the highest priority", () => {
    const trial = new GateTrial(one).askAs("w", "first-").askAs("low", "l-");
    for (let i = 0; i < 50; i++) trial.askAs("high", `h${i}-`, 3);
    // Three points of priority are made up for in 30 s; then it is its turn.
    expect(order(trial, 10_000).indexOf("l-")).toBe(3);
  });

  test("a flood of the highest priority that never ends starves nobody", () => {
    const trial = new GateTrial(one).askAs("w", "first-").askAs("low", "l-", -10);
    let steps = 0;
    while (!trial.granted.some((each) => each.startsWith("l-")) && steps < 100) {
      trial.askAs("high", `h${++steps}-`, 10).askAs("high", `i${steps}-`, 10);
      const [held] = trial.state.held.values();
      trial.at(steps * 10_000).returns(held!.execution, [held!.ask]);
    }
    expect(steps).toBe(20);
  });
});
