import { describe, expect, test } from "vitest";
import type { Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { GateAcquire, GateReturn } from "../message.ts";
import { executionMachine } from "./machine.ts";
import { failure, imprint, mapNode, node, RETRYABLE, Trial, workflow } from "./test-execution.ts";

const PLACES = "gate/concurrency:default:few";
const RATE = "gate/rate:default:thin";

const limits = {
  words: { tokens_per_minute: 6_000, tokens_burst: 500 },
  thin: { rate: 2, per: "second", burst: 2 },
  few: { concurrency: 1 },
  all: {
    rate: 60,
    per: "minute",
    burst: 5,
    concurrency: 2,
    breaker: { failure_rate: 0.5, window: 4, min_calls: 2, open_seconds: 1 },
  },
} as const satisfies Workflow["limits"];

function limited(more: Partial<WorkflowNode>, others: readonly WorkflowNode[] = []): Trial {
  return new Trial(workflow([node("a", [], more), ...others], { limits }));
}

/** What gates were asked, as `gate: asks`; and what they were given back. */
const asked = (trial: Trial): string[] =>
  trial.mail
    .filter(({ body }) => body.kind === "gateAcquire")
    .map(({ to, body }) => `${to}: ${(body as GateAcquire).asks.map(({ ask }) => ask).join(" ")}`);
const returned = (trial: Trial): string[] =>
  trial.mail
    .filter(({ body }) => body.kind === "gateReturn")
    .map(({ to, body }) => `${to}: ${(body as GateReturn).asks.join(" ")}`);

/** What gates were told of what was used. */
const used = (trial: Trial) =>
  trial.mail.flatMap(({ body }) => (body.kind === "gateReturn" ? (body.used ?? []).map((one) => one.used) : []));

describe("a limit on LLM tokens", () => {
  const estimates = (trial: Trial) =>
    trial.mail.flatMap(({ body }) => (body.kind === "gateAcquire" ? body.asks.map(({ estimate }) => estimate) : []));
  const out = (): Trial => limited({ limit: "words" }).begin().passes("a");

  test("is asked with what the node says, or with what it is given and may answer", () => {
    expect(estimates(limited({ limit: { name: "words", tokens: 77 } }).begin())).toEqual([{ tokens: 77 }]);
    const long = limited({ limit: "words", config: { prompt: "x".repeat(4_000), max_tokens: 10 } }).begin();
    const [{ tokens }] = estimates(long) as [{ tokens: number }];
    expect(tokens).toBeGreaterThanOrEqual(1_010);
    expect(tokens).toBeLessThan(1_050);
    expect((estimates(limited({ limit: "words" }).begin())[0] as { tokens: number }).tokens).toBeGreaterThan(1_000);
  });

  test("is told what a result has used, or nothing of what was not counted", () => {
    const counted = out();
    counted.completes("a", null, { prompt_tokens: 5, completion_tokens: 7 });
    expect(used(counted)).toMatchObject([{ tokens: 12, calls: 1 }]);
    expect(used(out().completes("a"))[0]).not.toHaveProperty("tokens");
    expect(used(out().completes("a", null, { total_tokens: 9, usd: 0.5 }))).toMatchObject([{ tokens: 9, usd: 0.5 }]);
  });

  test("counts nothing of a handler that refused, and all of one that nobody heard of", () => {
    expect(used(out().fails("a", RETRYABLE))).toMatchObject([{ tokens: 0, usd: 0, calls: 1 }]);
    expect(used(out().fails("a", { code: "TIMEOUT", retryable: true }))).toEqual([{}]);
    expect(used(out().loses("a"))).toEqual([{}]);
    expect(used(out().does({ kind: "cancel" }))).toEqual([{}]);
  });

  test("counts nothing of what was handed back, or never went out", () => {
    const handedBack = out();
    handedBack.send({ kind: "taskHandedBack", token: handedBack.token("a") });
    expect(used(handedBack.settle())).toEqual([]);
    expect(used(limited({ limit: "words" }).begin().does({ kind: "cancel" }))).toEqual([]);
  });
});

describe("a node with a limit", () => {
  test("waits, without a task, until it is let through", () => {
    const trial = limited({ limit: "few" }).begin();
    expect(asked(trial)).toEqual([`${PLACES}: 1`]);
    expect([trial.out, trial.shown["a"]]).toEqual([[], "WAITING concurrency"]);
    expect(trial.passes("a").out).toEqual(["a"]);
    expect(trial.completes("a").shown).toEqual({ a: "COMPLETED" });
    expect(returned(trial)).toEqual([`${PLACES}: 1`]);
  });

  test("passes its gates one after the other: places, rate, breaker", () => {
    const trial = limited({ limit: "all", concurrency: { limit: 3, on_conflict: "queue" } }).begin();
    const reasons: (string | undefined)[] = [];
    while (trial.out.length === 0) {
      reasons.push(trial.shown["a"]);
      trial.passes("a");
    }
    expect(reasons).toEqual(["WAITING concurrency", "WAITING concurrency", "WAITING rate_limit", "WAITING breaker"]);
    expect(asked(trial).map((line) => line.replace(/:[0-9a-f]{32}/, ":hash"))).toEqual([
      "gate/concurrency:hash: 1",
      "gate/concurrency:default:all: 2",
      "gate/rate:default:all: 3",
      "gate/breaker:default:all: 4",
    ]);
  });

  test("gives a rate back when its work is known to have begun, and a place when that has ended", () => {
    const trial = limited({ limit: "all" }).begin().passes("a").passes("a").passes("a");
    trial.starts("a");
    trial.settle();
    expect(returned(trial)).toEqual(["gate/rate:default:all: 2"]);
    trial.completes("a");
    expect(returned(trial).slice(1)).toEqual(["gate/concurrency:default:all: 1", "gate/breaker:default:all: 3"]);
  });

  test("takes no room from others while it waits", () => {
    const nodes = [node("a", [], { limit: "few" }), node("b"), node("c")];
    const trial = new Trial(workflow(nodes, { limits, max_parallel_nodes: 1 })).begin();
    expect(trial.out).toEqual(["b"]);
    expect(trial.shown).toEqual({ a: "WAITING concurrency", b: "QUEUED", c: "WAITING parallel" });
    trial.passes("a").completes("b");
    expect(trial.out.length).toBe(1);
  });

  test("asks its gate once for all that are ready together", () => {
    const items = mapNode("m", { items: [1, 2, 3], handler: "step", config: {} }, [], { limit: "thin" });
    const trial = new Trial(workflow([items], { limits })).begin();
    expect(asked(trial)).toEqual([`${RATE}: 1 2 3`]);
    expect(trial.passes("m[1]").out).toEqual(["m[1]"]);
  });

  test("has a place for each value of its key", () => {
    const concurrency = { limit: 1, key: "{{ input.who }}", on_conflict: "queue" } as const;
    const gates = ["ann", "bob", "ann", { x: 1 }].map((who) => {
      const trial = limited({ concurrency }).begin({ json: { who } });
      return asked(trial)[0];
    });
    expect(gates[0]).toBe(gates[2]);
    expect(new Set(gates).size).toBe(3);
  });

  test("fails if its key cannot be made, or it was sent away", () => {
    const keyless = limited({ concurrency: { limit: 1, key: "{{ input.who }}", on_conflict: "queue" } });
    expect(keyless.begin({ json: {} }).view("a")).toMatchObject({ error: { code: "TEMPLATE_UNRESOLVED" } });
    const rejected = limited({ concurrency: { limit: 1, on_conflict: "reject" } })
      .begin()
      .refuses("a");
    expect(rejected.view("a")).toMatchObject({ status: "FAILED", error: { code: "CONCURRENCY_LIMIT" } });
    expect(returned(rejected)).toEqual([]);
  });

  test("asks for nothing if its definition is of an earlier release and holds what nobody understands", () => {
    const odd = { limit: { what: 1 }, concurrency: { key: "x" } } as unknown as Partial<WorkflowNode>;
    expect(limited(odd).begin().out).toEqual(["a"]);
    expect(limited({ limit: "nobody" }).begin().out).toEqual(["a"]);
  });
});

describe("what was granted is given back", () => {
  const begun = (): Trial =>
    limited({ limit: "few" }, [node("b")])
      .begin()
      .passes("a");

  test.each<readonly [string, (trial: Trial) => unknown, boolean]>([
    ["it completes", (trial) => trial.completes("a"), false],
    ["it fails for good", (trial) => trial.fails("a"), false],
    ["it fails, and is tried again", (trial) => trial.fails("a", RETRYABLE), false],
    ["its worker is lost", (trial) => trial.loses("a"), true],
    ["it runs out of time in the queue", (trial) => trial.at(86_400_001).settle(), false],
    ["all is cancelled", (trial) => trial.does({ kind: "cancel" }), false],
    ["another fails everything", (trial) => trial.fails("b"), false],
  ])("when %s", (_, end, asksAnew) => {
    const trial = begun();
    end(trial);
    expect(returned(trial)).toEqual([`${PLACES}: 1`]);
    expect(asked(trial).slice(1)).toEqual(asksAnew ? [`${PLACES}: 2`] : []);
    expect(trial.state.asks.size).toBe(asksAnew ? 1 : 0);
  });

  test("when it was granted to somebody who has given up since", () => {
    const trial = limited({ limit: "few" }).begin().does({ kind: "cancel" });
    expect(returned(trial)).toEqual([`${PLACES}: 1`]);
    trial.send({ kind: "gateAnswered", gate: PLACES, granted: [{ ask: 1, node: "a" }] });
    expect(returned(trial)).toEqual([`${PLACES}: 1`, `${PLACES}: 1`]);
    expect(executionMachine.hasWork(trial.state)).toBe(false);
  });

  test("and a grant that is told twice is one", () => {
    const trial = begun();
    trial.send({ kind: "gateAnswered", gate: PLACES, granted: [{ ask: 1, node: "a" }] });
    expect(trial.last.events).toEqual([]);
  });

  test("when the execution is paused before it has begun, and asked for anew when it goes on", () => {
    const trial = limited({ limit: "all" }, [node("b", [], { limit: "few" })])
      .begin()
      .passes("a");
    trial.does({ kind: "pause" });
    expect(returned(trial)).toEqual([
      "gate/concurrency:default:all: 1",
      "gate/rate:default:all: 3",
      "gate/concurrency:default:few: 2",
    ]);
    expect(trial.shown).toEqual({ a: "PENDING", b: "PENDING" });
    trial.does({ kind: "resume" });
    expect(asked(trial).slice(-2)).toEqual(["gate/concurrency:default:all: 4", `${PLACES}: 5`]);
  });

  test("a slice at a time, if there is much", () => {
    const items = Array.from({ length: 10 }, (_, i) => i);
    const map = mapNode("m", { items, handler: "step", config: {} }, [], { limit: "thin" });
    const trial = new Trial(workflow([map], { limits }), { maxEvents: 4 }).begin().does({ kind: "cancel" });
    const sizes = trial.events.flatMap((event) => (event.kind === "gatesReturned" ? [event.returns.length] : []));
    expect(sizes).toEqual([4, 4, 2]);
  });

  test("with the wish of a server to be left alone, and with how the call has ended", () => {
    const trial = limited({ limit: "all" }).begin().passes("a").passes("a").passes("a");
    const token = trial.token("a");
    const error = failure(RETRYABLE);
    trial.send({ kind: "taskFailed", token, error, runningMs: 1, retryAfterMs: 5000 });
    trial.settle();
    const bodies = trial.mail.filter(({ body }) => body.kind === "gateReturn").map(({ body }) => body);
    expect(bodies).toMatchObject([{ asks: [1] }, { asks: [2], closeForMs: 5000 }, { asks: [3], bad: [3] }]);
    expect(bodies[0]).not.toHaveProperty("bad");
  });

  test("with word that there is no more for a while, though the call has gone well", () => {
    const trial = limited({ limit: "all" }).begin().passes("a").passes("a").passes("a");
    trial.starts("a");
    trial.settle();
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { json: 1 }, runningMs: 1, closeForMs: 7000 });
    trial.settle();
    const bodies = trial.mail.filter(({ body }) => body.kind === "gateReturn").map(({ body }) => body);
    expect(bodies).toMatchObject([{ asks: [2] }, { asks: [1] }, { asks: [2], closeForMs: 7000 }, { good: [3] }]);
    const open = new Trial(workflow([node("a")])).begin();
    open.send({ kind: "taskCompleted", token: open.token("a"), output: { json: 1 }, runningMs: 1, closeForMs: 7000 });
    expect(open.events.find(({ kind }) => kind === "taskCompleted")).not.toHaveProperty("closeForMs");
  });
});

