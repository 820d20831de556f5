import { describe, expect, test } from "vitest";
import type { Answer } from "../machine.ts";
import { type Command, node, START_MS, Trial, workflow } from "./test-execution.ts";

/** Everything that people ask of an execution. */
const COMMANDS: readonly Exclude<Command, { kind: "release" }>[] = [
  { kind: "trigger" },
  { kind: "cancel" },
  { kind: "pause" },
  { kind: "resume" },
  { kind: "retry", scope: "failed" },
  { kind: "signal", name: "s", data: { json: 1 } },
  { kind: "decideReview", instance: "a", generation: 1, decision: "approve", data: null },
  { kind: "discardLetter", letter: "x:1:a" },
];

const running = (): Trial => new Trial(workflow([node("a"), node("b")])).begin();
const over = (): Trial => running().fails("a");

describe.each(COMMANDS)("$kind", (command) => {
  test.each([
    ["that runs", running],
    ["that is over", over],
  ])("of an execution %s is decided once: the same request again has the same answer and no effect", (_, make) => {
    const trial = make();
    const first = trial.ask({ ...command, request: "r", bodyHash: "h" }, "ann");
    const recorded = trial.last.events[0]!;
    const what = "ok" in first ? "commandApplied" : "commandRefused";
    expect(recorded).toMatchObject({ kind: what, command: command.kind, request: "r", by: "ann", bodyHash: "h" });
    trial.settle();
    const { version } = trial.state;
    expect(status(trial.ask({ ...command, request: "r", bodyHash: "h" }))).toEqual(status(first));
    expect(trial.state.version).toBe(version);
  });

  test("under a key that was used for something else is refused", () => {
    const trial = running();
    trial.ask({ ...command, request: "r", bodyHash: "h" });
    const { version } = trial.state;
    expect(trial.ask({ ...command, request: "r", bodyHash: "other" })).toEqual({ refused: "IDEMPOTENCY_KEY_REUSED" });
    expect(trial.state.version).toBe(version);
  });

  test("of what does not exist is refused", () => {
    const trial = new Trial(workflow([node("a")]));
    expect(trial.ask(command)).toEqual({ refused: "NOT_FOUND" });
    expect(trial.last.events).toEqual([]);
  });
});

/** The first answer: what it said of the execution, or the code; a refusal shows the execution as it is now. */
function status(answer: Answer): unknown {
  return "ok" in answer ? answer.ok : answer.refused;
}

test("an answer remembers what it said of the execution, also when that has gone on", () => {
  const trial = running();
  const paused = trial.ask({ kind: "pause", request: "p" });
  trial.does({ kind: "resume" }).does({ kind: "cancel" }).does({ kind: "retry", scope: "failed" });
  expect(trial.ask({ kind: "pause", request: "p" })).toEqual(paused);
  expect(paused).toEqual({ ok: { execution_id: "x", status: "PAUSED", generation: 1 } });
});

test("a request without a hash of its body is known by its id alone", () => {
  const trial = running();
  const answer = trial.ask({ kind: "pause", request: "p" });
  expect(trial.ask({ kind: "pause", request: "p", bodyHash: "h" })).toEqual(answer);
});

test("a refusal tells what the execution is", () => {
  expect(running().ask({ kind: "resume" })).toEqual({
    refused: "NOT_PAUSED",
    execution: { execution_id: "x", status: "RUNNING", generation: 1 },
  });
});

test("requests survive a new generation", () => {
  const trial = over();
  trial.ask({ kind: "retry", scope: "failed", request: "once" });
  trial.settle().fails("a");
  expect(trial.ask({ kind: "retry", scope: "failed", request: "once" })).toMatchObject({ ok: { generation: 2 } });
  expect(trial.state).toMatchObject({ generation: 2, status: "failed" });
});

test("the shell's own release is none of its business", () => {
  const trial = running();
  expect(trial.ask({ kind: "release" })).toEqual({ refused: "NOT_QUARANTINED" });
  expect(trial.last.events).toEqual([]);
  expect(trial.nowMs).toBe(START_MS);
});
