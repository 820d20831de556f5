import { describe, expect, test } from "vitest";
import type { Letter } from "../../message.ts";
import { executionMachine } from "../machine.ts";
import { dryRun, retryableFrom } from "../view.ts";
import { engineNode, mapNode, node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";

const chain = workflow([node("a"), node("b", ["a"])]);
const retry = { kind: "retry", scope: "failed" } as const;

/** Opens the dead letters of a trial again, as they stand in the store. */
function replay(trial: Trial, ...ids: readonly string[]): { kind: "retry"; scope: "letters"; letters: Letter[] } {
  const letters = ids.map((id) => trial.letters.findLast((letter) => letter.id === id) ?? unknown(id));
  return { kind: "retry", scope: "letters", letters };
}

function unknown(id: string): Letter {
  return { id, class: "poison", queue: "step", text: "{}" };
}

describe("a retry is refused", () => {
  test.each([
    ["PENDING", (t: Trial) => t.hold()],
    ["RUNNING", (t: Trial) => t.begin()],
    ["PAUSED", (t: Trial) => t.begin().does({ kind: "pause" })],
  ])("in every scope while it is %s", (status, make) => {
    const trial = make(new Trial(chain));
    for (const body of [
      retry,
      { kind: "retry", scope: "descendants", from: "a" },
      { kind: "retry", scope: "node", from: "a" },
      { kind: "retry", scope: "letters", letters: [unknown("x:1:a")] },
    ] as const) {
      expect(trial.ask(body)).toEqual({
        refused: "EXECUTION_OPEN",
        execution: { execution_id: "x", status, generation: 1 },
      });
    }
    expect(trial.state.generation).toBe(1);
  });

  test("of what failed, if it has completed", () => {
    const trial = new Trial(chain).begin().completes("a").completes("b");
    expect(trial.ask(retry)).toMatchObject({ refused: "NOT_RETRYABLE" });
  });

  test("of one that was cancelled before it was triggered: it has no part that ran", () => {
    const trial = new Trial(chain).hold().does({ kind: "cancel" });
    expect(trial.ask(retry)).toMatchObject({ refused: "NOT_RETRYABLE", execution: { status: "CANCELLED" } });
    expect(trial.ask(retry)).toHaveProperty("detail", expect.stringContaining("before it was triggered"));
    expect(trial.ask({ kind: "retry", scope: "node", from: "a" })).toMatchObject({ refused: "NOT_RETRYABLE" });
  });

  test("from a node that does not exist, or without one", () => {
    const trial = new Trial(chain).begin().fails("a");
    expect(trial.ask({ kind: "retry", scope: "descendants", from: "zz" })).toMatchObject({
      refused: "NOT_FOUND",
      detail: 'There is no node "zz"',
    });
    expect(trial.ask({ kind: "retry", scope: "node" })).toMatchObject({ refused: "NOT_FOUND" });
  });
});

test.each([
  ["FAILED", (t: Trial) => t.begin().fails("a")],
  ["CANCELLED", (t: Trial) => t.begin().does({ kind: "cancel" })],
])("one that is %s runs again what failed or was cut off, as the next generation", (_, make) => {
  const trial = make(new Trial(chain));
  expect(trial.ask(retry)).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 2 } });
  trial.settle();
  expect(trial.task("a")).toMatchObject({ generation: 2, attempt: 1, delivery: 1 });
  trial.completes("a").completes("b", 5);
  expect(trial.summary).toMatchObject({ status: "COMPLETED", generation: 2, output: { b: 5 } });
  expect(trial.summary.startedAtMs).toBe(START_MS);
});

test("two retries at once make one generation: the second finds the execution open", () => {
  const trial = new Trial(chain).begin().fails("a");
  const [first, second] = [trial.ask(retry), trial.ask(retry)];
  expect(first).toHaveProperty("ok");
  expect(second).toEqual({
    refused: "EXECUTION_OPEN",
    execution: { execution_id: "x", status: "RUNNING", generation: 2 },
  });
  expect(trial.settle().state.generation).toBe(2);
});

test("a retry and a trigger at once make one generation", () => {
  const trial = new Trial(chain).begin().fails("a");
  expect(trial.ask({ kind: "trigger" })).toHaveProperty("ok");
  expect(trial.ask(retry)).toMatchObject({ refused: "EXECUTION_OPEN" });
});