test("a route that leads elsewhere takes it away from its gate", () => {
  const router = node("r", ["x"], {
    handler: "router",
    config: { mode: "exclusive", routes: [{ when: "x.n > 5", to: "a" }], else: "b", on_error: "fail" },
    timeout_seconds: null,
  });
  const a = node("a", ["r", "y"], { join: "one_success", limit: "few" });
  const trial = new Trial(workflow([node("x"), node("y"), router, a, node("b", ["r"])], { limits })).begin();
  expect(trial.completes("y").shown["a"]).toBe("WAITING concurrency");
  trial.completes("x", { n: 1 });
  expect(trial.shown["a"]).toBe("SKIPPED route");
  expect(returned(trial)).toEqual([`${PLACES}: 1`]);
});

test("the items of a map that has failed leave their gates", () => {
  const map = mapNode("m", { items: [1, 2, 3], handler: "step", config: {} }, [], { limit: "few" });
  const trial = new Trial(workflow([map, node("b")], { limits, on_error: "fail_branch" })).begin();
  trial.passes("m[0]").fails("m[0]");
  expect(returned(trial)).toEqual([`${PLACES}: 1`, `${PLACES}: 2 3`]);
  expect(trial.state.asks.size).toBe(0);
});

test("a snapshot brings back who stands where", () => {
  const trial = limited({ limit: "all" }, [node("b", [], { limit: "few" })])
    .begin()
    .passes("a");
  const restored = executionMachine.restore("x", trial.state.plan, executionMachine.snapshot(trial.state));
  expect(imprint(restored)).toBe(imprint(trial.state));
});

test("whoever waits at a gate asks anew when the store was lost", () => {
  const trial = limited({ limit: "few" }).begin();
  const { events } = executionMachine.recovered!(trial.state, trial.context);
  trial.apply(...events);
  expect(executionMachine.recovered!(trial.state, trial.context).events).toEqual([]);
  trial.settle();
  expect(asked(trial)).toEqual([`${PLACES}: 1`, `${PLACES}: 2`]);
});
