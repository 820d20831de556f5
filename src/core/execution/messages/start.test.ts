import { describe, expect, test } from "vitest";
import { node, START_MS, startBody, Trial, workflow } from "../test-execution.ts";

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
