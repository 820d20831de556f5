import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import { engineNode, failure, mapNode, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";
import { randomBeginning } from "./test-histories.ts";
import { outputOf, viewExecution } from "./test-summary.ts";
import { viewNode } from "./view.ts";

/** One node in each state that a node can be in. */
function everyState(): Trial {
  const branch = { on_error: "fail_branch" } as const;
  const nodes = [
    node("completed"),
    node("failed", [], branch),
    node("skipped", [], { condition: "false" }),
    node("queued"),
    node("running"),
    node("waiting"),
    node("pending", ["queued"]),
    node("last", ["pending", "failed"], { join: "all_done" }),
  ];
  const trial = new Trial(workflow(nodes)).begin();
  trial.completes("completed", 1).fails("failed").fails("waiting", RETRYABLE);
  trial.starts("running", 0);
  return trial;
}

const ENDED = { completed: "COMPLETED", failed: "FAILED", skipped: "SKIPPED condition" };
const OPEN = ["queued", "running", "waiting", "pending", "last"];

test("an open execution shows each node as it is", () => {
  expect(everyState().shown).toEqual({
    ...ENDED,
    queued: "QUEUED",
    running: "RUNNING",
    waiting: "WAITING retry",
    pending: "PENDING",
    last: "PENDING",
  });
});

describe("what is open when the execution ends reads as the end implies", () => {
  test("a cancel cancels it", () => {
    const trial = everyState().at(700);
    trial.send({ kind: "cancel", request: "r" });
    expect(trial.shown).toEqual({ ...ENDED, ...Object.fromEntries(OPEN.map((id) => [id, "CANCELLED cancel"])) });
    for (const id of OPEN) expect(trial.view(id).endedAtMs).toBe(START_MS + 700);
    expect(trial.view("waiting")).toMatchObject({ until: null, error: failure(RETRYABLE) });
  });

  test("the workflow's timeout cancels it", () => {
    const trial = everyState().at(604_800_000).settle();
    expect(trial.shown).toEqual({ ...ENDED, ...Object.fromEntries(OPEN.map((id) => [id, "CANCELLED timeout"])) });
  });

  test("fail_fast skips what depends on the failure, and cancels the rest", () => {
    const nodes = [node("f"), node("f1", ["f", "o"]), node("f2", ["f1"]), node("o"), node("o1", ["o"])];
    const trial = new Trial(workflow(nodes)).begin().fails("f");
    expect(trial.shown).toEqual({
      f: "FAILED",
      f1: "SKIPPED upstream_failed",
      f2: "SKIPPED upstream_failed",
      o: "CANCELLED fail_fast",
      o1: "CANCELLED fail_fast",
    });
  });
});

test("an execution that was never touched shows all its nodes as pending, without an attempt", () => {
  const view = viewExecution(new Trial(workflow([node("a")])).state);
  expect(view.nodes["a"]).toEqual({
    status: "PENDING",
    attempt: 0,
    deliveries: 0,
    output: null,
    error: null,
    reason: null,
    until: null,
    queuedAtMs: null,
    startedAtMs: null,
    endedAtMs: null,
  });
});

test("a node that has ended tells when it was queued, started and ended", () => {
  const trial = new Trial(workflow([node("a"), node("b")])).begin().at(1000);
  trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { json: 1 }, runningMs: 400 });
  expect(trial.view("a")).toMatchObject({
    queuedAtMs: START_MS,
    startedAtMs: START_MS + 600,
    endedAtMs: START_MS + 1000,
  });
});

test("an output that left memory is shown by its size", () => {
  const { state } = new Trial(workflow([node("a")])).begin().completes("a", 1);
  state.runs[0]!.output = { past: { version: 3, bytes: 5000 } };
  expect(outputOf(state)).toEqual({ a: { $large: { bytes: 5000 } } });
  state.runs[0]!.output = null;
  expect(outputOf(state)).toEqual({ a: null });
});

