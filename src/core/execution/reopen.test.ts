import { describe, expect, test } from "vitest";
import type { Dependency, WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { executionMachine } from "./machine.ts";
import { engineNode, mapNode, node, RETRYABLE, START_MS, startBody, Trial, workflow } from "./test-execution.ts";
import { dryRun } from "./view.ts";

const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };
const on = (id: string, what: "failed" | "done"): Dependency => ({ id, on: what });
const retry = { kind: "retry", scope: "failed" } as const;

/**
 * One of each: `f` failed, `f1` and `f2` were skipped because of it, `c` caught it, `done` came after all, `no` was
 * skipped by its condition, `o` and `o1` completed.
 */
function mixed(): Trial {
  const nodes = [
    node("a"),
    node("f", ["a"], branch),
    node("f1", ["f"]),
    node("f2", ["f1", "o"]),
    node("c", [on("f", "done")]),
    node("no", ["a"], { condition: "false" }),
    node("no1", ["no"]),
    node("o", ["a"]),
    node("o1", ["o"]),
    node("last", ["f2", "o1"], { join: "all_done" }),
  ];
  const trial = new Trial(workflow(nodes)).begin().completes("a", { n: 1 });
  return trial.fails("f").completes("o").completes("o1").completes("c").completes("last");
}

test("the story of `mixed`", () => {
  expect(mixed().shown).toEqual({
    a: "COMPLETED",
    f: "FAILED",
    f1: "SKIPPED upstream_failed",
    f2: "SKIPPED upstream_failed",
    c: "COMPLETED",
    no: "SKIPPED condition",
    no1: "SKIPPED condition",
    o: "COMPLETED",
    o1: "COMPLETED",
    last: "COMPLETED",
  });
  expect(mixed().summary.status).toBe("PARTIAL");
});

describe("what is opened again", () => {
  test("failed: what failed, what was skipped because of it, and every descendant of these that ran", () => {
    expect(dryRun(mixed().state, { scope: "failed" })).toEqual({
      rerun: ["f", "f1", "f2", "c", "last"],
      kept: ["a", "no", "no1", "o", "o1"],
    });
  });

  test("failed: after a cancel all that was cut off", () => {
    const trial = new Trial(workflow([node("a"), node("b"), node("c", ["b"]), node("d", ["a", "b"])])).begin();
    trial.completes("a").does({ kind: "cancel" });
    expect(dryRun(trial.state, { scope: "failed" })).toEqual({ rerun: ["b", "c", "d"], kept: ["a"] });
  });

  test("letters: of a catch that failed too, everything that ended with it", () => {
    const trial = new Trial(
      workflow([node("f"), node("catch", [on("f", "failed")]), node("o"), node("o1", ["o"])]),
    ).begin();
    trial.fails("f").fails("catch");
    expect(trial.shown).toMatchObject({ o: "CANCELLED fail_fast", o1: "CANCELLED fail_fast" });
    expect(dryRun(trial.state, { scope: "letters", instances: ["catch"] }).rerun).toEqual(["catch", "o", "o1"]);
    expect(dryRun(trial.state, { scope: "letters", instances: ["f"] }).rerun).toEqual(["f", "catch"]);
  });

  test("failed: after fail_fast both what was skipped and what was cancelled", () => {
    const nodes = [node("a"), node("f", ["a"]), node("f1", ["f"]), node("o", ["a"]), node("p", ["o"])];
    const trial = new Trial(workflow(nodes)).begin().completes("a").fails("f");
    expect(dryRun(trial.state, { scope: "failed" })).toEqual({ rerun: ["f", "f1", "o", "p"], kept: ["a"] });
  });

  test("failed: a failure that was handled is one all the same", () => {
    const trial = new Trial(workflow([node("f"), node("c", [on("f", "failed")]), node("g", [], branch)])).begin();
    trial.fails("f").completes("c").fails("g");
    expect(dryRun(trial.state, { scope: "failed" })).toEqual({ rerun: ["f", "c", "g"], kept: [] });
  });

  test("descendants: the node and all after it, whatever they came to", () => {
    expect(dryRun(mixed().state, { scope: "descendants", from: "o" })).toEqual({
      rerun: ["f2", "o", "o1", "last"],
      kept: ["a", "f", "f1", "c", "no", "no1"],
    });
    expect(dryRun(mixed().state, { scope: "descendants", from: "no" }).rerun).toEqual(["no", "no1"]);
  });

  test("node: that one alone", () => {
    expect(dryRun(mixed().state, { scope: "node", from: "a" }).rerun).toEqual(["a"]);
  });

  test("letters: their nodes and all after them", () => {
    expect(dryRun(mixed().state, { scope: "letters", instances: ["f"] }).rerun).toEqual(["f", "f1", "f2", "c", "last"]);
  });
});

