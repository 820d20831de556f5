import { describe, expect, test } from "vitest";
import { momentInWords } from "../in-words.ts";
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
const NOW = START_MS + 12_000;
const SINCE = momentInWords(START_MS, NOW);
const of = (trial: Trial, id: string): Explanation => explain(trial.state, id, NOW)[0]!;

describe("each thing that a node can wait for has its sentence", () => {
  const cases: readonly (readonly [string, () => Trial, string, Partial<Explanation>])[] = [
    [
      "held",
      () => new Trial(workflow([node("a")])).hold(),
      "a",
      { reason: "held", sentence: "a waits: the execution has not been triggered yet" },
    ],
    [
      "parents",
      () => new Trial(workflow([node("p"), node("q"), node("a", ["p", "q"])])).begin().completes("p"),
      "a",
      {
        reason: "parents",
        sentence: "a waits for q (queued 12 s, attempt 1 of 3)",
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
      { sentence: "a waits for 2 of 2 dependencies: p, q" },
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
        sentence: 'a waits in queue "step" for a worker to take it (attempt 1 of 3)',
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
      { reason: "running", sentence: "a is running on a worker (12 s, attempt 1 of 3)", untilMs: START_MS + 40_000 },
    ],
    [
      "its next attempt",
      () => new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE),
      "a",
      {
        reason: "retry",
        sentence: "a is tried again in 0 s: attempt 1 of 3 failed with HANDLER_ERROR: broke",
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
        sentence: 'a waits for the signal "go"; expires in 0 s',
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
        sentence: `a waits for ann, bob since ${SINCE}; expires in 38 s; decide: millrace approve x:1:a`,
        untilMs: START_MS + 50_000,
        details: { title: "Right?", assignees: ["ann", "bob"] },
      },
    ],
    [
      "anybody",
      () => new Trial(workflow([engineNode("a", "review", { due_seconds: 50, on_due: "fail" })])).begin(),
      "a",
      { sentence: `a waits for a person since ${SINCE}; expires in 38 s; decide: millrace approve x:1:a` },
    ],
    [
      "a second person",
      () => {
        const config = { four_eyes: true, due_seconds: 50, on_due: "fail" };
        const trial = new Trial(workflow([engineNode("a", "review", config)])).begin();
        const decision = { decision: "approve", data: null } as const;
        trial.ask({ kind: "decideReview", instance: "a", generation: 1, ...decision }, "ann");
        return trial;
      },
      "a",
      {
        sentence: `a waits for a second person, after ann said approve, since ${SINCE}; expires in 38 s; decide: millrace approve x:1:a`,
        details: { first: { by: "ann", decision: "approve" } },
      },
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
        sentence: "a waits for its items: 0 of 3 are done, 2 are under way",
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
      { reason: "timer", sentence: "a has ended round 1; the next begins in 0 s", untilMs: START_MS + 5000 },
    ],
    [
      "a resume",
      () => {
        const trial = new Trial(workflow([node("a")]));
        trial.send(startBody());
        return trial.does({ kind: "pause" });
      },
      "a",
      { reason: "paused", sentence: "a is ready, and the execution is paused" },
    ],
    [
      "a resume, after an attempt that failed",
      () => new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE).does({ kind: "pause" }).at(5000).settle(),
      "a",
      {
        reason: "paused",
        sentence: "a is tried again once the execution is resumed: attempt 1 of 3 failed with HANDLER_ERROR: broke",
        details: { attempt: 1, code: "HANDLER_ERROR" },
      },
    ],
    [
      "a parent whose next attempt is due",
      () =>
        new Trial(workflow([node("p"), node("a", ["p"])]))
          .begin()
          .fails("p", RETRYABLE)
          .does({ kind: "pause" })
          .at(5000)
          .settle(),
      "a",
      { reason: "parents", sentence: "a waits for p (waiting for its next attempt)" },
    ],
    [
      "the engine",
      () => {
        const trial = new Trial(workflow([engineNode("a", "input")]));
        trial.send(startBody());
        return trial;
      },
      "a",
      { reason: "next", sentence: "a is about to run in the engine" },
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

describe("how it stands with the only parent that is missing", () => {
  const cases: readonly (readonly [string, () => Trial, string])[] = [
    [
      "running",
      () => {
        const trial = new Trial(workflow([node("p"), node("a", ["p"])])).begin();
        trial.fails("p", RETRYABLE).at(2000).settle();
        trial.starts("p");
        return trial;
      },
      "running 10 s, attempt 2 of 3",
    ],
    [
      "between attempts",
      () => new Trial(workflow([node("p"), node("a", ["p"])])).begin().fails("p", RETRYABLE),
      "waiting for its next attempt",
    ],
    [
      "a map",
      () =>
        new Trial(workflow([mapNode("p", { items: [1, 2, 3], handler: "step" }), node("a", ["p"])]))
          .begin()
          .completes("p[1]"),
      "1 of 3 items done",
    ],
    [
      "a review",
      () =>
        new Trial(workflow([engineNode("p", "review", { due_seconds: 50, on_due: "fail" }), node("a", ["p"])])).begin(),
      "waiting for a person",
    ],
    [
      "a parent that waits itself",
      () => new Trial(workflow([node("o"), node("p", ["o"]), node("a", ["p"])])).begin(),
      "not begun",
    ],
  ];

  test.each(cases)("%s", (_, make, standing) => {
    expect(of(make(), "a").sentence).toBe(`a waits for p (${standing})`);
  });
});

describe("what will not run, or was skipped while others go on", () => {
  const branch = { on_error: "fail_branch" } as const;

  test("waits for the rest, though it is known that it will not run", () => {
    const trial = new Trial(workflow([node("merge", [], branch), node("o"), node("done", ["merge", "o"])])).begin();
    expect(of(trial.fails("merge"), "done").sentence).toBe(
      'done will not run: "merge" failed and its on_error is "fail_branch"; it is skipped once o has ended',
    );
  });

  test("tells by whose failure", () => {
    const trial = new Trial(workflow([node("merge", [], branch), node("done", ["merge"]), node("o")])).begin();
    const told = of(trial.fails("merge"), "done");
    expect([told.reason, told.sentence]).toEqual([
      "upstream_failed",
      'done was skipped: "merge" failed and its on_error is "fail_branch"',
    ]);
  });

  test("tells what its condition has read", () => {
    const condition = "merge.confidence < input.least && merge.confidence > 0.0";
    const trial = new Trial(workflow([node("merge"), node("flag", ["merge"], { condition }), node("o")]));
    trial.begin({ json: { least: 0.8 } }).completes("merge", { confidence: 0.91 });
    const told = of(trial, "flag");
    expect([told.reason, told.sentence]).toEqual([
      "condition",
      "flag was skipped: its condition was false (merge.confidence 0.91, input.least 0.8)",
    ]);
  });

  test("tells that nothing before it ran, or that a router chose another way", () => {
    const routes = engineNode("r", "router", {
      mode: "exclusive",
      routes: [
        { when: "true", to: ["x"] },
        { when: "true", to: ["y"] },
      ],
      on_error: "fail",
    });
    const trial = new Trial(workflow([routes, node("x", ["r"]), node("y", ["r"]), node("z", ["y"])])).begin();
    expect(of(trial, "y").sentence).toBe("y was skipped: the router before it chose another way");
    expect(of(trial, "z").sentence).toBe("z was skipped: nothing that it depends on has run");
  });
});

test("a delivery that was lost waits for its turn again", () => {
  const trial = new Trial(workflow([node("a")])).begin();
  trial.room = () => 0;
  expect(of(trial.loses("a"), "a").reason).toBe("window");
});

test("a part of a large map speaks of parts", () => {
  const map = mapNode("m", { items: Array.from({ length: 2001 }, () => 0), handler: "step" });
  expect(of(new Trial(workflow([map])).begin(), "m").sentence).toBe(
    "m waits for its parts: 0 of 3 are done, 1 are under way",
  );
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
  expect(sentence).toMatch(/^a waits for 30 of 30 dependencies: p0, .*, p19 …$/);
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