test("attempts begin at 1 again, and all of them may be made", () => {
  const policy = { max_attempts: 2, base_delay_seconds: 1, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
  const trial = new Trial(workflow([node("a", [], { retry: policy })])).begin();
  const exhaust = (): Trial =>
    trial
      .fails("a", RETRYABLE)
      .at(trial.nowMs - START_MS + 1000)
      .settle()
      .fails("a", RETRYABLE);
  exhaust().does(retry);
  expect(trial.view("a")).toMatchObject({ status: "QUEUED", attempt: 1, deliveries: 1, error: null });
  exhaust();
  expect(trial.view("a")).toMatchObject({ status: "FAILED", attempt: 2 });
});

test("the workflow's timeout begins anew", () => {
  const trial = new Trial(workflow([node("a")], { timeout_seconds: 100 })).begin().at(100_000).settle();
  expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "WORKFLOW_TIMEOUT" } });
  trial.at(500_000).does(retry);
  expect(trial.state.deadlineAtMs).toBe(START_MS + 600_000);
  expect(trial.at(599_999).step()).toEqual([]);
  trial.at(600_000).settle();
  expect(trial.summary.error?.code).toBe("WORKFLOW_TIMEOUT");
});

test("another input is for what runs from now on", () => {
  const config = { n: "{{ input.n }}" };
  const trial = new Trial(workflow([node("a", [], { config }), node("b", ["a"], { config })]));
  trial
    .begin({ json: { n: 1 } })
    .completes("a", 1)
    .fails("b");
  trial.does({ ...retry, input: { json: { n: 2 } } });
  expect(trial.taskTexts("a")).toHaveLength(1);
  expect(trial.task("b").config).toEqual({ n: 2 });
});

test("another config is for that node alone, and stays in later generations", () => {
  const config = { n: "{{ a.n }}", old: true };
  const trial = new Trial(workflow([node("a"), node("b", ["a"], { config })]))
    .begin()
    .completes("a", { n: 4 })
    .fails("b");
  trial.does({ kind: "retry", scope: "descendants", from: "b", config: { m: "{{ a.n }}", new: true } });
  expect(trial.task("b").config).toEqual({ m: 4, new: true });
  trial.fails("b").does(retry);
  expect(trial.task("b").config).toEqual({ m: 4, new: true });
});

test("a config that cannot be read fails the node, not the engine", () => {
  const trial = new Trial(chain).begin().fails("a");
  trial.does({ kind: "retry", scope: "descendants", from: "a", config: { n: "{{ nobody.n" } });
  expect(trial.view("a")).toMatchObject({ status: "FAILED", error: { code: "CONFIG_INVALID", retryable: false } });
});

test("what was out before the retry is stale", () => {
  const trial = new Trial(chain).begin();
  const old = trial.token("a");
  trial.does({ kind: "cancel" }).does(retry);
  expect(
    trial.send({ kind: "taskFailed", token: old, error: { code: "E", message: "", retryable: true }, runningMs: 1 }),
  ).toMatchObject([{ kind: "resultIgnored", reason: "staleAttempt" }]);
  expect(trial.send({ kind: "deliveryLost", token: old })).toEqual([]);
  expect(trial.send({ kind: "taskStarted", token: old, runningMs: 1 })).toEqual([]);
  expect(trial.status("a")).toBe("queued");
});

test("a retry leaves no timer, wait or task of the generation before", () => {
  const nodes = [
    node("a"),
    node("r"),
    engineNode("s", "wait", { signal: "s", timeout_seconds: 50 }),
    engineNode("v", "review", { due_seconds: 50, on_due: "fail" }),
    node("f"),
  ];
  const trial = new Trial(workflow(nodes)).begin().fails("r", RETRYABLE).fails("f");
  trial.does({ kind: "retry", scope: "node", from: "f" });
  expect(trial.out).toEqual(["f"]);
  expect(trial.shown).toMatchObject({ a: "CANCELLED fail_fast", r: "CANCELLED fail_fast", s: "CANCELLED fail_fast" });
  expect(executionMachine.nextCalendarMs!(trial.state)).toBeNull();
  trial.completes("f");
  expect(trial.summary.status).toBe("COMPLETED");
});