describe("what is kept", () => {
  test("keeps status, output, times and attempts", () => {
    const trial = new Trial(workflow([node("a"), node("f", ["a"], branch), node("o", ["a"])])).begin();
    trial.at(10).fails("a", RETRYABLE).at(2000).settle().at(3000).completes("a", { n: 1 });
    trial.at(4000).completes("o", 2).fails("f");
    const before = trial.summary.nodes;
    trial.at(9000).does(retry);
    expect(trial.summary.nodes["a"]).toEqual(before["a"]);
    expect(trial.summary.nodes["o"]).toEqual(before["o"]);
    expect(trial.summary.nodes["a"]).toMatchObject({ attempt: 2, endedAtMs: START_MS + 3000 });
  });

  test("can be read by what runs again, also when it had left memory", () => {
    const reader = node("b", ["a"], { config: { got: "{{ a.text }}" } });
    const trial = new Trial(workflow([node("a"), reader, node("c", ["b"])])).begin();
    const text = "x".repeat(3000);
    trial.send({
      kind: "taskCompleted",
      token: trial.token("a"),
      output: { json: { text }, bytes: 3011 },
      runningMs: 1,
    });
    trial.settle().completes("b").fails("c");
    const past = trial.view("a").output as { past: { version: number; bytes: number } };
    expect(past).toHaveProperty("past");
    trial.does({ kind: "retry", scope: "descendants", from: "b" });
    expect(trial.last.needs).toEqual([past]);
    trial.fetched.set(`past:${past.past.version}`, { text });
    expect(trial.settle().task("b").config).toEqual({ got: text });
  });

  test("decides its edges again: what runs again is not run before its kept parents allow it, nor later", () => {
    const nodes = [node("a"), node("b"), node("f", ["a", "b"], { join: "all_success" }), node("g", ["a", "f"])];
    const trial = new Trial(workflow(nodes)).begin().completes("a").completes("b").fails("f").does(retry);
    expect(trial.shown).toEqual({ a: "COMPLETED", b: "COMPLETED", f: "QUEUED", g: "PENDING" });
    expect(trial.completes("f").shown["g"]).toBe("QUEUED");
  });

  test("that was cut off by the end and is not meant stays as the end left it", () => {
    const nodes = [node("a"), node("f"), node("f1", ["f"]), node("o")];
    const trial = new Trial(workflow(nodes)).begin().completes("a").at(500).fails("f");
    trial.at(9000).does({ kind: "retry", scope: "node", from: "a" });
    expect(trial.shown).toEqual({ a: "QUEUED", f: "FAILED", f1: "SKIPPED upstream_failed", o: "CANCELLED fail_fast" });
    expect(trial.view("o").endedAtMs).toBe(START_MS + 500);
    trial.completes("a", 2);
    expect(trial.summary).toMatchObject({ status: "PARTIAL", error: { node: "f" } });
  });

  test("stays the same through several generations", () => {
    const trial = new Trial(workflow([node("a"), node("o"), node("f", ["a"])])).begin().completes("a", 1).fails("f");
    trial.does({ kind: "retry", scope: "node", from: "f" }).fails("f");
    expect(trial.shown["o"]).toBe("CANCELLED fail_fast");
    trial.does(retry);
    expect(trial.shown).toEqual({ a: "COMPLETED", o: "QUEUED", f: "QUEUED" });
    trial.completes("o").completes("f");
    expect(trial.summary).toMatchObject({ status: "COMPLETED", generation: 3 });
  });
});

