import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import type { TaskText } from "./prepare.ts";
import { node, RETRYABLE, Trial, workflow } from "./test-execution.ts";

const fast = { id: "fast", output: { n: 1 } };

/** A join that runs at its first parent, and reads both. */
function early(): Trial {
  const config = {
    fast: "{{ fast.n | default(0) }}",
    slow: "{{ slow.n | default(0) }}",
    why: '{{ bad.error.code | default("none") }}',
  };
  const nodes = [
    node("fast"),
    node("slow"),
    node("bad", [], { on_error: "continue" }),
    node("j", ["fast", "slow", "bad"], { join: "one_success", inputs: true, config }),
  ];
  return new Trial(workflow(nodes)).begin().completes(fast.id, fast.output);
}

const given = { config: { fast: 1, slow: 0, why: "none" }, inputs: { fast: { n: 1 } } };

function lateParents(trial: Trial): Trial {
  return trial.completes("slow", { n: 2 }).fails("bad", { code: "BROKE" });
}

describe("a task that is made again is the same task, whatever its parents have given since", () => {
  test("for the first time it has what had ended by then", () => {
    expect(early().task("j")).toMatchObject({ attempt: 1, delivery: 1, ...given });
  });

  test.each<[string, (trial: Trial) => Trial, object]>([
    ["delivered again after a lost worker", (t) => t.loses("j"), { attempt: 1, delivery: 2 }],
    ["tried again after a failure", (t) => t.fails("j", RETRYABLE).at(100_000).settle(), { attempt: 2, delivery: 1 }],
    [
      "tried again twice",
      (t) => t.fails("j", RETRYABLE).at(100_000).settle().fails("j", RETRYABLE).at(200_000).settle(),
      { attempt: 3 },
    ],
  ])("%s", (_, again, which) => {
    const trial = again(lateParents(early()));
    expect(trial.task("j")).toMatchObject({ ...given, ...which });
    const dispatches = trial.events.filter((event) => event.kind === "taskDispatched" && event.node === "j");
    const hashes = dispatches.map((event) => (event.kind === "taskDispatched" ? [event.seen, event.inputHash] : []));
    expect(new Set(hashes.map(String)).size).toBe(1);
  });

  test("put back after a restart of a store that keeps no tasks", () => {
    const trial = lateParents(early());
    const { tasks } = executionMachine.openTasks(trial.state, trial.context);
    expect(tasks.map(({ text }) => JSON.parse(text) as TaskText)).toMatchObject([
      { node: "j", attempt: 1, delivery: 1, ...given },
    ]);
    expect(tasks).toEqual(trial.tasks.filter(({ token }) => token === trial.token("j")));
  });

  test("restored from a snapshot", () => {
    const trial = lateParents(early());
    const { plan } = trial.state;
    const restored = executionMachine.restore("x", plan, executionMachine.snapshot(trial.state));
    expect(executionMachine.openTasks(restored, trial.context)).toEqual(
      executionMachine.openTasks(trial.state, trial.context),
    );
  });
});

describe("open tasks", () => {
  test("are those that were dispatched and have not ended, with the tokens they went out under", () => {
    const trial = new Trial(workflow([node("a"), node("b"), node("c", ["a"]), node("w")])).begin();
    trial.completes("b").fails("w", RETRYABLE).loses("a");
    const { tasks, needs } = executionMachine.openTasks(trial.state, trial.context);
    expect([tasks.map(({ token }) => token), needs]).toEqual([[trial.token("a")], []]);
    expect(tasks[0]).toEqual(trial.tasks.at(-1));
  });

  test("of a large config point to the same blob, and say what is in it", () => {
    const config = { a: "{{ input.text }}", b: "{{ input.text }}" };
    const trial = new Trial(workflow([node("a", [], { config })])).begin({ json: { text: "x".repeat(40_000) } });
    const { tasks, blobs } = executionMachine.openTasks(trial.state, trial.context);
    expect(tasks).toEqual(trial.tasks);
    const { body } = JSON.parse(tasks[0]!.text) as { body: { hash: string } };
    expect(blobs).toEqual([{ hash: body.hash, text: expect.stringContaining("x".repeat(40_000)) }]);
  });

  test("ask for the large values they read", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"], { config: { n: "{{ a.n }}" } })])).begin();
    const blob = { hash: "h1", bytes: 70_000 };
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob }, runningMs: 1 });
    trial.fetched.set("h1", { n: 5 });
    trial.settle();
    trial.fetched.clear();
    expect(executionMachine.openTasks(trial.state, trial.context)).toEqual({ tasks: [], needs: [{ blob }] });
    trial.fetched.set("h1", { n: 5 });
    expect(executionMachine.openTasks(trial.state, trial.context).tasks).toEqual([trial.tasks.at(-1)]);
  });
});
