import { describe, expect, test } from "vitest";
import { executionMachine } from "../machine.ts";
import { REMEMBERED_REQUESTS } from "../state.ts";
import { message, node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";

const chain = workflow([node("a"), node("b", ["a"])]);

test("a cancel ends the execution by one event, whatever is open in it", () => {
  const trial = new Trial(chain).begin();
  const events = trial.send({ kind: "cancel", request: "r1" }, "ann");
  expect(events).toEqual([
    {
      kind: "commandApplied",
      command: "cancel",
      request: "r1",
      by: "ann",
      atMs: START_MS,
      status: "CANCELLED",
      generation: 1,
    },
    { kind: "executionEnded", atMs: START_MS, status: "cancelled", reason: "cancel" },
  ]);
  expect(trial.last.reply).toEqual({ ok: { execution_id: "x", status: "CANCELLED", generation: 1 } });
  expect(trial.shown).toEqual({ a: "CANCELLED cancel", b: "CANCELLED cancel" });
  expect(executionMachine.withdrawn(trial.state)).toEqual([trial.token("a")]);
});

test("the same request again gets the same answer, and nothing happens", () => {
  const trial = new Trial(chain).begin();
  trial.send({ kind: "cancel", request: "r1" });
  const { reply } = trial.last;
  expect(trial.send({ kind: "cancel", request: "r1" })).toEqual([]);
  expect(trial.last.reply).toEqual(reply);
});

describe("a cancel of what has ended", () => {
  test("is refused with what it found, and says so again when asked again", () => {
    const trial = new Trial(workflow([node("a")])).begin().completes("a");
    const refused = {
      refused: "ALREADY_TERMINAL",
      execution: { execution_id: "x", status: "COMPLETED", generation: 1 },
    };
    expect(trial.send({ kind: "cancel", request: "r2" })).toMatchObject([
      { kind: "commandRefused", code: "ALREADY_TERMINAL" },
    ]);
    expect(trial.last.reply).toEqual(refused);
    expect(trial.send({ kind: "cancel", request: "r2" })).toEqual([]);
    expect(trial.last.reply).toEqual(refused);
  });

  test("by another request than the first cancel is refused", () => {
    const trial = new Trial(chain).begin();
    trial.send({ kind: "cancel", request: "r1" });
    trial.send({ kind: "cancel", request: "r2" });
    expect(trial.last.reply).toMatchObject({ refused: "ALREADY_TERMINAL" });
    expect(trial.state.status).toBe("cancelled");
  });
});

test("nothing is dispatched, and no timer is left, after a cancel", () => {
  const trial = new Trial(workflow([node("a"), node("b"), node("c", ["b"])])).begin();
  trial.fails("a", RETRYABLE);
  trial.send({ kind: "cancel", request: "r" });
  trial.at(10_000_000).settle();
  expect(trial.last.events).toEqual([]);
  expect(executionMachine.nextWakeMs(trial.state)).toBeNull();
  expect(executionMachine.hasWork(trial.state)).toBe(false);
  expect(executionMachine.openTasks(trial.state, trial.context)).toEqual({ tasks: [], needs: [] });
  expect([...executionMachine.liveTasks(trial.state)]).toEqual([]);
});

test("an execution that was accepted and not started can be cancelled", () => {
  const trial = new Trial(chain);
  const [accepted] = executionMachine.decide(
    trial.state,
    message({ kind: "start", workflow: "w", definition: "hash", input: { json: null }, bodyHash: "b" }),
    trial.context,
  ).events;
  trial.apply(accepted!);
  expect(trial.step()).toEqual([]);
  trial.send({ kind: "cancel", request: "r" });
  expect(trial.state.status).toBe("cancelled");
});

test("only the newest requests are remembered", () => {
  const trial = new Trial(workflow([node("a")])).begin().completes("a");
  for (let i = 0; i <= REMEMBERED_REQUESTS; i++) {
    trial.apply({ kind: "commandRefused", command: "cancel", request: `r${i}`, by: "b", code: "C", atMs: START_MS });
  }
  expect(trial.state.requests.size).toBe(REMEMBERED_REQUESTS);
  expect(trial.send({ kind: "cancel", request: "r1" })).toEqual([]);
  expect(trial.send({ kind: "cancel", request: "r0" }).length).toBe(1);
});
