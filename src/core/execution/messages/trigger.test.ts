import { describe, expect, test } from "vitest";
import { message, node, START_MS, startBody, Trial, workflow } from "../test-execution.ts";

const chain = workflow([node("a", [], { config: { n: "{{ input.n | default(0) }}" } }), node("b", ["a"])]);
const parted = workflow([node("f", [], { on_error: "fail_branch" }), node("o")]);

describe("an execution that was accepted and not started", () => {
  test("waits, with the input it came with, until somebody triggers it", () => {
    const trial = new Trial(chain);
    expect(trial.send({ ...startBody({ json: { n: 1 } }), hold: true })).toMatchObject([{ kind: "accepted" }]);
    expect(trial.last.reply).toEqual({ ok: { execution_id: "x", status: "PENDING" } });
    expect(trial.at(600_000_000).step()).toEqual([]);
    expect(trial.shown).toEqual({ a: "PENDING", b: "PENDING" });
    const ok = { execution_id: "x", status: "RUNNING", generation: 1 };
    expect(trial.ask({ kind: "trigger" })).toEqual({ ok });
    expect(trial.settle().task("a").config).toEqual({ n: 1 });
  });

  test("is under the workflow's timeout from the trigger on, not from the acceptance", () => {
    const trial = new Trial(chain).hold().at(5000).does({ kind: "trigger" });
    expect(trial.state).toMatchObject({ createdAtMs: START_MS, startedAtMs: START_MS + 5000 });
    expect(trial.state.deadlineAtMs).toBe(START_MS + 5000 + 604_800_000);
  });

  test("takes the input that the trigger brings instead of its own", () => {
    const trial = new Trial(chain).hold({ json: { n: 1 } });
    trial.does({ kind: "trigger", input: { json: { n: 2 } } });
    expect(trial.events.find(({ kind }) => kind === "started")).toMatchObject({ input: { json: { n: 2 } } });
    expect(trial.task("a").config).toEqual({ n: 2 });
  });

  test("gets the answer of a held start when it is sent again, and of another body none", () => {
    const trial = new Trial(chain).hold();
    trial.send({ ...startBody(), hold: true });
    expect(trial.last.reply).toEqual({ ok: { execution_id: "x", status: "PENDING" } });
    trial.send({ ...startBody(), hold: true, bodyHash: "other" });
    expect(trial.last.reply).toEqual({ refused: "IDEMPOTENCY_KEY_REUSED" });
  });
});

const refusals: readonly (readonly [state: string, make: () => Trial, code: string])[] = [
  ["RUNNING", () => new Trial(chain).begin(), "ALREADY_RUNNING"],
  ["PAUSED", () => new Trial(chain).begin().does({ kind: "pause" }), "ALREADY_RUNNING"],
  ["COMPLETED", () => new Trial(chain).begin().completes("a").completes("b"), "ALREADY_TERMINAL"],
  ["CANCELLED", () => new Trial(chain).begin().does({ kind: "cancel" }), "ALREADY_TERMINAL"],
];

test.each(refusals)("a trigger of one that is %s is refused, and changes nothing", (status, make, code) => {
  const trial = make();
  const { generation } = trial.state;
  expect(trial.ask({ kind: "trigger" })).toEqual({
    refused: code,
    execution: { execution_id: "x", status, generation },
  });
  expect(trial.last.events).toMatchObject([{ kind: "commandRefused", code }]);
  expect(trial.state).toMatchObject({ status: status.toLowerCase(), generation });
});

describe("a trigger of one that ended badly", () => {
  test.each([
    ["FAILED", () => new Trial(chain).begin().fails("a")],
    ["PARTIAL", () => new Trial(parted).begin().completes("o").fails("f")],
  ])("runs what failed again, in the next generation, if it is %s", (status, make) => {
    const trial = make();
    expect(trial.summary.status).toBe(status);
    expect(trial.ask({ kind: "trigger" })).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 2 } });
    expect(trial.last.events).toMatchObject([
      { kind: "commandApplied", command: "trigger" },
      { kind: "generationOpened", generation: 2, scope: "failed" },
    ]);
    expect(trial.summary).toMatchObject({ status: "RUNNING", generation: 2, endedAtMs: null, error: null });
  });

  test("keeps its input: another one is refused", () => {
    const trial = new Trial(chain).begin().fails("a");
    expect(trial.ask({ kind: "trigger", input: { json: 1 } })).toMatchObject({ refused: "INPUT_FIXED" });
    expect(trial.summary).toMatchObject({ status: "FAILED", generation: 1 });
  });
});

test("a trigger of what was never accepted finds nothing", () => {
  const trial = new Trial(chain);
  trial.send(message({ kind: "trigger", request: "r" }).body);
  expect(trial.last).toMatchObject({ events: [], reply: { refused: "NOT_FOUND" } });
});

test("the same trigger again gets the same answer, though the execution has gone on", () => {
  const trial = new Trial(chain).hold();
  const answer = trial.ask({ kind: "trigger", request: "t" });
  trial.settle().completes("a").completes("b");
  expect(trial.ask({ kind: "trigger", request: "t" })).toEqual(answer);
  expect(trial.last.events).toEqual([]);
});
