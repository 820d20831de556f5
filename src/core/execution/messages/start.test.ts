import { describe, expect, test } from "vitest";
import type { Value } from "../../value.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, imprint, node, START_MS, startBody, Trial, workflow } from "../test-execution.ts";
import { forkedNodes } from "../view.ts";

const one = workflow([node("a")]);

test("a start accepts the execution and sets it running, in one decision", () => {
  const trial = new Trial(one);
  const events = trial.send(startBody({ json: { n: 1 } }), "somebody");
  expect(events).toEqual([
    {
      kind: "accepted",
      atMs: START_MS,
      workflow: "test",
      definition: "hash",
      input: { json: { n: 1 } },
      bodyHash: "body",
      by: "somebody",
      tenant: "default",
      trace: "",
    },
    { kind: "started", atMs: START_MS, deadlineAtMs: START_MS + 604_800_000 },
  ]);
  expect(trial.last.reply).toEqual({ ok: { execution_id: "x", status: "RUNNING" } });
  expect(trial.state).toMatchObject({
    status: "running",
    by: "somebody",
    createdAtMs: START_MS,
    startedAtMs: START_MS,
  });
});

test("a timeout of zero means none", () => {
  const trial = new Trial(workflow([node("a")], { timeout_seconds: 0 }));
  expect(trial.send(startBody())[1]).toMatchObject({ kind: "started", deadlineAtMs: null });
});

test("a start by a parent remembers whom to tell, and its end tells it", () => {
  const parent = { entity: "execution/p", instance: "call@2" };
  const trial = new Trial(one).begin({ json: null }, parent);
  expect(trial.events[0]).toMatchObject({ kind: "accepted", parent });
  trial.send({ kind: "cancel", request: "r" });
  expect(trial.last.mail).toEqual([
    {
      id: "childEnded:execution/x:1:1",
      to: "execution/p",
      by: "execution/x",
      trace: "",
      tenant: "default",
      body: {
        kind: "childEnded",
        child: "execution/x",
        generation: 1,
        instance: "call@2",
        status: "cancelled",
        call: 1,
      },
    },
  ]);
});

describe("a start that comes again", () => {
  test.each([
    ["while it runs", (trial: Trial) => trial],
    ["after it has completed", (trial: Trial) => trial.completes("a")],
    ["after it was cancelled", (trial: Trial) => (trial.send({ kind: "cancel", request: "r" }), trial)],
  ])("%s gets the first answer, and nothing happens", (_, then) => {
    const trial = then(new Trial(one).begin());
    expect(trial.send(startBody())).toEqual([]);
    expect(trial.last.reply).toEqual({ ok: { execution_id: "x", status: "RUNNING" } });
  });

  test("with another body was meant for something else, and is refused", () => {
    const trial = new Trial(one).begin();
    expect(trial.send({ ...startBody(), bodyHash: "other" })).toEqual([]);
    expect(trial.last.reply).toEqual({ refused: "IDEMPOTENCY_KEY_REUSED" });
  });
});

test.each([
  { kind: "cancel", request: "r" },
  { kind: "taskStarted", token: "t", runningMs: 1 },
  { kind: "taskCompleted", token: "t", output: { json: null }, runningMs: 1 },
  { kind: "taskFailed", token: "t", error: { code: "E", message: "", retryable: true }, runningMs: 1 },
  { kind: "taskHandedBack", token: "t" },
  { kind: "deliveryLost", token: "t" },
  { kind: "release", request: "r" },
] as const)("$kind for what was never started is refused and changes nothing", (body) => {
  const trial = new Trial(one);
  expect(trial.send(body)).toEqual([]);
  expect(trial.last.reply).toEqual({ refused: "NOT_FOUND" });
});

test.each([
  { kind: "release", request: "r" },
  { kind: "childEnded", child: "execution/c", generation: 1, instance: "a", status: "completed" },
] as const)("$kind means nothing to a running execution without children", (body) => {
  expect(new Trial(one).begin().send(body)).toEqual([]);
});

describe("a fork begins with what another execution had completed", () => {
  const nodes = [
    node("a"),
    node("b", ["a"], { config: { n: "{{ a.n }}" } }),
    engineNode(
      "r",
      "router",
      { mode: "exclusive", routes: [{ when: "a.n > 1", to: "c" }], else: "d", on_error: "fail" },
      ["a"],
    ),
    node("c", ["r"]),
    node("d", ["r"]),
    node("e", ["b", "c"], { join: "one_success" }),
  ];

  function original(): Trial {
    const trial = new Trial(workflow(nodes)).begin().completes("a", { n: 5 }).completes("c", 3);
    return trial.fails("b");
  }

  function forked(from?: string): Trial {
    const kept = forkedNodes(original().state, from) as { node: string; output: Value }[];
    const trial = new Trial(workflow(nodes), { id: "y" });
    trial.send({ ...startBody(), fork: { execution: "x", kept } });
    return trial.settle();
  }

  test("every node that completed is done from the beginning, with its output, and the rest runs", () => {
    const trial = forked();
    expect(trial.events[0]).toMatchObject({ kind: "accepted", fork: { execution: "x" } });
    expect(trial.shown).toEqual({
      a: "COMPLETED",
      b: "QUEUED",
      r: "COMPLETED",
      c: "COMPLETED",
      d: "SKIPPED route",
      e: "QUEUED",
    });
    expect(trial.task("b")).toMatchObject({ config: { n: 5 }, idempotencyKey: "y/b/1", generation: 1 });
    expect(trial.taskTexts("a")).toEqual([]);
  });

  test("from a node, that one and all after it run", () => {
    expect(forked("r").shown).toMatchObject({ a: "COMPLETED", r: "COMPLETED", c: "QUEUED", e: "PENDING" });
    expect(forked("a").shown).toMatchObject({ a: "QUEUED", r: "PENDING", b: "PENDING" });
  });

  test("may be held, and ends and is retried like any other", () => {
    const kept = forkedNodes(original().state) as { node: string; output: Value }[];
    const trial = new Trial(workflow(nodes), { id: "y" });
    trial.send({ ...startBody(), hold: true, fork: { execution: "x", kept } });
    expect(trial.shown).toMatchObject({ a: "COMPLETED", b: "PENDING" });
    const copy = executionMachine.restore("y", trial.state.plan, executionMachine.snapshot(trial.state));
    expect(imprint(copy)).toBe(imprint(trial.state));
    trial.does({ kind: "trigger" }).completes("e", 1).completes("b");
    expect(trial.summary.status).toBe("COMPLETED");
    trial.does({ kind: "retry", scope: "descendants", from: "a" });
    expect(trial.task("a").idempotencyKey).toBe("y/a/2");
  });

  test("does not change the one it was forked from", () => {
    const trial = original();
    const before = imprint(trial.state);
    forkedNodes(trial.state, "b");
    expect(imprint(trial.state)).toBe(before);
  });
});
