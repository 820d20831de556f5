import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import { outputOf, viewExecution } from "./view.ts";
import { failure, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";

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
