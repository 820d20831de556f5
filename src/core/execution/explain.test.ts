import { describe, expect, test } from "vitest";
import { explain, type Explanation } from "./explain.ts";
import {
  engineNode,
  failure,
  mapNode,
  node,
  RETRYABLE,
  START_MS,
  startBody,
  Trial,
  workflow,
} from "./test-execution.ts";

const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);
const of = (trial: Trial, id: string): Explanation => explain(trial.state, id)[0]!;

describe("each thing that a node can wait for has its sentence", () => {
  const cases: readonly (readonly [string, () => Trial, string, Partial<Explanation>])[] = [
    [
      "held",
      () => new Trial(workflow([node("a")])).hold(),
      "a",
      { reason: "held", sentence: "The execution was accepted and has not been triggered yet." },
    ],
    [
      "parents",
      () => new Trial(workflow([node("p"), node("q"), node("a", ["p", "q"])])).begin().completes("p"),
      "a",
      {
        reason: "parents",
        sentence: "It waits for its parent: q.",
        details: { join: "none_failed", missing: ["q"], missing_count: 1, ok: 1, bad: 0 },
      },
    ],
    [
      "parents, with the time that the join gives them",
      () =>
        new Trial(workflow([node("p"), node("q"), node("a", ["p", "q"], { join_timeout_seconds: 7 })]))
          .begin()
          .completes("p"),
      "a",
      { reason: "parents", untilMs: START_MS + 7000 },
    ],
    [
      "several parents",
      () => new Trial(workflow([node("p"), node("q"), node("a", ["p", "q"])])).begin(),
      "a",
      { sentence: "It waits for 2 parents: p, q." },
    ],
    [
      "the parallel limit",
      () => new Trial(workflow([node("p"), node("a")], { max_parallel_nodes: 1 })).begin(),
      "a",
      { reason: "parallel", details: { limit: 1 } },
    ],
    [
      "room in its queue",
      () => new Trial(workflow([node("a")]), { room: () => 0 }).begin(),
      "a",
      { reason: "window", details: { queue: "step" } },
    ],
    [
      "a worker",
      () => new Trial(workflow([node("a", [], { queue_timeout_seconds: 60 })])).begin(),
      "a",
      {
        reason: "queued",
        sentence: 'It waits in queue "step" for a worker to take it (attempt 1).',
        untilMs: START_MS + 60_000,
        details: { queue: "step", attempt: 1, delivery: 1 },
      },
    ],
    [
      "its handler",
      () => {
        const trial = new Trial(workflow([node("a")])).begin();
        trial.starts("a");
        return trial;
      },
      "a",
      { reason: "running", sentence: "A worker runs it (attempt 1).", untilMs: START_MS + 40_000 },
    ],
    [
      "its next attempt",
      () => new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE),
      "a",
      {
        reason: "retry",
        sentence: "Attempt 1 of 3 failed: broke. It is tried again.",
        untilMs: START_MS + 1000,
        details: { attempt: 1, code: "HANDLER_ERROR" },
      },
    ],
    [
      "a timer",
      () => new Trial(workflow([engineNode("a", "wait", { seconds: 5 })])).begin(),
      "a",
      { reason: "timer", untilMs: START_MS + 5000 },
    ],
    [
      "a date",
      () => new Trial(workflow([engineNode("a", "wait", { until: new Date(START_MS + 9000).toISOString() })])).begin(),
      "a",
      { reason: "timer", untilMs: START_MS + 9000 },
    ],
    [
      "a signal",
      () => new Trial(workflow([engineNode("a", "wait", { signal: "go", timeout_seconds: 5 })])).begin(),
      "a",
      {
        reason: "signal",
        sentence: 'It waits for the signal "go".',
        untilMs: START_MS + 5000,
        details: { signal: "go" },
      },
    ],
    [
      "a person",
      () => {
        const config = { due_seconds: 50, on_due: "fail", title: "Right?", assignees: ["ann", "bob"] };
        return new Trial(workflow([engineNode("a", "review", config)])).begin();
      },
      "a",
      {
        reason: "review",
        sentence: "It waits for ann, bob to decide the review.",
        untilMs: START_MS + 50_000,
        details: { title: "Right?", assignees: ["ann", "bob"] },
      },
    ],
    [
      "anybody",
      () => new Trial(workflow([engineNode("a", "review", { due_seconds: 50, on_due: "fail" })])).begin(),
      "a",
      { sentence: "It waits for somebody to decide the review." },
    ],
    [
      "a child",
      () => new Trial(workflow([engineNode("a", "workflow", { name: "w" })]), { fetched }).begin(),
      "a",
      { reason: "child", untilMs: START_MS + 120_000 },
    ],
    [
      "its items",
      () => new Trial(workflow([mapNode("a", { items: [1, 2, 3], handler: "step", max_concurrency: 2 })])).begin(),
      "a",
      {
        reason: "items",
        sentence: "0 of 3 items are done, 2 are under way.",
        details: { total: 3, completed: 0, failed: 0, open: 2 },
      },
    ],
    [
      "items before it",
      () => new Trial(workflow([mapNode("m", { items: [1, 2, 3], handler: "step", max_concurrency: 2 })])).begin(),
      "m[2]",
      { reason: "items" },
    ],
    [
      "the next round",
      () => {
        const repeat = { until: "false", every_seconds: 5, max: 3 };
        return new Trial(workflow([node("a", [], { repeat })])).begin().completes("a");
      },
      "a",
      { reason: "timer", sentence: "Round 1 is done; the next begins in time.", untilMs: START_MS + 5000 },
    ],
    [
      "a resume",
      () => {
        const trial = new Trial(workflow([node("a")]));
        trial.send(startBody());
        return trial.does({ kind: "pause" });
      },
      "a",
      { reason: "paused", sentence: "It is ready, and the execution is paused." },
    ],
    [
      "the engine",
      () => {
        const trial = new Trial(workflow([engineNode("a", "input")]));
        trial.send(startBody());
        return trial;
      },
      "a",
      { reason: "next", sentence: "The engine is about to run it." },
    ],
    [
      "its skip",
      () => {
        const nodes = [node("p", [], { condition: "false" }), node("a", ["p"]), node("b", ["p"])];
        const trial = new Trial(workflow(nodes), { maxEvents: 1 });
        trial.send(startBody());
        trial.step();
        return trial;
      },
      "b",
      { reason: "next", details: { skip: "condition" } },
    ],
    [
      "a release",
      () => {
        const trial = new Trial(workflow([node("a")])).begin();
        return trial.apply({ kind: "quarantined", atMs: START_MS, error: failure({ code: "BAD" }) });
      },
      "a",
      { reason: "quarantined", details: { code: "BAD" } },
    ],
  ];

  test.each(cases)("%s", (_, make, id, expected) => {
    expect(of(make(), id)).toMatchObject({ node: id, ...expected });
  });
});