test("a dry run tells what would run again and what would stay, and changes nothing", () => {
  const nodes = [node("a"), node("f", ["a"], { on_error: "fail_branch" }), node("g", ["f"]), node("o", ["a"])];
  const trial = new Trial(workflow(nodes)).begin().completes("a").completes("o").fails("f");
  expect(dryRun(trial.state, { scope: "failed" })).toEqual({ rerun: ["f", "g"], kept: ["a", "o"] });
  expect(dryRun(trial.state, { scope: "node", from: "o" })).toEqual({ rerun: ["o"], kept: ["a", "f", "g"] });
  expect(dryRun(trial.state, { scope: "descendants", from: "a" })).toEqual({ rerun: ["a", "f", "g", "o"], kept: [] });
  expect(trial.state).toMatchObject({ status: "partial", generation: 1 });
});

test("where a retry can begin is told of those that ended badly", () => {
  const nodes = [node("f", [], { on_error: "fail_branch" }), node("g", ["f"]), node("o")];
  const trial = new Trial(workflow(nodes)).begin().completes("o");
  expect(retryableFrom(trial.state)).toEqual([]);
  expect(retryableFrom(trial.fails("f").state)).toEqual(["f"]);
  expect(retryableFrom(trial.does(retry).completes("f").completes("g").state)).toEqual([]);
});

test("where the time ran out, a retry can begin with what was cut off", () => {
  const nodes = [node("a"), node("b", ["a"]), node("c", ["b"]), node("d"), node("e", ["c", "d"])];
  const trial = new Trial(workflow(nodes, { timeout_seconds: 100 })).begin().completes("a").at(100_000).settle();
  expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "WORKFLOW_TIMEOUT" } });
  expect(retryableFrom(trial.state)).toEqual(["b", "d"]);
  expect(dryRun(trial.state, { scope: "failed" })).toEqual({ rerun: ["b", "c", "d", "e"], kept: ["a"] });
});

