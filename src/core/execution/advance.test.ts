import type { TaskText } from "./prepare.ts";
import { describe, expect, test } from "vitest";
import type { Json } from "../../json/json.ts";
import { advance } from "./advance.ts";
import { executionMachine } from "./machine.ts";
import { GRACE_MS } from "./messages/task-started.ts";
import { node, RETRYABLE, START_MS, startBody, Trial, workflow } from "./test-execution.ts";
import { viewExecution } from "./test-summary.ts";

const branch = { on_error: "fail_branch" } as const;

test("a large value goes into so many configs at a time, and in the end into all", () => {
  const readers = Array.from({ length: 20 }, (_, i) =>
    node(`r${i}`, ["big"], { config: { prompt: "Read: {{ big }}" } }),
  );
  const trial = new Trial(workflow([node("big"), ...readers]), { large: true }).begin();
  const output = { json: "x".repeat(1_000_000) };
  trial.send({ kind: "taskCompleted", token: trial.token("big"), output, runningMs: 5 });
  const sizes: number[] = [];
  while (trial.step().length > 0) {
    sizes.push((trial.last.blobs ?? []).reduce((sum, { text }) => sum + text.length, 0));
  }
  expect(Math.max(...sizes)).toBeLessThan(6 * 1024 * 1024);
  expect(trial.blobs).toHaveLength(20);
  expect(trial.out).toHaveLength(20);
});

describe("deadlines", () => {
  test("nothing happens before one, and the next is known", () => {
    const trial = new Trial(workflow([node("a", [], { queue_timeout_seconds: 60 })])).begin();
    expect(executionMachine.nextWakeMs(trial.state)).toBe(START_MS + 60_000);
    expect(trial.at(59_999).step()).toEqual([]);
  });

  test("a task that nobody took fails its node, is not repeated, and is withdrawn", () => {
    const trial = new Trial(workflow([node("a", [], { queue_timeout_seconds: 60, ...branch })])).begin().at(60_000);
    const token = trial.token("a");
    expect(trial.step()).toMatchObject([
      {
        kind: "taskFailed",
        deadline: "queue",
        retryAtMs: null,
        error: { code: "QUEUE_TIMEOUT", retryable: false, message: "No worker took it from queue step within 60 s" },
      },
    ]);
    expect(trial.last.revoke).toEqual([token]);
    expect(trial.last.deadLetters).toMatchObject([{ class: "poison" }]);
  });

  test("a handler that does not end loses its attempt, and gets another", () => {
    const trial = new Trial(workflow([node("a", [], { timeout_seconds: 30 })])).begin();
    trial.starts("a");
    const token = trial.token("a");
    expect(trial.at(30_000 + GRACE_MS - 1).step()).toEqual([]);
    expect(trial.at(30_000 + GRACE_MS).step()).toMatchObject([
      { kind: "taskFailed", deadline: "run", error: { code: "TIMEOUT", retryable: true } },
    ]);
    expect(trial.last.revoke).toEqual([token]);
    expect(trial.status("a")).toBe("waiting");
  });

  test("the end of a backoff makes the node ready again", () => {
    const trial = new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE);
    expect(trial.at(999).step()).toEqual([]);
    expect(trial.at(1000).step()).toEqual([{ kind: "retryDue", atMs: START_MS + 1000, node: "a" }]);
    expect(trial.step()).toMatchObject([{ kind: "taskDispatched", attempt: 2, delivery: 1 }]);
  });

  test("the workflow's timeout ends everything, before any other deadline", () => {
    const nodes = [node("a", [], { queue_timeout_seconds: 10 }), node("b"), node("c", ["a"])];
    const trial = new Trial(workflow(nodes, { timeout_seconds: 10 })).begin().completes("b").at(10_000);
    expect(trial.step()).toMatchObject([
      { kind: "executionEnded", status: "failed", reason: "timeout", error: { code: "WORKFLOW_TIMEOUT" } },
    ]);
    expect(trial.shown).toEqual({ a: "CANCELLED timeout", b: "COMPLETED", c: "CANCELLED timeout" });
    expect(viewExecution(trial.state)).toMatchObject({
      status: "FAILED",
      output: null,
      error: { code: "WORKFLOW_TIMEOUT" },
    });
    expect(executionMachine.withdrawn(trial.state)).toEqual([trial.token("a")]);
  });

  test("many at once come in the order of their times, in slices", () => {
    const nodes = [3, 1, 2].map((seconds) => node(`n${seconds}`, [], { queue_timeout_seconds: seconds, ...branch }));
    const retrying = [5, 4].map((n) => node(`r${n}`));
    const trial = new Trial(workflow([...nodes, ...retrying]), { maxEvents: 2 }).begin();
    trial.fails("r5", RETRYABLE).fails("r4", RETRYABLE).at(100_000);
    const slices = [];
    for (let i = 0; i < 5; i++) slices.push(trial.step().map((event) => ("node" in event ? event.node : event.kind)));
    // A node that fails ends its slice: what follows may depend on it.
    expect(slices).toEqual([["n1"], ["r5", "r4"], ["n2"], ["n3"], ["r5", "r4"]]);
  });

  test("a deadline of a node that waits for nothing is our own bug, and is not passed over", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"])])).begin();
    const run = trial.state.run(trial.index("b"));
    run.dueAtMs = START_MS;
    trial.state.timers.push(START_MS, trial.index("b"));
    expect(() => advance(trial.state, trial.context)).toThrow("b is pending and has a deadline");
  });
});

