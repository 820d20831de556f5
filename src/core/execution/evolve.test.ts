import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Random } from "../../simulator/random.ts";
import type { ExecutionEvent } from "./events.ts";
import { executionMachine } from "./machine.ts";
import type { JoinVerdict } from "./joins.ts";
import { IllegalMove } from "./moves.ts";
import { join, spread } from "./spread.ts";
import { failure, imprint, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";

const chain = workflow([node("a"), node("b", ["a"])]);
const at = { atMs: START_MS } as const;

describe("an event that no table allows is thrown, not applied", () => {
  const dispatched = {
    kind: "taskDispatched",
    ...at,
    node: "a",
    attempt: 1,
    delivery: 1,
    nonce: "n",
    seen: 2,
    inputHash: "",
    queueDeadlineAtMs: 1,
  } as const;
  const completed = {
    kind: "taskCompleted",
    ...at,
    node: "b",
    attempt: 1,
    delivery: 1,
    startedAtMs: 1,
    output: { json: 1 },
  } as const;
  const ended = { kind: "executionEnded", ...at, status: "completed", reason: "done" } as const;

  test.each<[string, (trial: Trial) => Trial, ExecutionEvent]>([
    ["a completion of a node that is not out", (t) => t, completed],
    ["a second completion", (t) => t.completes("a").completes("b"), completed],
    ["a second dispatch while a backoff runs", (t) => t.fails("a", RETRYABLE), dispatched],
    ["a dispatch of an ended node", (t) => t.completes("a"), dispatched],
    [
      "a start report of a node that waits",
      (t) => t.fails("a", RETRYABLE),
      { kind: "taskStarted", ...at, node: "a", attempt: 1, delivery: 1, startedAtMs: 1, runDeadlineAtMs: 2 },
    ],
    ["the end of a backoff that is none", (t) => t, { kind: "retryDue", ...at, node: "a" }],
    [
      "a lost delivery of a node that is not out",
      (t) => t,
      { kind: "deliveryLost", ...at, node: "b", attempt: 1, delivery: 1, handedBack: false },
    ],
    ["a skip of a node that is out", (t) => t, { kind: "nodeSkipped", ...at, node: "a", reason: "condition" }],
    [
      "an engine's completion of a node that is out",
      (t) => t,
      { kind: "nodeCompleted", ...at, node: "a", output: { json: 1 } },
    ],
    [
      "a failure of a node that has ended",
      (t) => t.completes("a"),
      { kind: "nodeFailed", ...at, node: "a", error: failure() },
    ],
    [
      "a second acceptance",
      (t) => t,
      {
        kind: "accepted",
        ...at,
        workflow: "w",
        definition: "h",
        input: { json: 1 },
        bodyHash: "",
        by: "",
        tenant: "",
        trace: "",
      },
    ],
    ["a second start", (t) => t, { kind: "started", ...at, deadlineAtMs: null }],
    ["a second end", (t) => t.completes("a").completes("b"), ended],
  ])("%s", (_, given, event) => {
    const trial = given(new Trial(chain).begin());
    expect(() => executionMachine.evolve(trial.state, event)).toThrow(IllegalMove);
  });

  test("an end before anything was accepted", () => {
    expect(() => executionMachine.evolve(new Trial(chain).state, ended)).toThrow("no move from new to completed");
  });

  test("an event for a node that the definition does not have", () => {
    const trial = new Trial(chain).begin();
    expect(() => executionMachine.evolve(trial.state, { ...completed, node: "zz" })).toThrow("does not have: zz");
  });
});

test("a parent that ends twice decides its edges once", () => {
  const trial = new Trial(workflow([node("a"), node("b"), node("c", ["a", "b"])])).begin().completes("a");
  const before = imprint(trial.state);
  spread(trial.state, trial.index("a"), START_MS);
  expect(imprint(trial.state)).toBe(before);
  trial.state.setStatus(trial.index("a"), "failed");
  spread(trial.state, trial.index("a"), START_MS);
  trial.state.setStatus(trial.index("a"), "completed");
  expect(imprint(trial.state)).toBe(before);
});

test("a join speaks once, however often it is asked", () => {
  const trial = new Trial(workflow([node("a"), node("b"), node("c", ["a", "b"], { join: "one_success" })])).begin();
  trial.completes("a");
  trial.completes("b");
  join(trial.state, trial.index("c"), () => expect.unreachable());
  expect(trial.taskTexts("c")).toHaveLength(1);
});

/** A graph in which node i depends on some of those before it. */
function randomParents(random: Random, size: number): number[][] {
  return Array.from({ length: size }, (_, i) => {
    const parents = new Set<number>();
    for (let k = random.integer(0, Math.min(i, 4)); k > 0; k--) parents.add(random.integer(0, i - 1));
    return [...parents];
  });
}

test("each node's join is asked once per edge into it, and each edge is decided once: the whole is O(nodes + edges)", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const random = new Random(seed);
      const parents = randomParents(random, 60);
      const definition = workflow(
        parents.map((list, i) =>
          node(
            `n${i}`,
            list.map((p) => `n${p}`),
            { on_error: "fail_branch" },
          ),
        ),
      );
      const trial = new Trial(definition, { large: true });
      const asked = new Int32Array(60);
      for (const planned of trial.state.plan.nodes) {
        const counted = (edges: Parameters<typeof planned.join>[0]): JoinVerdict => {
          asked[planned.index]!++;
          return rule(edges);
        };
        const rule = planned.join;
        Object.assign(planned, { join: counted });
      }
      trial.begin();
      while (trial.state.live.size > 0) {
        const id = `n${random.pick([...trial.state.live])}`;
        if (random.chance(0.2)) trial.fails(id);
        else trial.completes(id);
      }
      expect(trial.state.isEnded).toBe(true);
      expect([...asked]).toEqual(parents.map((list) => Math.max(1, list.length)));
      expect(trial.state.edges.every((edge) => edge !== 0)).toBe(true);
    }),
    { numRuns: 40 },
  );
});

