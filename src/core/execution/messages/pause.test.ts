import { describe, expect, test } from "vitest";
import { executionMachine } from "../machine.ts";
import {
  engineNode,
  failure,
  mapNode,
  node,
  RETRYABLE,
  START_MS,
  startBody,
  Trial,
  workflow,
} from "../test-execution.ts";

const chain = workflow([node("a"), node("b", ["a"])]);

describe("pause", () => {
  test("moves a running execution to PAUSED, and says so", () => {
    const trial = new Trial(chain).begin();
    expect(trial.ask({ kind: "pause" })).toEqual({ ok: { execution_id: "x", status: "PAUSED", generation: 1 } });
    expect(trial.summary.status).toBe("PAUSED");
  });

  test("of one that is paused changes nothing", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" });
    expect(trial.ask({ kind: "pause" })).toEqual({ ok: { execution_id: "x", status: "PAUSED", generation: 1 } });
    expect(trial.last.events).toMatchObject([{ kind: "commandApplied" }]);
    expect(trial.last.events).toHaveLength(1);
  });

  test.each([
    ["PENDING", (t: Trial) => t.hold(), "NOT_RUNNING"],
    ["COMPLETED", (t: Trial) => t.begin().completes("a").completes("b"), "ALREADY_TERMINAL"],
    ["CANCELLED", (t: Trial) => t.begin().does({ kind: "cancel" }), "ALREADY_TERMINAL"],
  ])("of one that is %s is refused", (status, make, code) => {
    const trial = make(new Trial(chain));
    expect(trial.ask({ kind: "pause" })).toMatchObject({ refused: code, execution: { status } });
  });
});