describe("skips", () => {
  test("a branch is skipped in slices of as many events as a decision may have", () => {
    const nodes = [
      node("a", [], { condition: "false" }),
      ...Array.from({ length: 10 }, (_, i) => node(`n${i}`, ["a"])),
    ];
    const trial = new Trial(workflow(nodes), { maxEvents: 4 });
    trial.send(startBody());
    const slices: number[] = [];
    for (let events = trial.step(); events.length > 0; events = trial.step()) slices.push(events.length);
    expect(slices).toEqual([1, 4, 4, 2, 1]);
    expect(trial.state.status).toBe("completed");
    expect(trial.kinds().filter((kind) => kind === "nodeSkipped")).toHaveLength(11);
  });

  test("what is skipped is known by why, down the graph", () => {
    const trial = new Trial(
      workflow([
        node("f", [], branch),
        node("s", [], { condition: "1 > 2" }),
        node("f1", ["f"]),
        node("f2", ["f1"]),
        node("s1", ["s"]),
        node("both", ["f2", "s1"]),
      ]),
    )
      .begin()
      .fails("f");
    expect(trial.shown).toEqual({
      f: "FAILED",
      s: "SKIPPED condition",
      f1: "SKIPPED upstream_failed",
      f2: "SKIPPED upstream_failed",
      s1: "SKIPPED condition",
      both: "SKIPPED upstream_failed",
    });
  });
});