describe("outputs that nobody unfinished can read", () => {
  const big = "x".repeat(2000);
  const large = { json: big, bytes: 2002 };
  const reader = { config: { got: "{{ a }}" } };

  function completesLarge(trial: Trial, id: string): Trial {
    trial.send({ kind: "taskCompleted", token: trial.token(id), output: large, runningMs: 1 });
    return trial.settle();
  }

  test("leave memory once the last reader has ended, by whatever end", () => {
    const nodes = [
      node("a"),
      node("b", ["a"], reader),
      node("c", ["a"], { ...reader, condition: "false" }),
      node("d", ["b"]),
    ];
    const trial = completesLarge(new Trial(workflow(nodes)).begin(), "a");
    expect(trial.view("a").output).toEqual(large);
    const version = trial.events.findIndex((event) => event.kind === "taskCompleted") + 1;
    trial.completes("b", 1);
    expect(trial.view("a").output).toEqual({ past: { version, bytes: 2002 } });
    expect(trial.events[version - 1]).toMatchObject({ kind: "taskCompleted", node: "a", output: large });
  });

  test("leave at once if there never was a reader", () => {
    const trial = completesLarge(new Trial(workflow([node("a"), node("b", ["a"])])).begin(), "a");
    expect(trial.view("a").output).toHaveProperty("past");
  });

  test("stay if they are small, or part of the execution's output", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"])])).begin().completes("a", "small");
    expect(trial.view("a").output).toEqual({ json: "small" });
    completesLarge(trial, "b");
    expect(trial.view("b").output).toEqual(large);
  });

  test("are asked for when a node made again has to read them", () => {
    const nodes = [node("a"), node("b", ["a"], { ...reader, condition: 'a != ""' }), node("c", ["b"])];
    const trial = completesLarge(new Trial(workflow(nodes)).begin(), "a");
    const run = trial.state.runs[trial.index("a")]!;
    // Nothing within one generation lets this happen; a later one that reruns only the reader does.
    run.output = { past: { version: 4, bytes: 2002 } };
    trial.loses("b");
    expect(trial.last.needs).toEqual([{ past: { version: 4, bytes: 2002 } }]);
    trial.fetched.set("past:4", big);
    trial.settle();
    expect(trial.task("b")).toMatchObject({ delivery: 2, config: { got: big } });
  });
});

test("a value that left memory and was not fetched reads as none, and is asked for by a condition", () => {
  const nodes = [node("a"), node("b", ["a"], { condition: "a.n > 1" })];
  const trial = new Trial(workflow(nodes)).begin();
  trial.room = () => 0;
  trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { json: { n: 2 } }, runningMs: 1 });
  trial.state.runs[0]!.output = { past: { version: 3, bytes: 5000 } };
  trial.room = () => 1;
  trial.step();
  expect(trial.last.needs).toEqual([{ past: { version: 3, bytes: 5000 } }]);
});

describe("the shell's own events", () => {
  test("a quarantine is kept with what was parked, and a release ends it", () => {
    const trial = new Trial(chain).begin();
    const parked = {
      id: "m",
      to: "execution/x",
      by: "t",
      trace: "",
      tenant: "default",
      body: { kind: "cancel", request: "r" },
    } as const;
    trial.apply({ kind: "quarantined", ...at, error: failure() }, { kind: "parked", ...at, message: parked });
    expect([trial.state.quarantined, trial.state.parked]).toEqual([failure(), [parked]]);
    trial.apply({ kind: "released", ...at, request: "r" });
    expect([trial.state.quarantined, trial.state.parked]).toEqual([null, []]);
  });
});
