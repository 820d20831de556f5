import { describe, expect, test } from "vitest";
import type { Dependency, OnError } from "../../definition/workflow.ts";
import { failure, node, Trial, workflow } from "./test-execution.ts";
import { viewExecution } from "./test-summary.ts";

const on = (id: string, what: "failed" | "done"): Dependency => ({ id, on: what });

describe("a node fails for good", () => {
  const graph = (onError: OnError): Trial =>
    new Trial(
      workflow([
        node("f", [], { on_error: onError }),
        node("f1", ["f"]),
        node("f2", ["f1"]),
        node("o"),
        node("o1", ["o"]),
      ]),
    ).begin();

  test("under fail_fast the execution ends in the same decision", () => {
    const trial = graph("fail_fast");
    const events = trial.send({ kind: "taskFailed", token: trial.token("f"), error: failure(), runningMs: 1 });
    expect(events.map((event) => event.kind)).toEqual(["taskFailed", "executionEnded"]);
    expect(events[1]).toMatchObject({ status: "failed", reason: "fail_fast", error: { ...failure(), node: "f" } });
    expect(trial.shown).toEqual({
      f: "FAILED",
      f1: "SKIPPED upstream_failed",
      f2: "SKIPPED upstream_failed",
      o: "CANCELLED fail_fast",
      o1: "CANCELLED fail_fast",
    });
    expect(viewExecution(trial.state)).toMatchObject({ status: "FAILED", output: null, error: { node: "f" } });
  });

  test("under fail_branch only what depends on it is skipped", () => {
    const trial = graph("fail_branch").fails("f").completes("o").completes("o1", 1);
    expect(trial.shown).toEqual({
      f: "FAILED",
      f1: "SKIPPED upstream_failed",
      f2: "SKIPPED upstream_failed",
      o: "COMPLETED",
      o1: "COMPLETED",
    });
    expect(viewExecution(trial.state)).toMatchObject({ status: "PARTIAL", error: { node: "f" }, output: { o1: 1 } });
  });

  test("under continue what depends on it runs, and the failure still counts", () => {
    const trial = graph("continue").fails("f").completes("f1").completes("f2").completes("o").completes("o1");
    expect(Object.values(trial.shown)).toEqual(["FAILED", "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED"]);
    expect(trial.state.status).toBe("partial");
  });
});