describe("dispatch", () => {
  test("ready nodes go out in the order in which they became ready, at most maxEvents at a time", () => {
    const nodes = ["e", "d", "c", "b", "a"].map((id) => node(id));
    const trial = new Trial(workflow(nodes), { maxEvents: 2 });
    trial.send(startBody());
    const sent = [];
    for (let events = trial.step(); events.length > 0; events = trial.step())
      sent.push(events.map((event) => "node" in event && event.node));
    expect(sent).toEqual([["e", "d"], ["c", "b"], ["a"]]);
  });

  test("the event and the task of a dispatch agree, and the event sets the deadline for its start", () => {
    const trial = new Trial(
      workflow([node("a", [], { config: { k: 1 }, priority: 7, queue: "q", queue_timeout_seconds: 5 })]),
    );
    trial.begin();
    expect(trial.events.at(-1)).toEqual({
      kind: "taskDispatched",
      atMs: START_MS,
      node: "a",
      attempt: 1,
      delivery: 1,
      nonce: "nonce",
      seen: 2,
      inputHash: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      queueDeadlineAtMs: START_MS + 5000,
    });
    expect(trial.tasks).toMatchObject([{ token: "nonce:x:1:a:1:1", queue: "q", priority: 7 }]);
    expect(trial.task("a")).toEqual({
      token: "nonce:x:1:a:1:1",
      execution: "x",
      node: "a",
      handler: "step",
      generation: 1,
      attempt: 1,
      delivery: 1,
      idempotencyKey: "x/a/1",
      timeoutMs: 30_000,
      config: { k: 1 },
      holes: [],
    });
  });

  test("a task's timeout is capped by what is left of the workflow's, and is never none", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"])], { timeout_seconds: 10 })).begin();
    expect(trial.task("a").timeoutMs).toBe(10_000);
    trial.at(9999).completes("a");
    expect(trial.task("b").timeoutMs).toBe(1);
  });

  test("a queue without room blocks its nodes and no others", () => {
    const nodes = [
      node("s1"),
      node("s2"),
      node("f1", [], { queue: "fast" }),
      node("s3"),
      node("f2", [], { queue: "fast" }),
    ];
    const trial = new Trial(workflow(nodes), { room: (queue) => (queue === "step" ? 1 : 10) });
    trial.send(startBody());
    trial.step();
    expect(trial.tasks.map(({ token }) => token.split(":")[3])).toEqual(["s1", "f1", "f2"]);
    expect(trial.last.blocked).toEqual(["step"]);
    expect(executionMachine.hasWork(trial.state)).toBe(true);
    trial.room = () => 0;
    expect(trial.step()).toEqual([]);
    expect(trial.last.blocked).toEqual(["step"]);
    trial.room = () => 10;
    trial.step();
    expect(trial.tasks.slice(3).map(({ token }) => token.split(":")[3])).toEqual(["s2", "s3"]);
    expect([...executionMachine.liveTasks(trial.state)]).toEqual([
      ["step", 3],
      ["fast", 2],
    ]);
  });

  test("room is used up only by what goes out, not by a node that its condition skips", () => {
    const nodes = [node("no", [], { condition: "false" }), node("yes")];
    const trial = new Trial(workflow(nodes), { room: () => 1 }).begin();
    expect(trial.shown).toEqual({ no: "SKIPPED condition", yes: "QUEUED" });
  });

  test("no more nodes are out than max_parallel_nodes, and a retry that waits is not out", () => {
    const nodes = ["a", "b", "c", "d"].map((id) => node(id));
    const trial = new Trial(workflow(nodes, { max_parallel_nodes: 2 })).begin();
    const out = (): string[] => [...trial.state.live].map((i) => nodes[i]!.id);
    expect(out()).toEqual(["a", "b"]);
    expect(executionMachine.hasWork(trial.state)).toBe(false);
    trial.fails("a", RETRYABLE);
    expect(out()).toEqual(["b", "c"]);
    trial.completes("b");
    expect(out()).toEqual(["c", "d"]);
    trial.at(1000).settle();
    expect(trial.status("a")).toBe("pending");
    trial.completes("c");
    expect(out()).toEqual(["d", "a"]);
  });

  test("the whole of a large fan is dispatched, each node once", () => {
    const nodes = [node("root"), ...Array.from({ length: 3000 }, (_, i) => node(`n${i}`, ["root"]))];
    const trial = new Trial(workflow(nodes), { room: () => 1_000_000, large: true }).begin().completes("root");
    expect(trial.tasks).toHaveLength(3001);
    expect(new Set(trial.tasks.map(({ token }) => token)).size).toBe(3001);
  });
});

