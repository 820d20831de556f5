import { describe, expect, test } from "vitest";
import type { BudgetSpec, WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { gateEntity } from "../gate/rule.ts";
import type { GateAcquire } from "../message.ts";
import { awaitedGate } from "./asks.ts";
import { executionMachine } from "./machine.ts";
import { mapNode, node, Trial, workflow } from "./test-execution.ts";

const TOKENS: BudgetSpec = { tokens: 50, on_limit: "fail" };
const PAUSE: BudgetSpec = { tokens: 50, on_limit: "pause" };

function spending(more: Partial<WorkflowNode>, budget?: BudgetSpec): Trial {
  return new Trial(workflow([node("a", [], more), node("b", ["a"])], budget === undefined ? {} : { budget }));
}

const acquired = (trial: Trial): GateAcquire[] =>
  trial.mail.flatMap(({ body }) => (body.kind === "gateAcquire" ? [body] : []));
const reviews = (trial: Trial): (string | null)[] =>
  trial.listings.filter(({ list }) => list === "review").map(({ text }) => text && JSON.parse(text).title);

describe("a node with a budget", () => {
  test("asks for what it may use, and goes out once it is granted", () => {
    const estimate = { tokens: 7, usd: 0.5, seconds: 3 };
    const trial = spending({ budget: { ...TOKENS, estimate } }).begin();
    expect(acquired(trial)).toMatchObject([
      {
        name: { kind: "budget", name: "test/a", key: trial.id },
        rule: { kind: "budget", limits: { tokens: 50 }, onLimit: "fail" },
        asks: [{ estimate: { ...estimate, calls: 1 } }],
      },
    ]);
    expect([trial.out, trial.shown["a"]]).toEqual([[], "WAITING budget"]);
    expect(trial.passes("a").out).toEqual(["a"]);
  });

  test("reckons with the price of its model", () => {
    const prices = { dear: { input: 0, output: 30_000 }, "*": { input: 0, output: 1_000 } };
    const usd = (config: Record<string, string | number>) => {
      const budget: BudgetSpec = { usd: 9, on_limit: "fail", prices };
      return acquired(spending({ budget, config }).begin())[0]!.asks[0]!.estimate!.usd;
    };
    expect([usd({ model: "dear", max_tokens: 10 }), usd({ model: "other", max_tokens: 10 })]).toEqual([0.3, 0.01]);
  });

  test("fails when too little is left", () => {
    const trial = spending({ budget: { ...TOKENS, calls: 1, estimate: { tokens: 80 } } })
      .begin()
      .refuses("a");
    const message = expect.stringMatching(
      /^What is left of the budget "test\/a" .* its definition allows 50 tokens and 1 call in all, the task may use 80 tokens and 1 call\. .*budgets raise/,
    );
    const details = { budget: "test/a", limits: { tokens: 50, calls: 1 }, needs: { tokens: 80, calls: 1 } };
    expect(trial.view("a")).toMatchObject({
      status: "FAILED",
      error: { code: "BUDGET_EXCEEDED", retryable: false, message, details },
    });
  });

  test("says then what was used, and what the budget allows by now", () => {
    const budget = { limits: { tokens: 60, calls: 9 }, spent: { tokens: 40.25 } };
    const trial = spending({ budget: { ...TOKENS, calls: 9, estimate: { tokens: 30 } } })
      .begin()
      .refuses("a", budget);
    const message = expect.stringMatching(
      /: it allows 60 tokens and 9 calls in all, 40\.25 tokens and 0 calls were used, the task may use 30 tokens and 1 call\. /,
    );
    const details = { limits: budget.limits, spent: { tokens: 40.25, calls: 0 }, needs: { tokens: 30, calls: 1 } };
    expect(trial.view("a")).toMatchObject({ status: "FAILED", error: { message, details } });
  });

  test("takes another model then, and pays only money for it", () => {
    const budget: BudgetSpec = { tokens: 50, usd: 1, on_limit: "fallback", fallback: "small" };
    const prices = { small: { input: 0, output: 2_000 } };
    const trial = spending({ budget: { ...budget, prices }, config: { model: "large", max_tokens: 100 } }).begin();
    trial.refuses("a");
    expect(acquired(trial).at(-1)!.asks[0]!.estimate).toEqual({ usd: 0.2 });
    trial.passes("a");
    expect(trial.task("a").config).toMatchObject({ model: "small" });
    const [again] = executionMachine.openTasks(trial.state, trial.context).tasks;
    expect(JSON.parse(again!.text).config).toMatchObject({ model: "small" });
    const neither = spending({ budget }).begin().refuses("a").refuses("a");
    expect(neither.view("a")).toMatchObject({ status: "FAILED", error: { code: "BUDGET_EXCEEDED" } });
  });

  test("passes its own budget before that of the workflow, and both before all other gates", () => {
    const trial = spending(
      { budget: TOKENS, concurrency: { limit: 1, on_conflict: "queue" } },
      { calls: 9, on_limit: "fail" },
    );
    const names = acquired(trial.begin().passes("a").passes("a").passes("a")).map(
      ({ name }) => `${name.kind} ${name.name}`,
    );
    expect(names).toEqual(["budget test/a", "budget test", "concurrency test/a"]);
  });

  test("is counted once if a lost delivery answers while the next one waits to go out", () => {
    const trial = spending({ budget: TOKENS }).begin().passes("a");
    const { token } = trial.task("a");
    trial.loses("a");
    trial.send({ kind: "taskCompleted", token, output: { json: 1 }, runningMs: 5, usage: { tokens: 9 } });
    trial.settle();
    const returned = trial.mail.flatMap(({ body }) => (body.kind === "gateReturn" ? [body] : []));
    expect(returned.map(({ asks, used }) => [asks, used ?? "nothing"])).toEqual([
      [[1], [{ ask: 1, used: {} }]],
      [[2], "nothing"],
    ]);
  });

  test("shares one with all executions of the same key, and none with others", () => {
    const key = "{{ input.who }}";
    const gates = (who: string) => {
      const trial = spending({ budget: { ...TOKENS, key } }, { ...TOKENS, key })
        .begin({ json: { who } })
        .passes("a");
      return acquired(trial).map(({ name }) => name.key);
    };
    expect([gates("ann"), gates("bob")]).toEqual([
      ["ann", "ann"],
      ["bob", "bob"],
    ]);
  });
});

describe("a budget over the items of a map", () => {
  test("is one for all of them", () => {
    const map = mapNode("m", { items: [1, 2], handler: "step", config: {} }, [], { budget: TOKENS });
    const trial = new Trial(workflow([map])).begin();
    expect(acquired(trial).map(({ asks }) => asks.length)).toEqual([2]);
  });

  test("is spent by its graphs for the execution that the map is in", () => {
    const inner = [node("x", [], { budget: TOKENS })];
    const map = mapNode("m", { items: [1], nodes: inner as never });
    const trial = new Trial(workflow([map], { budget: PAUSE })).begin();
    const start = trial.mail.find(({ body }) => body.kind === "start")!.body as { parent: { account?: string } };
    expect(start.parent.account).toBe(trial.id);
    const text = trial.blobs.find(({ scope }) => scope === "definition")!.text;
    expect(JSON.parse(text).budget).toMatchObject({ name: "test", tokens: 50 });
    const plain = new Trial(workflow([mapNode("m", { items: [1], nodes: [node("x")] as never })])).begin();
    expect(plain.mail.find(({ body }) => body.kind === "start")!.body).not.toHaveProperty("parent.account");
  });
});

describe("a node that waits for a budget to be raised", () => {
  const stalled = (): Trial => spending({ budget: PAUSE }).begin().stalls("a");
  const decision = { kind: "decideReview", instance: "a", generation: 1 } as const;

  test("is a review", () => {
    const trial = stalled();
    expect([trial.shown["a"], trial.out]).toEqual(["WAITING budget", []]);
    expect(reviews(trial)).toEqual([expect.stringContaining('The budget "test/a" is used up')]);
  });

  test("goes on at the same place once the gate lets it through, whoever raised it", () => {
    const trial = stalled().passes("a");
    expect(trial.out).toEqual(["a"]);
    expect(reviews(trial).at(-1)).toBe(null);
  });

  test("sends a raise to its gate when it is approved, of amounts that fit only", () => {
    const trial = stalled();
    expect(trial.ask({ ...decision, decision: "approve", data: { usd: 5 } })).toMatchObject({
      refused: "REVIEW_INVALID",
    });
    expect(trial.ask({ ...decision, decision: "approve", data: {} })).toMatchObject({ refused: "REVIEW_INVALID" });
    expect(trial.ask({ ...decision, decision: "approve", data: null })).toMatchObject({
      refused: "REVIEW_INVALID",
      detail: 'No data was given, and the form of the review asks for "tokens"',
    });
    trial.does({ ...decision, decision: "approve", data: { tokens: 90 } });
    expect(trial.mail.at(-1)).toMatchObject({
      to: expect.stringMatching(/^gate\/budget:/),
      body: { kind: "gateCommand", action: "override", amounts: { tokens: 90 }, atLeast: true },
    });
    expect(trial.shown["a"]).toBe("WAITING budget");
  });

  test("fails when it is rejected", () => {
    const trial = stalled().does({ ...decision, decision: "reject", data: null });
    const message = expect.stringContaining("it allows 50 tokens in all, 40 tokens were used.");
    expect(trial.view("a")).toMatchObject({ status: "FAILED", error: { code: "BUDGET_EXCEEDED", message } });
    expect(reviews(trial).at(-1)).toBe(null);
    expect(trial.ask({ ...decision, decision: "reject", data: null })).toMatchObject({ refused: "REVIEW_CLOSED" });
  });

  test.each(["cancel", "pause"] as const)("is no review any more after a %s", (kind) => {
    expect(reviews(stalled().does({ kind })).at(-1)).toBe(null);
  });

  test("asks anew after a pause", () => {
    const trial = stalled().does({ kind: "pause" }).does({ kind: "resume" });
    expect(acquired(trial).length).toBe(2);
  });

  test.each(["cancel", "pause"] as const)("leaves the line if its ask came there only after a %s", (kind) => {
    const trial = spending({ budget: PAUSE }).begin();
    const { gate, ask } = awaitedGate(trial.state, trial.unit("a"))!;
    trial.does({ kind });
    const budget = { limits: { tokens: 50 }, spent: { tokens: 40 } };
    trial.send({ kind: "gateAnswered", gate, stalled: [{ ask, node: "a" }], budget });
    expect(trial.mail.at(-1)).toMatchObject({ to: gate, body: { kind: "gateReturn", asks: [ask], ifWaiting: [ask] } });
    expect(reviews(trial)).toEqual([]);
  });
});

describe("an execution that is removed", () => {
  const told = (trial: Trial): string[] => executionMachine.farewell!(trial.state).map(({ to }) => to);
  const gate = (trial: Trial, name: string): string =>
    gateEntity({ kind: "budget", tenant: "default", name, key: trial.id });

  test("takes leave of the budgets that only it has spent", () => {
    const trial = spending({ budget: TOKENS }, { ...TOKENS, name: "named" }).begin();
    expect(told(trial)).toEqual([gate(trial, "named"), gate(trial, "test/a")]);
  });

  test("and not of those that others spend too", () => {
    const trial = spending({ budget: { ...TOKENS, key: "k" } }, { ...TOKENS, key: "{{ input }}" }).begin();
    expect(told(trial)).toEqual([]);
    expect(told(spending({}).begin())).toEqual([]);
  });

  test("takes leave of those inside the graphs of its maps, whichever way the items were called", () => {
    const inner = [node("i", [], { budget: TOKENS })] as unknown as Json;
    const trial = new Trial(workflow([mapNode("m", { items: [1], nodes: inner }, [], { queue: "map" })])).begin();
    expect(told(trial)).toEqual([gate(trial, "test[m]/i"), gate(trial, "test[m][m]/i")]);
  });
});