test("a delivery that was lost waits for its turn again", () => {
  const trial = new Trial(workflow([node("a")])).begin();
  trial.room = () => 0;
  expect(of(trial.loses("a"), "a").reason).toBe("window");
});

test("a part of a large map speaks of parts", () => {
  const map = mapNode("m", { items: Array.from({ length: 2001 }, () => 0), handler: "step" });
  expect(of(new Trial(workflow([map])).begin(), "m").sentence).toBe("0 of 3 parts are done, 1 are under way.");
});

test("of many missing parents twenty are named, and all are counted", () => {
  const parents = Array.from({ length: 30 }, (_, i) => node(`p${i}`));
  const trial = new Trial(
    workflow([
      ...parents,
      node(
        "a",
        parents.map(({ id }) => id),
      ),
    ]),
  ).begin();
  const { sentence, details } = of(trial, "a");
  expect(sentence).toMatch(/^It waits for 30 parents: p0, .*, p19 …\.$/);
  expect([(details["missing"] as string[]).length, details["missing_count"]]).toEqual([20, 30]);
});

describe("the list", () => {
  test("has one entry for each node that has not ended", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"]), node("c")])).begin().completes("c");
    expect(explain(trial.state).map(({ node: id, reason }) => [id, reason])).toEqual([
      ["a", "queued"],
      ["b", "parents"],
    ]);
  });

  test("is empty once all is over", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin().does({ kind: "cancel" });
    expect(explain(trial.state)).toEqual([]);
    expect(explain(trial.state, "a")).toEqual([]);
  });

  test("of a node that has ended, or does not exist, is empty", () => {
    const trial = new Trial(workflow([node("a"), node("b")])).begin().completes("a");
    expect(explain(trial.state, "a")).toEqual([]);
    expect(explain(trial.state, "zz")).toEqual([]);
  });
});

test("a state that is damaged is not glossed over", () => {
  const trial = new Trial(workflow([node("a"), engineNode("w", "wait", { seconds: 5 })])).begin();
  const other = new Trial(workflow([node("a"), node("b", ["a"])]), { room: () => 0 }).begin();
  other.state.inLine[0] = 0;
  expect(of(other, "a").reason).toBe("stuck");
  trial.state.runs[1]!.wait = null;
  trial.state.runs[1]!.dueAtMs = null;
  expect(of(trial, "w").reason).toBe("stuck");
});