describe("conditions", () => {
  const after = (condition: string, more = {}): Trial =>
    new Trial(workflow([node("a"), node("b", ["a"], { condition, ...more }), node("c", ["b"], branch)]))
      .begin({ json: { limit: 5 } })
      .completes("a", { n: 7, flag: "yes" });

  test.each([
    ["a.n > 5", "QUEUED"],
    ["a.n > input.limit", "QUEUED"],
    ["a.n < 5", "SKIPPED condition"],
    ["has(a.nothing)", "SKIPPED condition"],
  ])("%s leaves the node %s", (condition, shown) => expect(after(condition).shown["b"]).toBe(shown));

  test.each(["a.nothing > 5", "a.flag", "a.n"])("%s cannot be judged, so the node fails", (condition) => {
    const trial = after(condition);
    expect(trial.view("b")).toMatchObject({ status: "FAILED", error: { code: "CONDITION_ERROR", retryable: false } });
    expect(trial.events.at(-1)).toMatchObject({ kind: "executionEnded", reason: "fail_fast", error: { node: "b" } });
  });

  test.each(["a.nothing > 5", "a.flag"])("%s cannot be judged, so a node that says so is skipped", (condition) => {
    const trial = after(condition, { condition_on_error: "skip" });
    expect(trial.shown).toMatchObject({ b: "SKIPPED condition", c: "SKIPPED condition" });
    expect(trial.state.status).toBe("completed");
  });

  test("a condition that failed leaves a dead letter", () => {
    const trial = after("a.flag", branch);
    expect(trial.shown).toMatchObject({ b: "FAILED", c: "SKIPPED upstream_failed" });
    expect(trial.state.status).toBe("partial");
  });

  test("a condition is asked before the first attempt only", () => {
    const nodes = [node("x"), node("a"), node("b", ["a", "x"], { condition: "!has(x.n)", join: "one_success" })];
    const trial = new Trial(workflow(nodes)).begin().completes("a");
    trial.completes("x", { n: 1 }).fails("b", RETRYABLE).at(100_000).settle();
    expect(trial.view("b")).toMatchObject({ status: "QUEUED", attempt: 2 });
  });

  test("a condition over a large output asks for it first", () => {
    const nodes = [node("a"), node("b", ["a"], { condition: "a.n > 5" })];
    const trial = new Trial(workflow(nodes)).begin();
    const blob = { hash: "h1", bytes: 100_000 };
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob }, runningMs: 1 });
    expect(trial.step()).toEqual([]);
    expect(trial.last.needs).toEqual([{ blob }]);
    trial.fetched.set("h1", { n: 6 });
    expect(trial.step()).toMatchObject([{ kind: "taskDispatched", node: "b" }]);
  });
});