test.each([
  ["open", "RUNNING", (trial: Trial) => trial],
  ["endedWell", "COMPLETED", (trial: Trial) => trial.completes("a")],
  ["endedBadly", "FAILED", (trial: Trial) => trial.fails("a")],
  ["endedBadly", "CANCELLED", (trial: Trial) => (trial.send({ kind: "cancel", request: "r" }), trial)],
] as const)("the header is of class %s when it is %s", (headerClass, status, then) => {
  const trial = then(new Trial(workflow([node("a")], { name: "w" })).begin());
  expect(executionMachine.header(trial.state)).toEqual({
    class: headerClass,
    status,
    workflow: "w",
    tenant: "default",
    createdAtMs: START_MS,
    endedAtMs: headerClass === "open" ? null : START_MS,
  });
});

describe("reasons are a closed set", () => {
  const SETS: Readonly<Record<string, readonly string[]>> = {
    WAITING: [
      "retry",
      "rate_limit",
      "concurrency",
      "breaker",
      "budget",
      "parallel",
      "review",
      "signal",
      "timer",
      "child",
    ],
    SKIPPED: ["condition", "route", "upstream_failed"],
    CANCELLED: ["cancel", "fail_fast", "timeout", "end"],
    COMPLETED: ["late_result"],
  };

  test("in every state of random histories, and those that need one have one", () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 500; seed++) {
      const { state } = randomBeginning(seed);
      for (let unit = 0; unit < state.runs.length; unit++) {
        if (state.isItem(unit) && state.runs[unit] === undefined) continue;
        const { status, reason } = viewNode(state, unit);
        if (reason === null) expect(["WAITING", "SKIPPED", "CANCELLED"]).not.toContain(status);
        else expect(SETS[status] ?? []).toContain(reason);
        seen.add(`${status} ${reason ?? ""}`.trim());
      }
    }
    const reachable = Object.entries(SETS).flatMap(([status, reasons]) =>
      reasons.map((reason) => `${status} ${reason}`),
    );
    const gates = ["rate_limit", "concurrency", "breaker", "budget"].map((reason) => `WAITING ${reason}`);
    expect(reachable.filter((pair) => !seen.has(pair) && !gates.includes(pair))).toEqual([]);
  });
});

describe("what a node shows", () => {
  test("usage is what its last completion has cost", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin();
    const usage = { tokens: 12, usd: 0.3 };
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { json: 1 }, runningMs: 1, usage });
    expect(trial.view("a").usage).toEqual(usage);
    expect(trial.view("b")).not.toHaveProperty("usage");
  });

  test("deliveries are those of its attempt", () => {
    const trial = new Trial(workflow([node("a")])).begin().loses("a").loses("a");
    expect(trial.view("a")).toMatchObject({ attempt: 1, deliveries: 3 });
  });

  test("a child, a round and the items only where there are any", () => {
    const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);
    const nodes = [
      engineNode("c", "workflow", { name: "w" }),
      node("r", [], { repeat: { until: "true", every_seconds: 1, max: 2 } }),
      mapNode("m", { items: [1], handler: "step" }),
      node("plain"),
    ];
    const trial = new Trial(workflow(nodes), { fetched }).begin();
    const shown = (id: string): string[] => ["child", "iteration", "items"].filter((key) => key in trial.view(id));
    expect([shown("c"), shown("r"), shown("m"), shown("plain")]).toEqual([["child"], ["iteration"], ["items"], []]);
  });

  test("an output only once it is COMPLETED", () => {
    const trial = new Trial(
      workflow([node("a", [], { repeat: { until: "false", every_seconds: 5, max: 2 } })]),
    ).begin();
    expect(trial.completes("a", 1).view("a")).toMatchObject({ status: "WAITING", output: null });
  });
});

test("the output of an execution is null when it failed or was cancelled, and of a new generation until it ends", () => {
  const trial = new Trial(workflow([node("a", [], { on_error: "fail_branch" }), node("b")])).begin();
  trial.completes("b", 2).fails("a");
  expect(trial.summary).toMatchObject({ status: "PARTIAL", output: { b: 2 } });
  trial.does({ kind: "trigger" });
  expect(trial.summary.output).toBeNull();
  trial.does({ kind: "cancel" });
  expect(trial.summary).toMatchObject({ status: "CANCELLED", output: null });
});