describe("a rerun on its own", () => {
  test("of one that had completed is followed by nothing", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"])])).begin().completes("a", 1).completes("b", 2);
    trial.does({ kind: "retry", scope: "node", from: "a" }).completes("a", 9);
    expect(trial.summary).toMatchObject({ status: "COMPLETED", generation: 2, output: { b: 2 } });
    expect(trial.taskTexts("b")).toHaveLength(1);
    expect(trial.view("a").output).toEqual({ json: 9 });
  });

  test("with all after it gives the new output on", () => {
    const reader = node("b", ["a"], { config: { n: "{{ a }}" } });
    const trial = new Trial(workflow([node("a"), reader])).begin().completes("a", 1).completes("b", 2);
    trial.does({ kind: "retry", scope: "descendants", from: "a" }).completes("a", 9);
    expect(trial.task("b").config).toEqual({ n: 9 });
  });

  test("asks the condition again", () => {
    const nodes = [node("a"), node("b", ["a"], { condition: "a.yes" })];
    const trial = new Trial(workflow(nodes)).begin().completes("a", { yes: false });
    expect(trial.shown["b"]).toBe("SKIPPED condition");
    trial.does({ kind: "retry", scope: "descendants", from: "a" }).completes("a", { yes: true });
    expect(trial.shown["b"]).toBe("QUEUED");
  });

  test("of a router chooses again", () => {
    const routes = [{ when: "input.n > 5", to: "high" }];
    const router = engineNode("r", "router", { mode: "exclusive", routes, else: "low", on_error: "fail" });
    const trial = new Trial(workflow([router, node("high", ["r"]), node("low", ["r"])])).begin({ json: { n: 9 } });
    trial.completes("high");
    expect(trial.shown).toEqual({ r: "COMPLETED", high: "COMPLETED", low: "SKIPPED route" });
    trial.does({ kind: "retry", scope: "descendants", from: "r", input: { json: { n: 1 } } });
    expect(trial.shown).toEqual({ r: "COMPLETED", high: "SKIPPED route", low: "QUEUED" });
  });

  test("of a router with other routes skips by those", () => {
    const router = engineNode("r", "router", {
      mode: "exclusive",
      routes: [{ when: "true", to: "a" }],
      on_error: "fail",
    });
    const trial = new Trial(workflow([router, node("a", ["r"]), node("b", ["r"]), node("c", ["r"])])).begin();
    expect(trial.shown).toEqual({ r: "COMPLETED", a: "QUEUED", b: "QUEUED", c: "QUEUED" });
    trial.completes("a").completes("b").completes("c");
    const routes = [{ when: "false", to: "b" }];
    const config = { mode: "exclusive", routes, else: "c", on_error: "fail" };
    trial.does({ kind: "retry", scope: "descendants", from: "r", config });
    expect(trial.shown).toEqual({ r: "COMPLETED", a: "QUEUED", b: "SKIPPED route", c: "QUEUED" });
  });

  test("keeps what a router, kept itself, has chosen", () => {
    const routes = [{ when: "input.n > 5", to: "high" }];
    const router = engineNode("r", "router", { mode: "exclusive", routes, else: "low", on_error: "fail" });
    const nodes = [router, node("high", ["r"], branch), node("low", ["r"]), node("end", ["high", "low"])];
    const trial = new Trial(workflow(nodes)).begin({ json: { n: 9 } }).fails("high");
    trial.does(retry);
    expect(trial.shown).toEqual({ r: "COMPLETED", high: "QUEUED", low: "SKIPPED route", end: "PENDING" });
    trial.completes("high");
    expect(trial.shown["end"]).toBe("QUEUED");
  });

  test("of one target that a kept router has not chosen leaves it so: a route is no matter of scope", () => {
    const routes = [{ when: "true", to: "a" }];
    const router = engineNode("r", "router", { mode: "exclusive", routes, else: "b", on_error: "fail" });
    const trial = new Trial(workflow([router, node("a", ["r"]), node("b", ["r"])])).begin().completes("a");
    trial.does({ kind: "retry", scope: "node", from: "b" });
    expect(trial.shown["b"]).toBe("SKIPPED route");
  });
});