describe("templates", () => {
  test("what cannot be resolved fails the node for good, and says where", () => {
    const nodes = [node("a"), node("b", ["a"], { config: { deep: ["{{ a.nothing }}"] }, ...branch }), node("c")];
    const trial = new Trial(workflow(nodes)).begin().completes("a", {});
    expect(trial.events.at(-1)).toMatchObject({
      kind: "nodeFailed",
      node: "b",
      error: { code: "TEMPLATE_UNRESOLVED", retryable: false, details: { pointer: "/deep/0" } },
    });
    expect(trial.taskTexts("b")).toEqual([]);
  });

  test("a failure ends the slice, and under fail_fast the execution with it: nothing behind it goes out", () => {
    const bad = node("b", [], { config: { x: "{{ input.nothing }}" } });
    const trial = new Trial(workflow([node("a"), bad, node("c")]));
    trial.send(startBody({ json: {} }));
    expect(trial.step().map((event) => event.kind)).toEqual(["taskDispatched", "nodeFailed", "executionEnded"]);
    expect(trial.last.deadLetters).toMatchObject([{ id: "x:1:b", class: "poison" }]);
    expect(trial.shown).toEqual({ a: "CANCELLED fail_fast", b: "FAILED", c: "CANCELLED fail_fast" });
  });

  test("a failure under fail_branch ends the slice only", () => {
    const bad = node("b", [], { config: { x: "{{ input.nothing }}" }, ...branch });
    const trial = new Trial(workflow([node("a"), bad, node("c")])).begin({ json: {} });
    expect(trial.shown).toEqual({ a: "QUEUED", b: "FAILED", c: "QUEUED" });
  });

  test("a node reads its ancestors, the input and the execution", () => {
    const config = { n: "{{ a.n }}", text: "{{ a.n }} of {{ input.who }}", id: "{{ execution.id }}", all: "{{ a }}" };
    const trial = new Trial(workflow([node("a"), node("b", ["a"], { config })])).begin({ json: { who: "ann" } });
    trial.completes("a", { n: 3 });
    expect(trial.task("b").config).toEqual({ n: 3, text: "3 of ann", id: "x", all: { n: 3 } });
  });

  test("a node reads the error of a parent that failed and says continue", () => {
    const nodes = [
      node("a", [], { on_error: "continue" }),
      node("b", ["a"], { config: { why: "{{ a.error.code }}", got: "{{ a.n | default(0) }}" } }),
    ];
    const trial = new Trial(workflow(nodes)).begin().fails("a", { code: "BROKE" });
    expect(trial.task("b").config).toEqual({ why: "BROKE", got: 0 });
  });

  test("a secret stays a hole in the task", () => {
    const config = { auth: "Bearer {{ secrets.TOKEN }}" };
    const trial = new Trial(workflow([node("a", [], { config })])).begin();
    expect(trial.task("a").holes).toEqual([
      { pointer: "/auth", kind: "secret", parts: [{ text: "Bearer " }, { secret: "TOKEN" }] },
    ]);
    expect(trial.tasks[0]!.text).not.toContain("{{");
  });

  test("a task that stays in the process says the same as its text, anew to everybody who asks", () => {
    const nodes = [node("a"), node("b", ["a"], { inputs: true, config: { got: "{{ a.list }}" } })];
    const trial = new Trial(workflow(nodes)).begin().completes("a", { list: [1] });
    const task = trial.tasks.at(-1)!;
    const read = (): TaskText => task.value() as TaskText;
    expect(read()).toEqual(JSON.parse(task.text));
    (read().inputs as { a: { list: number[] } }).a.list.push(2);
    (read().config as { got: number[] }).got.push(2);
    expect([read().inputs, read().config]).toEqual([{ a: { list: [1] } }, { got: [1] }]);
    expect(trial.state.runs[0]!.output).toEqual({ json: { list: [1] } });
  });

  test("inputs: true gives the outputs of the parents that completed", () => {
    const nodes = [
      node("a"),
      node("b", [], { on_error: "continue" }),
      node("c", [], { condition: "false" }),
      node("d", ["a", "b", { id: "c", on: "done" }], { inputs: true }),
    ];
    const trial = new Trial(workflow(nodes)).begin().completes("a", 1).fails("b");
    expect(trial.task("d").inputs).toEqual({ a: 1 });
  });
});

