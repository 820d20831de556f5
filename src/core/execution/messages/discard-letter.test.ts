import { expect, test } from "vitest";
import { node, Trial, workflow } from "../test-execution.ts";

const failed = (): Trial => new Trial(workflow([node("a")])).begin().fails("a");
const discard = { kind: "discardLetter", letter: "x:1:a" } as const;

test("a dead letter that is thrown away is gone from the store, and nothing else changes", () => {
  const trial = failed();
  const before = trial.summary;
  expect(trial.ask(discard)).toEqual({ ok: { execution_id: "x", status: "FAILED", generation: 1 } });
  expect(trial.last).toMatchObject({ discard: ["x:1:a"], deadLetters: [] });
  expect(trial.last.events).toMatchObject([{ kind: "commandApplied" }, { kind: "letterDiscarded", letter: "x:1:a" }]);
  expect(trial.summary).toEqual({ ...before, version: before.version + 2 });
});

test("it cannot be thrown away twice, nor replayed after that", () => {
  const trial = failed().does(discard);
  expect(trial.ask(discard)).toMatchObject({ refused: "NOT_FOUND" });
  const letters = trial.letters.slice(0, 1);
  expect(trial.ask({ kind: "retry", scope: "letters", letters })).toMatchObject({ refused: "NOT_FOUND" });
});

test("it can be thrown away while the execution runs, and after it was replayed", () => {
  const trial = new Trial(workflow([node("a", [], { on_error: "fail_branch" }), node("b")])).begin().fails("a");
  expect(trial.ask(discard)).toMatchObject({ ok: { status: "RUNNING" } });
  const other = failed();
  other.does({ kind: "retry", scope: "letters", letters: other.letters.slice(0, 1) });
  expect(other.ask(discard)).toMatchObject({ ok: { status: "RUNNING", generation: 2 } });
});

test("one of another node or execution is not found", () => {
  expect(failed().ask({ ...discard, letter: "x:1:b" })).toMatchObject({ refused: "NOT_FOUND" });
  expect(failed().ask({ ...discard, letter: "y:1:a" })).toMatchObject({ refused: "NOT_FOUND" });
});
