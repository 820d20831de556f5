import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import { GRACE_MS } from "./messages/task-started.ts";
import { engineNode, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";

const branch = { on_error: "fail_branch" } as const;

describe("join_timeout_seconds", () => {
  const join = node("j", ["a", "b", "c"], { join_timeout_seconds: 10, ...branch });
  const joining = (): Trial => new Trial(workflow([node("a"), node("b"), node("c"), join])).begin();

  test("counts from the first parent that has finished, and names those that are missing", () => {
    const trial = joining().at(60_000).settle();
    expect(trial.shown["j"]).toBe("PENDING");
    trial.completes("b").at(65_000).completes("a");
    expect(trial.at(69_999).settle().shown["j"]).toBe("PENDING");
    trial.at(70_000);
    expect(trial.step()).toMatchObject([
      {
        kind: "nodeFailed",
        node: "j",
        error: {
          code: "JOIN_TIMEOUT",
          retryable: false,
          message: "Not all of its parents ended within 10 s of the first; missing: c",
          details: { missing: ["c"] },
        },
      },
    ]);
    expect(trial.last.deadLetters).toMatchObject([{ id: "x:1:j", class: "poison" }]);
  });

  test("counts from a parent that failed or was skipped just so", () => {
    const nodes = [node("a", [], { condition: "false" }), node("b"), node("c"), join];
    const trial = new Trial(workflow(nodes)).begin().at(10_000).settle();
    expect(trial.view("j").error).toMatchObject({ details: { missing: ["b", "c"] } });
  });

  test("is over once the join has spoken", () => {
    const trial = joining().completes("a").completes("b").completes("c").at(60_000).settle();
    expect(trial.view("j")).toMatchObject({ status: "QUEUED", until: null });
    const early = { ...join, join: "one_success" } as const;
    const first = new Trial(workflow([node("a"), node("b"), node("c"), early])).begin().completes("a");
    expect(first.at(60_000).settle().shown["j"]).toBe("QUEUED");
  });

  test("is over once it is skipped", () => {
    const strict = { ...join, join: "quorum:3" } as const;
    const trial = new Trial(workflow([node("a"), node("b"), node("c", [], branch), strict])).begin();
    trial.completes("a").fails("c").at(60_000).settle();
    expect(trial.shown["j"]).toBe("SKIPPED upstream_failed");
  });

  test("of a root counts for nothing", () => {
    expect(new Trial(workflow([node("a", [], { join_timeout_seconds: 1 })])).begin().at(9000).settle().shown).toEqual({
      a: "QUEUED",
    });
  });

  test("under fail_fast fails the execution", () => {
    const strict = { ...join, on_error: "fail_fast" } as const;
    const trial = new Trial(workflow([node("a"), node("b"), node("c"), strict])).begin().completes("a");
    trial.at(10_000).settle();
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "JOIN_TIMEOUT", node: "j" } });
  });

  test("of many parents names twenty", () => {
    const parents = Array.from({ length: 30 }, (_, i) => node(`p${i}`));
    const wide = node(
      "j",
      parents.map(({ id }) => id),
      { join_timeout_seconds: 1, ...branch },
    );
    const trial = new Trial(workflow([...parents, wide])).begin().completes("p0").at(1000).settle();
    expect(trial.view("j").error?.message).toMatch(/p1, p2, .*, p20 and 9 more$/);
    expect(trial.view("j").error?.details).toEqual({ missing: parents.slice(1).map(({ id }) => id) });
  });

  test("does not fail a join whose last parent ends in the same moment", () => {
    const wait = (id: string, seconds: number): ReturnType<typeof engineNode> => engineNode(id, "wait", { seconds });
    const both = node("j", ["w1", "w2"], { join_timeout_seconds: 5, ...branch });
    const trial = new Trial(workflow([wait("w1", 1), wait("w2", 4), both])).begin();
    // The owner was away: everything is due at once.
    trial.at(1000).settle().at(60_000).settle();
    expect(trial.shown).toEqual({ w1: "COMPLETED", w2: "COMPLETED", j: "QUEUED" });
  });

  test("waits until every result before it has been read", () => {
    const trial = joining().completes("a").at(20_000);
    trial.deadlineMs = START_MS + 9000;
    expect(trial.step()).toEqual([]);
    trial.completes("b").completes("c");
    expect(trial.shown["j"]).toBe("QUEUED");
  });
});