describe("nodes that the engine runs", () => {
  const engine = (handler: string, config: Record<string, Json> = {}): object => ({
    handler,
    config,
    timeout_seconds: null,
  });

  test.each<[string, Record<string, Json>, Json, Json]>([
    ["the input as it is", {}, { n: 1 }, { n: 1 }],
    ["the input over the config as defaults", { n: 0, m: 2 }, { n: 1 }, { n: 1, m: 2 }],
    ["the defaults when there is no input", { m: 2 }, null, { m: 2 }],
    ["an input that is no object as it is", { m: 2 }, [1], [1]],
    ["nothing as an empty object", {}, null, {}],
  ])("input gives %s", (_, config, input, output) => {
    const trial = new Trial(workflow([node("i", [], engine("input", config)), node("a", ["i"])])).begin({
      json: input,
    });
    expect(trial.view("i")).toMatchObject({ status: "COMPLETED", attempt: 0, output: { json: output } });
  });

  test("output gives its resolved config", () => {
    const trial = new Trial(workflow([node("a"), node("o", ["a"], engine("output", { got: "{{ a.n }}" }))])).begin();
    trial.completes("a", { n: 4 });
    expect(viewExecution(trial.state)).toMatchObject({ status: "COMPLETED", output: { got: 4 } });
  });

  test("output without config collects the parents that completed", () => {
    const nodes = [node("a"), node("b", [], { condition: "false" }), node("o", ["a", "b"], engine("output"))];
    const trial = new Trial(workflow(nodes)).begin().completes("a", { n: 4 });
    expect(viewExecution(trial.state).output).toEqual({ a: { n: 4 } });
  });

  test("they run at once, one after the other, without a task or a place in a queue", () => {
    const nodes = [node("i", [], engine("input")), node("o", ["i"], engine("output"))];
    const trial = new Trial(workflow(nodes), { room: () => 0 }).begin({ json: { n: 1 } });
    expect(viewExecution(trial.state)).toMatchObject({ status: "COMPLETED", output: { i: { n: 1 } } });
    expect(trial.tasks).toEqual([]);
  });

  test("a secret has no business in the output", () => {
    const trial = new Trial(workflow([node("o", [], engine("output", { s: "{{ secrets.TOKEN }}" }))])).begin();
    expect(trial.view("o")).toMatchObject({ status: "FAILED", error: { code: "CONFIG_INVALID" } });
  });

  test("a template of theirs that cannot be resolved fails them", () => {
    const nodes = ["input", "output"].map((handler) =>
      node(handler, [], { ...engine(handler, { x: "{{ input.y }}" }), ...branch }),
    );
    const trial = new Trial(workflow(nodes)).begin({ json: {} });
    expect(trial.shown).toEqual({ input: "FAILED", output: "FAILED" });
  });

  test("a kind that this engine does not run fails, and harms nothing else", () => {
    const trial = new Trial(workflow([node("w", [], { ...engine("wait"), ...branch }), node("a")]));
    Object.assign(trial.state.plan.nodes[0]!, { spec: { ...trial.state.plan.nodes[0]!.spec, handler: "dream" } });
    trial.begin();
    expect(trial.view("w")).toMatchObject({ status: "FAILED", error: { code: "UNKNOWN_HANDLER" } });
    expect(trial.status("a")).toBe("queued");
  });
});