describe("a dead letter", () => {
  const branch = { on_error: "fail_branch" } as const;

  test("is replayed as a new generation of its node, and is marked so", () => {
    const trial = new Trial(workflow([node("f", [], branch), node("g", ["f"]), node("o")])).begin();
    trial.completes("o").fails("f");
    expect(trial.ask(replay(trial, "x:1:f"))).toEqual({ ok: { execution_id: "x", status: "RUNNING", generation: 2 } });
    expect(trial.last.deadLetters).toMatchObject([{ id: "x:1:f", class: "poison", queue: "step" }]);
    expect(JSON.parse(trial.last.deadLetters![0]!.text)).toMatchObject({
      node_id: "f",
      generation: 1,
      status: "replayed",
    });
    expect(trial.settle().shown).toEqual({ f: "QUEUED", g: "PENDING", o: "COMPLETED" });
  });

  test("is replayed once", () => {
    const trial = new Trial(workflow([node("f", [], branch)])).begin().fails("f");
    const body = replay(trial, "x:1:f");
    trial.does(body).fails("f");
    expect(trial.ask(body)).toMatchObject({ refused: "ALREADY_REPLAYED" });
    // The failure of the second generation left one of its own.
    expect(trial.ask(replay(trial, "x:2:f"))).toHaveProperty("ok");
  });

  test("that nobody knows, or none at all, is not found", () => {
    const trial = new Trial(workflow([node("f")])).begin().fails("f");
    expect(trial.ask(replay(trial, "x:1:zz"))).toMatchObject({ refused: "NOT_FOUND" });
    expect(trial.ask({ kind: "retry", scope: "letters", letters: [] })).toMatchObject({ refused: "NOT_FOUND" });
  });

  test("is dealt with once a retry has opened its node again, however that ended", () => {
    const ends: readonly (readonly [string, (trial: Trial) => Trial])[] = [
      ["completed", (trial) => trial.completes("f")],
      ["failed", (trial) => trial.fails("f")],
      ["cancelled", (trial) => trial.does({ kind: "cancel" })],
    ];
    for (const [how, end] of ends) {
      const trial = end(new Trial(workflow([node("f")])).begin().fails("f").does(retry));
      expect([how, trial.ask(replay(trial, "x:1:f"))]).toMatchObject([how, { refused: "ALREADY_REPLAYED" }]);
    }
  });

  test("whose node has failed once more leaves the next replay to the letter of that", () => {
    const trial = new Trial(workflow([node("f")])).begin().fails("f").does(retry).fails("f");
    trial.does(replay(trial, "x:1:f", "x:2:f"));
    expect(trial.events.findLast(({ kind }) => kind === "generationOpened")).toMatchObject({ instances: ["f"] });
    expect([...trial.state.letters]).toEqual([
      ["x:1:f", "replayed"],
      ["x:2:f", "replayed"],
    ]);
  });

  test("runs nothing again that was run in another way since", () => {
    const nodes = [node("f", [], branch), node("g", [], branch)];
    const trial = new Trial(workflow(nodes)).begin().fails("f").fails("g");
    trial.does({ kind: "retry", scope: "descendants", from: "f" }).completes("f");
    expect(trial.ask(replay(trial, "x:1:f"))).toMatchObject({ refused: "ALREADY_REPLAYED" });
    trial.does(replay(trial, "x:1:f", "x:1:g"));
    expect(trial.shown).toEqual({ f: "COMPLETED", g: "QUEUED" });
    expect([...trial.state.letters.values()]).toEqual(["replayed", "replayed"]);
  });

  test("opens what was skipped because of it, and leaves other failed nodes as they are", () => {
    const nodes = [node("f", [], branch), node("f1", ["f"]), node("g", [], branch), node("g1", ["g"])];
    const trial = new Trial(workflow(nodes)).begin().fails("f", { code: "F" }).fails("g", { code: "G" });
    trial.does(replay(trial, "x:1:f"));
    expect(trial.shown).toEqual({ f: "QUEUED", f1: "PENDING", g: "FAILED", g1: "SKIPPED upstream_failed" });
    trial.completes("f").completes("f1");
    expect(trial.summary).toMatchObject({ status: "PARTIAL", error: { code: "G", node: "g" } });
  });

  test("opens what its failure has cut off", () => {
    const trial = new Trial(workflow([node("f"), node("f1", ["f"]), node("o"), node("o1", ["o"])])).begin().fails("f");
    expect(trial.shown).toMatchObject({ o: "CANCELLED fail_fast", o1: "CANCELLED fail_fast" });
    trial.does(replay(trial, "x:1:f"));
    expect(trial.shown).toEqual({ f: "QUEUED", f1: "PENDING", o: "QUEUED", o1: "PENDING" });
  });

  test("leaves what another failure, a cancel or the timeout has cut off", () => {
    const nodes = [node("f", [], branch), node("f1", ["f"]), node("ff"), node("o")];
    const other = new Trial(workflow(nodes)).begin().fails("f").fails("ff");
    other.does(replay(other, "x:1:f"));
    expect(other.shown).toEqual({ f: "QUEUED", f1: "PENDING", ff: "FAILED", o: "CANCELLED fail_fast" });

    const cancelled = new Trial(workflow(nodes)).begin().fails("f").does({ kind: "cancel" });
    cancelled.does(replay(cancelled, "x:1:f"));
    expect(cancelled.shown).toMatchObject({ f: "QUEUED", ff: "CANCELLED cancel", o: "CANCELLED cancel" });
  });

  test("and others of the same execution open one generation", () => {
    const trial = new Trial(workflow([node("f", [], branch), node("g", [], branch), node("h", [], branch)])).begin();
    trial
      .fails("f")
      .fails("g")
      .fails("h")
      .does(replay(trial, "x:1:f", "x:1:g"));
    expect(trial.shown).toEqual({ f: "QUEUED", g: "QUEUED", h: "FAILED" });
    expect(trial.state.generation).toBe(2);
  });
});

test("a batch can be tried again although it has completed, as long as items of it failed", () => {
  const items = mapNode("items", { items: [1, 2], handler: "step", config: {}, tolerated_failures: "100%" });
  const trial = new Trial(workflow([items], { "x-millrace-part": true })).begin();
  trial.completes("items[0]", 1).fails("items[1]");
  expect(trial.state.status).toBe("completed");
  trial.does({ kind: "retry", scope: "failed" });
  expect(trial.out).toEqual(["items[1]"]);
  trial.completes("items[1]", 2);
  expect(trial.ask({ kind: "retry", scope: "failed" })).toMatchObject({ refused: "NOT_RETRYABLE" });
});