describe("what has come due, while messages wait to be read", () => {
  function dueAt(nodes: Parameters<typeof workflow>[0], act: (trial: Trial) => unknown = () => {}): Trial {
    const trial = new Trial(workflow(nodes, { timeout_seconds: 500 })).begin();
    act(trial);
    trial.at(100_000).deadlineMs = START_MS;
    return trial;
  }

  test.each<[string, Trial]>([
    ["the wait in the queue", dueAt([node("a", [], { queue_timeout_seconds: 5 })])],
    ["the timeout of a handler", dueAt([node("a", [], { timeout_seconds: 5 })], (t) => t.starts("a"))],
    ["the wait for a signal", dueAt([engineNode("a", "wait", { signal: "s", timeout_seconds: 5 })])],
    ["a review", dueAt([engineNode("a", "review", { due_seconds: 5, on_due: "fail" })])],
  ])("%s holds still", (_, trial) => {
    expect(trial.step()).toEqual([]);
    trial.deadlineMs = null;
    expect(trial.step().length).toBeGreaterThan(0);
  });

  test.each<[string, Trial, string]>([
    ["a backoff", dueAt([node("a")], (t) => t.fails("a", RETRYABLE)), "retryDue"],
    ["a timer", dueAt([engineNode("a", "wait", { seconds: 5 })]), "nodeCompleted"],
    ["a date", dueAt([engineNode("a", "wait", { until: new Date(START_MS + 5000).toISOString() })]), "nodeCompleted"],
    [
      "the time between two rounds",
      dueAt([node("a", [], { repeat: { until: "false", every_seconds: 5, max: 3 } })], (t) => t.completes("a")),
      "roundDue",
    ],
  ])("%s goes on: nobody could have ended it before", (_, trial, kind) => {
    expect(trial.step()).toMatchObject([{ kind }]);
  });

  test("the workflow's timeout holds still", () => {
    const trial = new Trial(workflow([node("a", [], { queue_timeout_seconds: 900 })], { timeout_seconds: 50 })).begin();
    trial.at(60_000).deadlineMs = START_MS + 49_000;
    expect(trial.step()).toEqual([]);
    expect(trial.completes("a").summary.status).toBe("COMPLETED");
  });
});

test("partition time and the calendar are two clocks", () => {
  const nodes = [
    engineNode("timer", "wait", { seconds: 60 }),
    engineNode("date", "wait", { until: new Date(START_MS + 60_000).toISOString() }),
  ];
  const ahead = new Trial(workflow(nodes)).begin();
  ahead.calendarAheadMs = 100_000;
  expect(ahead.settle().shown).toEqual({ timer: "WAITING timer", date: "COMPLETED" });
  const behind = new Trial(workflow(nodes)).begin().at(60_000);
  behind.calendarAheadMs = -100_000;
  expect(behind.settle().shown).toEqual({ timer: "COMPLETED", date: "WAITING timer" });
  expect(executionMachine.nextWakeMs(behind.state)).toBe(START_MS + 604_800_000);
  expect(executionMachine.nextCalendarMs!(behind.state)).toBe(START_MS + 60_000);
});

test("deadlines of both clocks come in slices of as many events as a decision may have", () => {
  const nodes = [
    ...[1, 2, 3].map((i) => engineNode(`t${i}`, "wait", { seconds: i })),
    ...[1, 2].map((i) => engineNode(`d${i}`, "wait", { until: new Date(START_MS + i * 1000).toISOString() })),
  ];
  const trial = new Trial(workflow(nodes), { maxEvents: 2 }).begin().at(10_000);
  const slices = [];
  for (let events = trial.step(); events.length > 0; events = trial.step()) {
    slices.push(events.map((event) => ("node" in event ? event.node : event.kind)));
  }
  expect(slices).toEqual([["t1", "t2"], ["t3", "d1"], ["d2"], ["executionEnded"]]);
});

test("a running handler has its own timeout, within the workflow's", () => {
  const trial = new Trial(workflow([node("a", [], { timeout_seconds: 300 })], { timeout_seconds: 100 })).begin();
  trial.starts("a");
  expect(trial.view("a").status).toBe("RUNNING");
  expect(trial.state.runs[0]!.dueAtMs).toBe(START_MS + 100_000 + GRACE_MS);
});
