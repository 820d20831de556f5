import { expect, test } from "vitest";
import { lettersLeft } from "./letters-left.ts";
import { ExecutionState } from "./state.ts";
import { node, Trial, workflow } from "./test-execution.ts";

const HOPELESS = { code: "BROKEN", retryable: false } as const;
const statuses = (trial: Trial): readonly (readonly [id: string, status: string])[] =>
  lettersLeft(new ExecutionState(trial.state.id, trial.state.plan), trial.events).map(({ id, text }) => [
    id,
    (JSON.parse(text) as { status: string }).status,
  ]);

test("the letter of a node that failed is the one that was written then", () => {
  const trial = new Trial(workflow([node("a")])).begin();
  trial.fails("a", HOPELESS);
  const [written] = trial.letters;
  const [left] = lettersLeft(new ExecutionState(trial.state.id, trial.state.plan), trial.events);
  expect(left).toEqual({ ...written, atMs: expect.any(Number) as number });
});

test("one that was replayed says so, and one that was discarded is none", () => {
  const trial = new Trial(workflow([node("a")])).begin();
  trial.fails("a", HOPELESS);
  expect(statuses(trial)).toEqual([[`${trial.state.id}:1:a`, "open"]]);
  const [letter] = trial.letters;
  trial.send({ kind: "retry", request: "r", scope: "letters", letters: [letter!] });
  expect(statuses(trial)).toEqual([[`${trial.state.id}:1:a`, "replayed"]]);
  trial.send({ kind: "discardLetter", request: "d", letter: letter!.id });
  expect(statuses(trial)).toEqual([]);
});