describe("large values", () => {
  const blob = { hash: "h1", bytes: 100_000 };
  const large = { text: "x".repeat(70_000) };

  function afterBlob(config: Record<string, Json>, more = {}): Trial {
    const trial = new Trial(workflow([node("a"), node("b", ["a"], { config, ...more })])).begin();
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob }, runningMs: 1 });
    return trial;
  }

  test("one that is passed on whole stays a hole, and is not fetched", () => {
    const trial = afterBlob({ all: "{{ a }}" }).settle();
    expect(trial.task("b").holes).toEqual([{ pointer: "/all", kind: "blob", ref: blob }]);
  });

  test("one that is read deeper is asked for, and then read", () => {
    const trial = afterBlob({ n: "{{ a.n }}" });
    expect([trial.step(), trial.last.needs]).toEqual([[], [{ blob }]]);
    trial.fetched.set("h1", { n: 5 });
    trial.settle();
    expect(trial.task("b").config).toEqual({ n: 5 });
  });

  test("the task is the same whether the value happened to be in memory or not", () => {
    const without = afterBlob({ all: "{{ a }}" }).settle();
    const trial = afterBlob({ all: "{{ a }}" });
    trial.fetched.set("h1", { n: 5 });
    trial.settle();
    expect(trial.task("b")).toEqual(without.task("b"));
    expect(trial.events).toEqual(without.events);
  });

  test("a node that waits for a value does not hold up those behind it", () => {
    const nodes = [node("a"), node("b", ["a"], { config: { n: "{{ a.n }}" } }), node("c", ["a"])];
    const trial = new Trial(workflow(nodes)).begin();
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob }, runningMs: 1 });
    expect(trial.step()).toMatchObject([{ kind: "taskDispatched", node: "c" }]);
    expect(trial.last.needs).toEqual([{ blob }]);
    trial.fetched.set("h1", { n: 5 });
    expect(trial.step()).toMatchObject([{ kind: "taskDispatched", node: "b" }]);
  });

  test("values that are more than 4 MiB together are refused before they are fetched", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"], { config: { n: "{{ a.n }}" } })])).begin();
    const huge = { hash: "h2", bytes: 5 * 1024 * 1024 };
    trial.send({ kind: "taskCompleted", token: trial.token("a"), output: { blob: huge }, runningMs: 1 });
    trial.settle();
    expect(trial.view("b")).toMatchObject({ status: "FAILED", error: { code: "RESOLVED_INPUT_TOO_LARGE" } });
  });

  test("a config that becomes more than 4 MiB fails its node", () => {
    const config = Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`k${i}`, "{{ input.text }}"]));
    const trial = new Trial(workflow([node("a", [], { config })])).begin({ json: { text: "x".repeat(60_000) } });
    expect(trial.view("a")).toMatchObject({ status: "FAILED", error: { code: "RESOLVED_INPUT_TOO_LARGE" } });
  });

  test("a large resolved config is a blob that the commit names and the task points to", () => {
    const config = { a: "{{ input.text }}", b: "{{ input.text }}" };
    const trial = new Trial(workflow([node("a", [], { config })]));
    trial.send(startBody({ json: { text: "x".repeat(40_000) } }));
    trial.step();
    const [{ hash, text }] = trial.last.blobs as [{ hash: string; text: string }];
    expect(trial.events.at(-1)).toMatchObject({ config: { hash, bytes: text.length }, inputHash: hash });
    expect(trial.task("a")).toMatchObject({ body: { hash, bytes: text.length } });
    expect(trial.task("a")).not.toHaveProperty("config");
    expect(JSON.parse(text)).toMatchObject({ holes: [], config: { a: "x".repeat(40_000) } });
  });

  test("a large output of an engine node is a blob", () => {
    const nodes = [node("i", [], { handler: "input", timeout_seconds: null })];
    const trial = new Trial(workflow(nodes));
    trial.send(startBody({ json: large }));
    trial.step();
    const [written] = trial.last.blobs!;
    expect(trial.view("i").output).toEqual({ blob: { hash: written!.hash, bytes: JSON.stringify(large).length } });
    expect(JSON.parse(written!.text)).toEqual(large);
  });

  test("an engine node fetches what it passes on, because its output must be whole", () => {
    const nodes = [node("o", [], { handler: "output", timeout_seconds: null, config: { all: "{{ input }}" } })];
    const trial = new Trial(workflow(nodes));
    trial.send(startBody({ blob }));
    expect([trial.step(), trial.last.needs]).toEqual([[], [{ blob }]]);
    trial.fetched.set("h1", { n: 5 });
    trial.settle();
    expect(viewExecution(trial.state).output).toEqual({ all: { n: 5 } });
  });

  test("an input node fetches a large input, and collecting nodes fetch large outputs", () => {
    const input = new Trial(workflow([node("i", [], { handler: "input", timeout_seconds: null })]));
    input.send(startBody({ blob }));
    expect([input.step(), input.last.needs]).toEqual([[], [{ blob }]]);
    input.fetched.set("h1", { n: 5 });
    expect(input.step()).toMatchObject([{ kind: "nodeCompleted", output: { json: { n: 5 } } }]);

    const inputs = afterBlob({}, { inputs: true });
    expect([inputs.step(), inputs.last.needs]).toEqual([[], [{ blob }]]);
    inputs.fetched.set("h1", 5);
    inputs.settle();
    expect(inputs.task("b").inputs).toEqual({ a: 5 });

    const output = afterBlob({}, { handler: "output", timeout_seconds: null });
    expect([output.step(), output.last.needs]).toEqual([[], [{ blob }]]);
    output.fetched.set("h1", 5);
    expect(output.step()).toMatchObject([{ kind: "nodeCompleted", output: { json: { a: 5 } } }]);
  });
});

