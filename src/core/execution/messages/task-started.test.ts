import { describe, expect, test } from "vitest";
import { node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";
import { GRACE_MS, startOf } from "./task-started.ts";

const one = workflow([node("a", [], { timeout_seconds: 30 })]);

test("the report of a start moves the node to running, under the deadline of its own timeout", () => {
  const trial = new Trial(one).begin().at(8000);
  expect(trial.starts("a", 3000)).toEqual([
    {
      kind: "taskStarted",
      atMs: START_MS + 8000,
      node: "a",
      attempt: 1,
      delivery: 1,
      startedAtMs: START_MS + 5000,
      runDeadlineAtMs: START_MS + 5000 + 30_000 + GRACE_MS,
    },
  ]);
  expect(trial.status("a")).toBe("running");
});

test("a node's deadline never lies behind what is left of the workflow's, but for the grace", () => {
  const trial = new Trial(workflow([node("a")], { timeout_seconds: 20 })).begin().at(5000);
  expect(trial.starts("a")).toMatchObject([{ runDeadlineAtMs: START_MS + 20_000 + GRACE_MS }]);
});

describe("a report that moves nothing", () => {
  test("a second one for the same delivery", () => {
    const trial = new Trial(one).begin();
    trial.starts("a");
    expect(trial.at(5000).starts("a")).toEqual([]);
  });

  test("one of a delivery that was lost", () => {
    const trial = new Trial(one).begin();
    const zombie = trial.token("a");
    trial.loses("a");
    expect(trial.send({ kind: "taskStarted", token: zombie, runningMs: 5 })).toEqual([]);
    expect(trial.status("a")).toBe("queued");
  });

  test("one of an earlier attempt, a completed node, an ended execution, a forged token", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin();
    const old = trial.token("a");
    trial.fails("a", RETRYABLE).at(100_000).settle();
    expect(trial.send({ kind: "taskStarted", token: old, runningMs: 5 })).toEqual([]);
    const done = trial.token("a");
    trial.completes("a");
    expect(trial.send({ kind: "taskStarted", token: done, runningMs: 5 })).toEqual([]);
    expect(trial.send({ kind: "taskStarted", token: "forged", runningMs: 5 })).toEqual([]);
    trial.send({ kind: "cancel", request: "r" });
    expect(trial.starts("b")).toEqual([]);
  });
});

test.each([
  ["a worker's duration is taken from now", 1000, 5000, 1500, 3500],
  ["a start before the dispatch is the dispatch", 1000, 5000, 9000, 1000],
  ["a duration below zero is none", 1000, 5000, -3, 5000],
  ["without a dispatch only the duration counts", null, 5000, 100, 4900],
])("%s", (_, queuedAtMs, nowMs, runningMs, startedAtMs) => {
  expect(startOf(queuedAtMs, nowMs, runningMs)).toBe(startedAtMs);
});