describe("a failure that somebody depends on is caught", () => {
  test.each(["failed", "done"] as const)("on: %s lets the catch branch run under fail_fast too", (what) => {
    const trial = new Trial(workflow([node("f"), node("next", ["f"]), node("catch", [on("f", what)])])).begin();
    trial.fails("f");
    expect(trial.shown).toEqual({ f: "FAILED", next: "SKIPPED upstream_failed", catch: "QUEUED" });
  });

  test.each([
    ["COMPLETED if the node on: failed completed", "failed", "completes", "completed"],
    ["FAILED if the node on: failed failed too", "failed", "fails", "failed"],
    ["PARTIAL if only a node on: done completed", "done", "completes", "partial"],
  ] as const)("the execution is %s", (_, what, then, status) => {
    const trial = new Trial(workflow([node("f"), node("catch", [on("f", what)], { on_error: "fail_branch" })])).begin();
    trial.fails("f")[then]("catch");
    expect(trial.state.status).toBe(status);
  });

  test("one that is handled and one that is not make it partial, with the error of the one that is not", () => {
    const trial = new Trial(
      workflow([node("f"), node("catch", [on("f", "failed")]), node("g", [], { on_error: "fail_branch" })]),
    ).begin();
    trial.fails("f", { code: "HANDLED" }).completes("catch").fails("g", { code: "NOT" });
    expect(viewExecution(trial.state)).toMatchObject({ status: "PARTIAL", error: { code: "NOT", node: "g" } });
  });

  test.each(["fail_fast", "fail_branch"] as const)(
    "a catch that fails too under %s does not hide the first failure",
    (on_error) => {
      const trial = new Trial(
        workflow([node("f"), node("catch", [on("f", "failed")], { on_error }), node("after", ["catch"])]),
      ).begin();
      trial.fails("f", { code: "FIRST" }).fails("catch", { code: "SECOND" });
      expect(viewExecution(trial.state)).toMatchObject({ status: "FAILED", error: { code: "FIRST", node: "f" } });
      expect(trial.shown["after"]).toBe("SKIPPED upstream_failed");
    },
  );

  test("under fail_fast a failure that was handled before is not the first", () => {
    const trial = new Trial(workflow([node("f"), node("catch", [on("f", "failed")]), node("g")])).begin();
    trial.fails("f").completes("catch").fails("g", { code: "NOT" });
    expect(viewExecution(trial.state)).toMatchObject({ status: "FAILED", error: { code: "NOT", node: "g" } });
  });

  test("a failure that is handled in the very decision is not the first either", () => {
    const quick = { handler: "output", timeout_seconds: null };
    const handled = node("catch", [on("f", "failed")], quick);
    const broken = node("g", [on("f", "done")], { ...quick, condition: "1 + 1" });
    const trial = new Trial(workflow([node("f"), handled, broken])).begin().fails("f");
    expect(viewExecution(trial.state)).toMatchObject({
      status: "FAILED",
      error: { code: "CONDITION_ERROR", node: "g" },
    });
  });

  test("a catch that is skipped handles nothing", () => {
    const trial = new Trial(workflow([node("f"), node("catch", [on("f", "failed")], { condition: "false" })])).begin();
    trial.fails("f");
    expect(trial.state.status).toBe("failed");
  });

  test("a parent that completes does not run its catch", () => {
    const trial = new Trial(workflow([node("f"), node("catch", [on("f", "failed")])])).begin().completes("f");
    expect(trial.shown).toEqual({ f: "COMPLETED", catch: "SKIPPED condition" });
    expect(trial.state.status).toBe("completed");
  });
});

describe("the end", () => {
  test("an execution whose nodes were all skipped is completed", () => {
    const trial = new Trial(workflow([node("a", [], { condition: "false" }), node("b", ["a"])])).begin();
    expect(viewExecution(trial.state)).toMatchObject({ status: "COMPLETED", output: {}, error: null });
  });

  test("one in which nothing completed is failed", () => {
    const trial = new Trial(workflow([node("a", [], { on_error: "fail_branch" }), node("b", ["a"])]))
      .begin()
      .fails("a");
    expect(trial.state.status).toBe("failed");
  });
});

describe("the output of an execution", () => {
  const output = (id: string, parents: string[]) => node(id, parents, { handler: "output", timeout_seconds: null });

  test("is that of its only output node, though others are sinks", () => {
    const trial = new Trial(workflow([node("a"), node("b"), output("o", ["a"])])).begin();
    trial.completes("a", 1).completes("b", 2);
    expect(viewExecution(trial.state).output).toEqual({ a: 1 });
  });

  test("is by id if there are several output nodes", () => {
    const trial = new Trial(workflow([node("a"), output("o", ["a"]), output("p", ["a"])])).begin().completes("a", 1);
    expect(viewExecution(trial.state).output).toEqual({ o: { a: 1 }, p: { a: 1 } });
  });

  test("is by id of the sinks if there is no output node, of those that completed", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"]), node("c", ["a"], { condition: "false" })])).begin();
    trial.completes("a", 1).completes("b", 2);
    expect(viewExecution(trial.state).output).toEqual({ b: 2 });
  });

  test("is null if its only output node was skipped", () => {
    const skipped = node("o", ["a"], { handler: "output", timeout_seconds: null, condition: "false" });
    const trial = new Trial(workflow([node("a"), skipped])).begin().completes("a", 1);
    expect(viewExecution(trial.state)).toMatchObject({ status: "COMPLETED", output: null });
  });

  test("names a large value instead of showing it", () => {
    const trial = new Trial(workflow([node("a")])).begin();
    const blob = { hash: "h", bytes: 70_000 };
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob }, runningMs: 1 });
    trial.settle();
    expect(viewExecution(trial.state).output).toEqual({ a: { $large: { bytes: 70_000, sha256: "h" } } });
  });
});