test("an execution that is not running has nothing to do by itself", () => {
  const trial = new Trial(workflow([node("a")]));
  expect(trial.step()).toEqual([]);
  trial.begin().completes("a");
  expect(trial.step()).toEqual([]);
  expect(executionMachine.hasWork(trial.state)).toBe(false);
});

test("the error of an attempt is not an error of the execution", () => {
  const trial = new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE).at(5000).settle().completes("a");
  expect(viewExecution(trial.state)).toMatchObject({ status: "COMPLETED", error: null });
});

describe("priority", () => {
  test("of what is ready in one queue, higher ones go out first; equals in the order in which they became ready", () => {
    const nodes = [
      node("low", [], { priority: -5 }),
      node("first"),
      node("high", [], { priority: 7 }),
      node("second"),
      node("engine", [], { handler: "input", timeout_seconds: null, priority: -9 }),
    ];
    const trial = new Trial(workflow(nodes)).begin();
    expect(trial.tasks.map(({ token, priority }) => [token.split(":")[3], priority])).toEqual([
      ["high", 7],
      ["first", 0],
      ["second", 0],
      ["low", -5],
    ]);
    // The engine's own are there for the asking.
    expect(trial.events[2]).toMatchObject({ kind: "nodeCompleted", node: "engine" });
  });

  test("decides who runs when there is room for few", () => {
    const nodes = [
      node("low", [], { priority: 1 }),
      node("high", [], { priority: 2 }),
      node("mid", [], { priority: 1.5 }),
    ];
    const trial = new Trial(workflow(nodes, { max_parallel_nodes: 1 })).begin();
    expect(trial.out).toEqual(["high"]);
    expect(trial.completes("high").out).toEqual(["mid"]);
    expect(trial.completes("mid").out).toEqual(["low"]);
  });

  test("of another queue does not hold anybody up", () => {
    const nodes = [node("a", [], { priority: 9, queue: "full" }), node("b", [], { priority: 1, queue: "free" })];
    const trial = new Trial(workflow(nodes), { room: (queue) => (queue === "full" ? 0 : 5) }).begin();
    expect(trial.out).toEqual(["b"]);
    expect(trial.last.blocked).toEqual(["full"]);
  });

  test("holds for items of maps, retries and lost deliveries alike", () => {
    const nodes = [node("a", [], { priority: 5 }), node("b")];
    const trial = new Trial(workflow(nodes, { max_parallel_nodes: 1 })).begin();
    trial.send({
      kind: "taskFailed",
      token: trial.token("a"),
      error: { code: "E", message: "", retryable: true },
      runningMs: 1,
    });
    trial.settle();
    expect(trial.out).toEqual(["b"]);
    trial.room = () => 0;
    trial.at(5000).loses("b");
    trial.room = () => 9;
    // Both are ready: the attempt of `a` goes before the delivery of `b`.
    expect(trial.settle().out).toEqual(["a"]);
  });
});

describe("what is held back by max_parallel_nodes", () => {
  test("reads as WAITING parallel, and no longer once there is a place", () => {
    const trial = new Trial(workflow([node("a"), node("b"), node("c", ["a"])], { max_parallel_nodes: 1 })).begin();
    expect(trial.shown).toEqual({ a: "QUEUED", b: "WAITING parallel", c: "PENDING" });
    expect(trial.completes("a").shown).toEqual({ a: "COMPLETED", b: "QUEUED", c: "WAITING parallel" });
  });

  test("is no engine's own node: those run", () => {
    const nodes = [node("a"), node("i", [], { handler: "input", timeout_seconds: null })];
    expect(new Trial(workflow(nodes, { max_parallel_nodes: 1 })).begin().shown).toEqual({
      a: "QUEUED",
      i: "COMPLETED",
    });
  });
});
