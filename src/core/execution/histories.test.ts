import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import type { TaskText } from "./prepare.ts";
import { imprint } from "./test-execution.ts";
import { randomBeginning, randomHistory, runOut } from "./test-histories.ts";

/*
 * What holds in every state that messages, time and loss can lead to. After each single decision of these histories
 * `Trial` has already checked that it changed nothing by itself, that the state does not contradict itself, that every
 * open node is explained and that the sweep finds nothing.
 */
const whole = Array.from({ length: 150 }, (_, i) => randomHistory(1000 + i));
const begun = Array.from({ length: 300 }, (_, i) => randomBeginning(5000 + i));

describe("in every random history", () => {
  test("the state is the fold of its events", () => {
    for (const trial of [...whole, ...begun]) {
      const fold = executionMachine.create("x", trial.state.plan);
      for (const event of trial.events) executionMachine.evolve(fold, event);
      expect(imprint(fold)).toBe(imprint(trial.state));
    }
  });

  test("events survive being written and read", () => {
    for (const { events } of whole) expect(JSON.parse(JSON.stringify(events))).toEqual(events);
  });

  test("a task made again is the one that went out", () => {
    let compared = 0;
    for (const trial of begun) {
      for (const task of executionMachine.openTasks(trial.state, trial.context).tasks) {
        expect(task).toEqual(trial.tasks.findLast(({ token }) => token === task.token));
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(100);
  });

  test("each token is given out once", () => {
    for (const { tasks } of whole) expect(new Set(tasks.map(({ token }) => token)).size).toBe(tasks.length);
  });

  test("a key names its execution, node, item and round", () => {
    for (const { tasks } of whole) {
      for (const { text } of tasks) {
        const { idempotencyKey, node, item, iteration } = JSON.parse(text) as TaskText;
        const place = item === undefined ? "" : `[${item}]`;
        const round = iteration === undefined ? "" : `@${iteration}`;
        expect(idempotencyKey.replace(/\/\d+$/, "")).toBe(`x/${node}${place}${round}`);
      }
    }
  });

  test("generations are counted, and every letter that the state knows was written", () => {
    for (const trial of whole) {
      const opened = trial.events.filter(({ kind }) => kind === "generationOpened");
      expect(trial.state.generation).toBe(opened.length + 1);
      const written = new Set(trial.letters.map(({ id }) => id));
      for (const letter of trial.state.letters.keys()) expect(written.has(letter)).toBe(true);
    }
  });

  test("the execution ends once everybody answers, and nothing of it stays open", () => {
    for (const trial of [...whole, ...begun]) {
      const { state, listings } = runOut(trial);
      expect(state.isEnded).toBe(true);
      expect([state.orphans.size, state.children.size]).toEqual([0, 0]);
      const open = new Set<string>();
      for (const { id, text } of listings) {
        if (text === null) open.delete(id);
        else open.add(id);
      }
      expect([...open]).toEqual([]);
    }
  });
});
