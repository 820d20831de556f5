import { describe, expect, test } from "vitest";
import { MAX_SIGNALS } from "../state.ts";
import { engineNode, node, Trial, workflow } from "../test-execution.ts";

const wait = (id: string, dependencies: readonly string[] = [], signal = "go"): ReturnType<typeof engineNode> =>
  engineNode(id, "wait", { signal, timeout_seconds: 100 }, dependencies);

function signals(trial: Trial, ...data: readonly number[]): Trial {
  for (const json of data) trial.does({ kind: "signal", name: "go", data: { json } });
  return trial;
}

test("a signal ends the wait for it, and its data is the output", () => {
  const trial = new Trial(workflow([wait("w"), node("b", ["w"])])).begin();
  const answer = trial.ask({ kind: "signal", name: "go", data: { json: { by: "ann" } } });
  expect(answer).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 1 } });
  expect(trial.last.events).toMatchObject([
    { kind: "commandApplied", command: "signal" },
    { kind: "signalReceived", name: "go", data: { json: { by: "ann" } }, by: "test" },
    { kind: "nodeCompleted", node: "w", output: { json: { by: "ann" } }, signal: "go" },
  ]);
  expect(trial.settle().shown).toEqual({ w: "COMPLETED", b: "QUEUED" });
  expect(trial.state.signals.size).toBe(0);
});

test("one of another name does not, and is kept", () => {
  const trial = new Trial(workflow([wait("w")])).begin();
  trial.does({ kind: "signal", name: "other", data: { json: 1 } });
  expect(trial.shown).toEqual({ w: "WAITING signal" });
  expect(trial.state.signals.get("other")).toEqual([{ json: 1 }]);
});

describe("signals that come early", () => {
  test("are kept, and each wait takes the oldest when its turn comes", () => {
    const trial = new Trial(workflow([node("a"), wait("w1", ["a"]), wait("w2", ["w1"]), wait("w3", ["w2"])])).begin();
    signals(trial, 1, 2).completes("a");
    expect(trial.view("w1").output).toEqual({ json: 1 });
    expect(trial.view("w2").output).toEqual({ json: 2 });
    expect(trial.shown["w3"]).toBe("WAITING signal");
    expect(signals(trial, 3).view("w3").output).toEqual({ json: 3 });
  });

  test("are taken one each by waits that become ready together", () => {
    const trial = new Trial(workflow([node("a"), wait("w1", ["a"]), wait("w2", ["a"]), wait("w3", ["a"])])).begin();
    signals(trial, 1, 2).completes("a");
    expect([trial.view("w1").output, trial.view("w2").output]).toEqual([{ json: 1 }, { json: 2 }]);
    expect(trial.shown["w3"]).toBe("WAITING signal");
  });

  test("may come before it is triggered, and while it is paused", () => {
    const trial = signals(new Trial(workflow([wait("w1"), wait("w2", ["w1"]), node("z", ["w2"])])).hold(), 1);
    expect(trial.summary.status).toBe("PENDING");
    trial.does({ kind: "trigger" }).does({ kind: "pause" });
    expect(signals(trial, 2).summary.status).toBe("PAUSED");
    trial.does({ kind: "resume" });
    expect([trial.view("w1").output, trial.view("w2").output]).toEqual([{ json: 1 }, { json: 2 }]);
  });

  test("outlive a generation", () => {
    const trial = new Trial(workflow([node("a"), wait("w", ["a"])])).begin();
    signals(trial, 5).fails("a").does({ kind: "trigger" }).completes("a");
    expect(trial.view("w").output).toEqual({ json: 5 });
  });
});

test("of several waits the one that has waited longest gets the signal", () => {
  const nodes = [node("a"), node("b"), wait("second", ["b"]), wait("first", ["a"])];
  const trial = new Trial(workflow(nodes)).begin().completes("a").completes("b");
  expect(signals(trial, 1).shown).toMatchObject({ first: "COMPLETED", second: "WAITING signal" });
  expect(signals(trial, 2).view("second").output).toEqual({ json: 2 });
});

test("a name keeps no more than 100 that nobody has taken", () => {
  expect(MAX_SIGNALS).toBe(100);
  const trial = new Trial(workflow([node("a"), wait("w", ["a"])])).begin();
  signals(trial, ...Array.from({ length: 100 }, (_, i) => i));
  expect(trial.ask({ kind: "signal", name: "go", data: { json: 100 } })).toMatchObject({ refused: "RATE_LIMITED" });
  expect(trial.ask({ kind: "signal", name: "other", data: { json: 1 } })).toHaveProperty("ok");
  trial.completes("a");
  expect(trial.view("w").output).toEqual({ json: 0 });
});

test("and an execution no more than 1,000, but one that somebody waits for is not kept", () => {
  const trial = new Trial(workflow([wait("w")])).begin();
  const send = (name: string): unknown => trial.ask({ kind: "signal", name, data: { json: 1 } });
  for (let i = 0; i < 1_000; i++) expect(send(`early ${i % 500}`)).toHaveProperty("ok");
  expect(send("early 1")).toMatchObject({ refused: "RATE_LIMITED" });
  expect(send("one more")).toMatchObject({ refused: "RATE_LIMITED" });
  expect(send("go")).toHaveProperty("ok");
  expect(trial.shown).toEqual({ w: "COMPLETED" });
});

test("a signal to one that is over is refused", () => {
  const trial = new Trial(workflow([wait("w")])).begin().does({ kind: "cancel" });
  expect(trial.ask({ kind: "signal", name: "go", data: { json: 1 } })).toEqual({
    refused: "ALREADY_TERMINAL",
    execution: { execution_id: "x", status: "CANCELLED", generation: 1 },
  });
});

test("the same signal sent again is one signal", () => {
  const trial = new Trial(workflow([wait("w1"), wait("w2")])).begin();
  trial.ask({ kind: "signal", name: "go", data: { json: 1 }, request: "s" });
  trial.ask({ kind: "signal", name: "go", data: { json: 1 }, request: "s" });
  expect(trial.last.events).toEqual([]);
  expect(trial.shown).toEqual({ w1: "COMPLETED", w2: "WAITING signal" });
});

test("a wait that has timed out takes none", () => {
  const late = engineNode("w", "wait", { signal: "go", timeout_seconds: 5 }, [], { on_error: "fail_branch" });
  const trial = new Trial(workflow([late, node("other")])).begin().at(5000).settle();
  expect(trial.view("w").error?.code).toBe("SIGNAL_TIMEOUT");
  expect(signals(trial, 1).state.signals.get("go")).toEqual([{ json: 1 }]);
});