describe("the key that handlers get", () => {
  const key = (trial: Trial): string => trial.task("a").idempotencyKey;
  const again = { kind: "retry", scope: "descendants", from: "a" } as const;
  const solo = (): Trial =>
    new Trial(workflow([node("a", [], { queue_timeout_seconds: 50, timeout_seconds: 30 })])).begin();
  const noRetry = { max_attempts: 1, base_delay_seconds: 0, max_delay_seconds: 0, exponential_base: 1, jitter: 0 };

  test("is the execution, the node and k, the same for all attempts and deliveries", () => {
    const trial = solo().loses("a").fails("a", RETRYABLE).at(5000).settle();
    expect(new Set(trial.taskTexts("a").map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set(["x/a/1"]));
  });

  test.each<[string, (trial: Trial) => Trial]>([
    ["had completed", (t) => t.completes("a")],
    ["had failed with an answer of its handler", (t) => t.fails("a")],
    ["was cut off after an attempt that had an answer", (t) => t.fails("a", RETRYABLE).does({ kind: "cancel" })],
  ])("changes if the node %s", (_, then) => {
    expect(key(then(solo()).does(again))).toBe("x/a/2");
  });

  test.each<[string, (trial: Trial) => Trial]>([
    ["after a timeout that the worker reports", (t) => t.fails("a", { code: "TIMEOUT" })],
    ["after a lost worker", (t) => t.loses("a").loses("a").loses("a")],
    ["after a wait in the queue", (t) => t.at(50_000).settle()],
    ["after a cancel", (t) => t.does({ kind: "cancel" })],
  ])("stays %s: nobody knows what was done", (_, then) => {
    const trial = then(solo());
    expect(trial.state.isEnded).toBe(true);
    expect(key(trial.does(again))).toBe("x/a/1");
  });

  test("stays after a timeout that the owner has set", () => {
    const trial = new Trial(workflow([node("a", [], { timeout_seconds: 30, retry: noRetry })])).begin();
    trial.starts("a");
    trial.at(100_000).settle();
    expect(trial.view("a").error?.code).toBe("TIMEOUT");
    expect(key(trial.does(again))).toBe("x/a/1");
  });

  test("changes if the config was edited, whatever is known", () => {
    const trial = solo()
      .does({ kind: "cancel" })
      .does({ ...again, config: { other: 1 } });
    expect(key(trial)).toBe("x/a/2");
  });

  test("of the items changes if the config of their map was edited", () => {
    const config = { handler: "step", config: {}, items: [1, 2], max_concurrency: 2, tolerated_failures: 0 };
    const trial = new Trial(workflow([mapNode("m", config, [], branch)])).begin().fails("m[1]");
    trial.does({ kind: "retry", scope: "node", from: "m", config: { ...config, config: { other: 1 } } });
    expect(["m[0]", "m[1]"].map((id) => trial.task(id).idempotencyKey)).toEqual(["x/m[0]/2", "x/m[1]/2"]);
  });

  test("is none that an item had which went and comes again", () => {
    const config = { handler: "step", config: {}, items: "{{ input.items }}" };
    const trial = new Trial(workflow([mapNode("m", config, [], branch)])).begin({ json: { items: [1, 2] } });
    trial.completes("m[0]").completes("m[1]");
    const anew = { kind: "retry", scope: "node", from: "m" } as const;
    trial.does({ ...anew, input: { json: { items: [1] } } }).completes("m[0]");
    trial.does({ ...anew, input: { json: { items: [1, 2] } } });
    expect(["m[0]", "m[1]"].map((id) => trial.task(id).idempotencyKey)).toEqual(["x/m[0]/3", "x/m[1]/2"]);
  });

  test("stays for a node that never had an attempt", () => {
    const config = { n: "{{ input.n }}" };
    const trial = new Trial(workflow([node("a", [], { config })])).begin({ json: {} });
    expect(trial.view("a").error?.code).toBe("TEMPLATE_UNRESOLVED");
    trial.does({ ...retry, input: { json: { n: 1 } } });
    expect(key(trial)).toBe("x/a/1");
  });

  test("stays the same, once risen, over generations that end without an answer", () => {
    const trial = solo()
      .fails("a")
      .does(again)
      .does({ kind: "cancel" })
      .does(again)
      .does({ kind: "cancel" })
      .does(again);
    expect(key(trial)).toBe("x/a/2");
    expect(trial.task("a")).toMatchObject({ generation: 4, attempt: 1 });
  });
});

describe("a result that came after the end", () => {
  function late(more: Partial<WorkflowNode> = {}): Trial {
    const config = { n: "{{ input.n | default(0) }}" };
    const trial = new Trial(workflow([node("a", [], { config, ...more }), node("b", ["a"])])).begin({ json: { n: 1 } });
    const token = trial.token("a");
    trial.does({ kind: "cancel" });
    trial.send({ kind: "taskCompleted", token, output: { json: { done: 1 } }, runningMs: 5 });
    expect(trial.last.reply).toEqual({ ok: { accepted: false, recorded: true } });
    return trial;
  }

  test("changes neither the node's state nor its output", () => {
    expect(late().view("a")).toMatchObject({ status: "CANCELLED", reason: "cancel", output: null });
  });

  test("completes the node at once in the next generation, without a task, and says so", () => {
    const trial = late().at(700);
    trial.ask(retry);
    expect(trial.step()).toEqual([
      {
        kind: "nodeCompleted",
        atMs: START_MS + 700,
        node: "a",
        output: { json: { done: 1 } },
        reason: "late_result",
      },
    ]);
    trial.settle();
    expect(trial.view("a")).toMatchObject({
      status: "COMPLETED",
      reason: "late_result",
      output: { json: { done: 1 } },
    });
    expect(trial.taskTexts("a")).toHaveLength(1);
    expect(trial.shown["b"]).toBe("QUEUED");
  });

  test("counts for nothing if the node is given something else now", () => {
    const trial = late().does({ ...retry, input: { json: { n: 2 } } });
    expect(trial.shown["a"]).toBe("QUEUED");
    expect(trial.task("a").config).toEqual({ n: 2 });
  });

  test("counts if another input comes to the same for this node", () => {
    const trial = late().does({ ...retry, input: { json: { n: 1, unread: true } } });
    expect(trial.shown["a"]).toBe("COMPLETED late_result");
  });

  test("counts in any retry, but for nothing if the config was edited", () => {
    const edited = late().does({ kind: "retry", scope: "descendants", from: "a", config: { n: 1 } });
    expect(edited.shown["a"]).toBe("QUEUED");
    const rerun = late().does({ kind: "retry", scope: "descendants", from: "a" });
    expect(rerun.shown["a"]).toBe("COMPLETED late_result");
  });

  test("is used once: a rerun after it is a new piece of work", () => {
    const trial = late().does(retry).completes("b");
    trial.does({ kind: "retry", scope: "descendants", from: "a" });
    expect(trial.task("a")).toMatchObject({ idempotencyKey: "x/a/2", generation: 3 });
  });

  test("is forgotten once the work is begun anew: what comes late of that counts instead", () => {
    const trial = late().does({ ...retry, input: { json: { n: 2 } } });
    const token = trial.token("a");
    trial.does({ kind: "cancel" });
    trial.send({ kind: "taskCompleted", token, output: { json: { done: 2 } }, runningMs: 5 });
    expect(trial.last.events).toMatchObject([{ kind: "lateResult", output: { json: { done: 2 } } }]);
    expect(trial.does(retry).view("a").output).toEqual({ json: { done: 2 } });
  });

  test("survives a snapshot", () => {
    const trial = late();
    const copy = executionMachine.restore("x", trial.state.plan, executionMachine.snapshot(trial.state));
    expect(copy.runs[0]!.late).toEqual(trial.state.runs[0]!.late);
  });

  test("of a repeat is not used: nobody has judged it", () => {
    const trial = late({ repeat: { until: "true", every_seconds: 1, max: 2 } }).does(retry);
    expect(trial.shown["a"]).toBe("QUEUED");
  });
});

test("a retry in one batch with the end takes back what is still out: nobody would know of it any more", () => {
  const trial = new Trial(workflow([node("a"), node("b")])).begin();
  const tokens = [trial.token("a"), trial.token("b")];
  trial.ask({ kind: "cancel" });
  trial.ask({ kind: "retry", scope: "node", from: "a" });
  expect(trial.last.revoke).toEqual(tokens);
});

test("an item that went and comes again calls a child of its own", () => {
  const config = { nodes: [node("a")] as unknown as Json, items: "{{ input.items }}" };
  const trial = new Trial(workflow([mapNode("m", config, [], branch)])).begin({ json: { items: [1, 2] } });
  const first = trial.view("m[1]").child;
  const anew = { kind: "retry", scope: "node", from: "m" } as const;
  for (const items of [[1], [1, 2]]) {
    trial.does({ kind: "cancel" }).does({ ...anew, input: { json: { items } } });
  }
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(trial.view("m[1]").child).toMatch(/^[0-9a-f]{32}$/);
  expect(trial.view("m[1]").child).not.toBe(first);
});

test("a call that was called off before it came is not taken up", () => {
  const parent = { entity: "execution/p", instance: "c", call: 1 };
  const trial = new Trial(workflow([node("a")])).begin({ json: null }, parent).fails("a");
  const start = startBody({ json: null }, { ...parent, call: 2 });
  trial.send({ kind: "cancel", request: "cancel:execution/x:2", start });
  expect(trial.send(start)).toEqual([]);
  const [opened] = trial.send(startBody({ json: null }, { ...parent, call: 3 }));
  expect(opened).toMatchObject({ kind: "generationOpened", call: 3 });
});

describe("the time of a join", () => {
  const join = node("j", ["a", "b"], { join_timeout_seconds: 10, join: "all_done", ...branch });

  test("counts from the new generation, if a kept parent had ended before", () => {
    const trial = new Trial(workflow([node("a"), node("b"), join])).begin().completes("a").does({ kind: "cancel" });
    trial.at(500_000).does(retry);
    expect(trial.shown).toEqual({ a: "COMPLETED", b: "QUEUED", j: "PENDING" });
    expect(trial.at(509_999).settle().shown["j"]).toBe("PENDING");
    trial.at(510_000).settle();
    expect(trial.view("j").error).toMatchObject({ code: "JOIN_TIMEOUT", details: { missing: ["b"] } });
  });

  test("does not run while no parent has ended", () => {
    const trial = new Trial(workflow([node("a"), node("b"), join])).begin().does({ kind: "cancel" }).does(retry);
    expect(trial.at(80_000).settle().shown["j"]).toBe("PENDING");
  });
});