describe("while it is paused", () => {
  test("what is out goes on, and its result counts, but nothing new is queued", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" });
    expect(trial.starts("a")).toHaveLength(1);
    trial.completes("a", 1);
    expect(trial.shown).toEqual({ a: "COMPLETED", b: "PENDING" });
    expect(executionMachine.hasWork(trial.state)).toBe(false);
    expect(trial.does({ kind: "resume" }).shown).toEqual({ a: "COMPLETED", b: "QUEUED" });
  });

  test("the engine's own nodes do not begin either", () => {
    const nodes = [node("a"), engineNode("w", "wait", { seconds: 5 }, ["a"]), mapNode("m", { items: [1] }, ["a"])];
    const trial = new Trial(workflow(nodes)).begin().does({ kind: "pause" }).completes("a");
    expect(trial.shown).toEqual({ a: "COMPLETED", w: "PENDING", m: "PENDING" });
    expect(trial.does({ kind: "resume" }).shown).toEqual({ a: "COMPLETED", w: "WAITING timer", m: "RUNNING" });
  });

  test("a retry is not queued before it is resumed, though its backoff runs out", () => {
    const trial = new Trial(chain).begin().fails("a", RETRYABLE).does({ kind: "pause" }).at(100_000).settle();
    expect(trial.view("a")).toMatchObject({
      status: "WAITING",
      reason: "retry",
      until: null,
      attempt: 1,
      error: failure(RETRYABLE),
    });
    expect(trial.tasks).toHaveLength(1);
    trial.does({ kind: "resume" });
    expect(trial.view("a")).toMatchObject({ status: "QUEUED", attempt: 2 });
  });

  test("a lost delivery is not delivered again before it is resumed", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" }).loses("a");
    expect(trial.tasks).toHaveLength(1);
    expect(trial.does({ kind: "resume" }).task("a")).toMatchObject({ attempt: 1, delivery: 2 });
  });

  test("a failure counts, and under fail_fast ends it", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" }).fails("a");
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { node: "a" } });
  });

  test("deadlines run on: of the task, the join, a signal and the workflow", () => {
    const nodes = [
      node("a", [], { on_error: "fail_branch", queue_timeout_seconds: 60 }),
      node("late"),
      node("j", ["a", "late"], { join: "all_done", join_timeout_seconds: 5, on_error: "fail_branch" }),
      engineNode("s", "wait", { signal: "s", timeout_seconds: 10 }, [], { on_error: "fail_branch" }),
    ];
    const trial = new Trial(workflow(nodes, { timeout_seconds: 100 })).begin().does({ kind: "pause" });
    trial.at(10_000).settle();
    expect(trial.view("s").error?.code).toBe("SIGNAL_TIMEOUT");
    trial.at(60_000).settle();
    expect(trial.view("a").error?.code).toBe("QUEUE_TIMEOUT");
    trial.at(65_000).settle();
    expect(trial.view("j").error?.code).toBe("JOIN_TIMEOUT");
    trial.at(100_000).settle();
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "WORKFLOW_TIMEOUT" } });
  });

  test("waits end: a timer, a signal, a review, a child", () => {
    const nodes = [
      engineNode("timer", "wait", { seconds: 5 }),
      engineNode("signal", "wait", { signal: "s", timeout_seconds: 100 }),
      engineNode("review", "review", { due_seconds: 100, on_due: "fail" }),
      engineNode("child", "workflow", { name: "w" }),
      node("after", ["timer", "signal", "review", "child"]),
    ];
    const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);
    const trial = new Trial(workflow(nodes), { fetched }).begin().does({ kind: "pause" }).at(5000).settle();
    trial.does({ kind: "signal", name: "s", data: { json: 1 } });
    const review = { instance: "review", generation: 1, decision: "approve", data: null } as const;
    trial.does({ kind: "decideReview", ...review }).childEnds("child", { output: { json: 2 } });
    expect(trial.shown).toEqual({
      timer: "COMPLETED",
      signal: "COMPLETED",
      review: "COMPLETED",
      child: "COMPLETED",
      after: "PENDING",
    });
  });

  test("a signal is kept for a wait that has not begun", () => {
    const nodes = [node("a"), engineNode("w", "wait", { signal: "s", timeout_seconds: 100 }, ["a"])];
    const trial = new Trial(workflow(nodes)).begin().does({ kind: "pause" }).completes("a");
    trial.does({ kind: "signal", name: "s", data: { json: 7 } });
    expect(trial.shown["w"]).toBe("PENDING");
    expect(trial.does({ kind: "resume" }).view("w").output).toEqual({ json: 7 });
  });

  test("what only has to be closed is closed: the last item of a map, the last round", () => {
    const repeat = { until: "r.done", every_seconds: 1, max: 5 };
    const nodes = [mapNode("m", { items: [1], handler: "step", config: {} }), node("r", [], { repeat })];
    const trial = new Trial(workflow(nodes)).begin().does({ kind: "pause" });
    const result = { kind: "taskCompleted", output: { json: 1 }, runningMs: 1 } as const;
    trial.send({ ...result, token: trial.token("m[0]") });
    // Whoever loads it now must know that it goes on by itself.
    expect(executionMachine.hasWork(trial.state)).toBe(true);
    expect(executionMachine.hasWork(trial.settle().state)).toBe(false);
    trial.completes("r", { done: true });
    expect(trial.summary).toMatchObject({ status: "COMPLETED", output: { m: [1], r: { done: true } } });
  });

  test("a round is judged without room in its queue, and without a place among those that may run", () => {
    const repeat = { until: "r.done", every_seconds: 1, max: 5 };
    const nodes = [node("r", [], { repeat }), node("other"), node("third")];
    const trial = new Trial(workflow(nodes, { max_parallel_nodes: 2 })).begin();
    trial.room = () => 0;
    trial.completes("r", { done: true });
    expect(trial.shown).toEqual({ r: "COMPLETED", other: "QUEUED", third: "PENDING" });
  });

  test("with nothing left to start it ends as if it were running", () => {
    const trial = new Trial(workflow([node("a"), node("no", ["a"], { condition: "false" })])).begin();
    trial.does({ kind: "pause" }).completes("a");
    // Whether `no` runs is asked when it would start.
    expect(trial.summary.status).toBe("PAUSED");
    const alone = new Trial(workflow([node("a")])).begin().does({ kind: "pause" }).completes("a", 3);
    expect(alone.summary).toMatchObject({ status: "COMPLETED", output: { a: 3 } });
  });

  test("what can no longer run is skipped", () => {
    const branch = { on_error: "fail_branch" } as const;
    const trial = new Trial(workflow([node("a", [], branch), node("b", ["a"]), node("o")])).begin();
    trial.does({ kind: "pause" }).fails("a");
    expect(trial.shown).toMatchObject({ a: "FAILED", b: "SKIPPED upstream_failed" });
  });

  test("it can be cancelled", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" }).does({ kind: "cancel" });
    expect(trial.summary.status).toBe("CANCELLED");
  });
});

describe("resume", () => {
  test.each([
    ["PENDING", (t: Trial) => t.hold()],
    ["RUNNING", (t: Trial) => t.begin()],
    ["COMPLETED", (t: Trial) => t.begin().completes("a").completes("b")],
  ])("of one that is %s is refused", (status, make) => {
    expect(make(new Trial(chain)).ask({ kind: "resume" })).toMatchObject({
      refused: "NOT_PAUSED",
      execution: { status },
    });
  });

  test("says RUNNING", () => {
    const trial = new Trial(chain).begin().does({ kind: "pause" });
    expect(trial.ask({ kind: "resume" })).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 1 } });
  });

  test("does not make up for the time that the workflow's timeout has lost", () => {
    const trial = new Trial(workflow([node("a")], { timeout_seconds: 100 })).begin().does({ kind: "pause" });
    trial.at(90_000).does({ kind: "resume" });
    expect(trial.state.deadlineAtMs).toBe(START_MS + 100_000);
  });
});

test("an execution that was paused before its first dispatch dispatches nothing", () => {
  const trial = new Trial(chain);
  trial.send(startBody());
  trial.does({ kind: "pause" });
  expect(trial.tasks).toEqual([]);
  expect(trial.does({ kind: "resume" }).tasks).toHaveLength(1);
});
