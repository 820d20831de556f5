import { describe, expect, test } from "vitest";
import type { WorkflowNode } from "../../../definition/workflow.ts";
import type { Json } from "../../../json/json.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, imprint, mapNode, node, RETRYABLE, START_MS, Trial, workflow } from "../test-execution.ts";
import { Family } from "../test-family.ts";

const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };
const step = { handler: "step", config: { item: "{{ item }}", place: "{{ index }}" } };

function mapping(config: Record<string, Json>, input: Json = null, more: Partial<WorkflowNode> = branch): Trial {
  return new Trial(workflow([mapNode("m", { ...step, ...config }, [], more), node("b", ["m"])])).begin({ json: input });
}

describe("items", () => {
  test("each becomes a task with its item and its place, named by the node and the place", () => {
    const trial = mapping({ items: ["a", { deep: 1 }] });
    expect(trial.out).toEqual(["m[0]", "m[1]"]);
    expect(trial.taskTexts("m[1]")).toMatchObject([
      {
        token: "nonce:x:1:m[1]:1:1",
        node: "m",
        item: 1,
        handler: "step",
        idempotencyKey: "x/m[1]/1",
        config: { item: { deep: 1 }, place: 1 },
      },
    ]);
    expect(trial.view("m")).toMatchObject({ status: "RUNNING", items: { total: 2, completed: 0, failed: 0 } });
  });

  test("come from a template, and see what the map sees", () => {
    const config = {
      items: "{{ p.list }}",
      handler: "step",
      config: { both: "{{ item }} {{ p.word }} {{ input.n }}" },
    };
    const trial = new Trial(workflow([node("p"), mapNode("m", config, ["p"])])).begin({ json: { n: 5 } });
    trial.completes("p", { list: ["x", "y"], word: "of" });
    expect(trial.taskTexts("m[1]")[0]!.config).toEqual({ both: "y of 5" });
  });

  test("that nobody wants collected are counted, however large they are", () => {
    const trial = mapping({ items: [1, 2, 3], collect: false, tolerated_failures: 1 });
    trial.completes("m[0]", "x".repeat(20_000_000)).fails("m[1]").completes("m[2]", 1);
    expect(trial.view("m")).toMatchObject({
      status: "COMPLETED",
      output: { json: { total: 3, completed: 2, failed: 1 } },
    });
    expect(mapping({ items: [], collect: false }).view("m").output).toEqual({
      json: { total: 0, completed: 0, failed: 0 },
    });
  });

  test("are counted where a template says so, those of a large map too", () => {
    const config = {
      items: "{{ p.list }}",
      collect: "{{ p.collect }}",
      handler: "output",
      config: { is: "{{ item }}" },
    };
    const all = new Family(workflow([node("p"), mapNode("m", config, ["p"])])).begin();
    all.root.completes("p", { list: Array.from({ length: 1001 }, (_, i) => i), collect: false });
    expect(all.deliver().root.view("m").output).toEqual({ json: { total: 1001, completed: 1001, failed: 0 } });
  });

  test.each([
    ["collect", "no"],
    ["collect", null],
    ["max_concurrency", 1_001],
    ["max_concurrency", 1.5],
    ["tolerated_failures", 1.5],
    ["tolerated_failures", "150%"],
  ])("%s of %j is none", (name, value) => {
    const trial = mapping({ items: [1], [name]: "{{ input.value }}" }, { value });
    expect(trial.view("m").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: `/${name}` } });
  });

  test("of which there are none complete the map with an empty list", () => {
    const trial = mapping({ items: [] });
    expect(trial.view("m")).toMatchObject({ status: "COMPLETED", output: { json: [] } });
    expect(trial.shown["b"]).toBe("QUEUED");
  });

  test("of which there are none are counted as none, whatever there was before", () => {
    const none = { total: 0, completed: 0, failed: 0 };
    expect(mapping({ items: [] }).view("m").items).toEqual(none);
    expect(mapping({ items: [], collect: false }).view("m").items).toEqual(none);
    const trial = mapping({ items: "{{ input.items }}" }, { items: [1] }).fails("m[0]");
    expect(trial.view("m").items).toEqual({ total: 1, completed: 0, failed: 1 });
    trial.does({ kind: "retry", scope: "descendants", from: "m", input: { json: { items: [] } } });
    expect(trial.view("m")).toMatchObject({ status: "COMPLETED", items: none });
  });

  test.each<[string, Json]>([
    ["object", { a: 1 }],
    ["string", "abc"],
    ["null", null],
    ["number", 5],
  ])("that are no list but %s fail it", (kind, items) => {
    const trial = mapping({ items: "{{ input.items }}" }, { items });
    expect(trial.view("m")).toMatchObject({
      status: "FAILED",
      error: { code: "MAP_ITEMS_INVALID", retryable: false, message: `"items" must be a list, not ${kind}` },
    });
    expect(trial.tasks).toEqual([]);
  });

  test("of which there are more than 100,000 fail it before the first runs", () => {
    const trial = mapping({ items: Array.from({ length: 100_001 }, () => 0) });
    expect(trial.view("m")).toMatchObject({ status: "FAILED", error: { code: "MAP_TOO_LARGE", retryable: false } });
    expect(trial.tasks).toEqual([]);
    expect(trial.mail).toEqual([]);
  });

  test("that are large together are a blob, which is asked for when an item is made", () => {
    const items = Array.from({ length: 3 }, (_, i) => String(i).repeat(30_000));
    const trial = new Trial(workflow([mapNode("m", { ...step, items })]));
    trial.begin();
    const [blob] = trial.blobs;
    expect(trial.events.at(-1)).toMatchObject({ kind: "mapOpened", items: { blob: { hash: blob!.hash } }, count: 3 });
    expect(trial.last.needs).toMatchObject([{ blob: { hash: blob!.hash } }]);
    trial.fetched.set(blob!.hash, JSON.parse(blob!.text) as Json);
    trial.settle();
    expect(trial.taskTexts("m[2]")[0]!.config).toMatchObject({ item: "2".repeat(30_000) });
  });
});

describe("the output", () => {
  test("is a list in the order of the items, whatever the order in which they end", () => {
    const trial = mapping({ items: ["a", "b", "c"] });
    trial.completes("m[2]", "C").completes("m[0]", "A");
    expect(trial.view("m").items).toEqual({ total: 3, completed: 2, failed: 0 });
    trial.completes("m[1]", null);
    expect(trial.view("m")).toMatchObject({ status: "COMPLETED", items: { total: 3, completed: 3, failed: 0 } });
    expect(trial.view("m").output).toEqual({ json: ["A", null, "C"] });
  });

  test("has null for a failure that is tolerated", () => {
    const trial = mapping({ items: ["a", "b", "c"], tolerated_failures: 1 });
    trial.fails("m[1]").completes("m[0]", "A").completes("m[2]", "C");
    expect(trial.view("m")).toMatchObject({ status: "COMPLETED", items: { total: 3, completed: 2, failed: 1 } });
    expect(trial.view("m").output).toEqual({ json: ["A", null, "C"] });
    expect(trial.completes("b").summary.status).toBe("COMPLETED");
  });

  test("fetches what items gave as blobs", () => {
    const trial = mapping({ items: [1] });
    const blob = { hash: "h", bytes: 90_000 };
    trial.send({ kind: "taskCompleted", token: trial.token("m[0]"), output: { blob }, runningMs: 1 });
    expect([trial.step(), trial.last.needs]).toEqual([[], [{ blob }]]);
    trial.fetched.set("h", "x".repeat(90_000));
    trial.settle();
    expect(trial.status("m")).toBe("completed");
    expect(trial.view("m").output).toHaveProperty("blob");
  });

  test("of more than 16 MiB fails the map", () => {
    const trial = mapping({ items: [1, 2] });
    for (const id of ["m[0]", "m[1]"]) {
      const blob = { hash: id, bytes: 9 * 1024 * 1024 };
      trial.send({ kind: "taskCompleted", token: trial.token(id), output: { blob }, runningMs: 1 });
    }
    trial.settle();
    expect(trial.view("m")).toMatchObject({ status: "FAILED", error: { code: "OUTPUT_TOO_LARGE", retryable: false } });
  });
});

describe("concurrency", () => {
  test("no more items are under way than it allows, and the next follows as one ends", () => {
    const trial = mapping({ items: [0, 1, 2, 3], max_concurrency: 2 });
    expect(trial.out).toEqual(["m[0]", "m[1]"]);
    expect(trial.completes("m[1]").out).toEqual(["m[0]", "m[2]"]);
    // One that waits for its next attempt is under way.
    expect(trial.fails("m[0]", RETRYABLE).out).toEqual(["m[2]"]);
    expect(trial.completes("m[2]").out).toEqual(["m[3]"]);
  });

  test("is 10 unless something else is said, and items keep to the limits of the execution", () => {
    const items = Array.from({ length: 25 }, (_, i) => i);
    expect(mapping({ items }).out).toHaveLength(10);
    const limited = new Trial(workflow([mapNode("m", { ...step, items })], { max_parallel_nodes: 3 })).begin();
    expect(limited.out).toHaveLength(3);
    expect(limited.view("m[3]")).toMatchObject({ status: "WAITING", reason: "parallel" });
  });

  test.each([0, -1, 1.5, "many"])("of %j is none", (most) => {
    const trial = mapping({ items: [1], max_concurrency: "{{ input.most }}" }, { most });
    expect(trial.view("m").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/max_concurrency" } });
  });
});

describe("failures", () => {
  test("one too many fails the map at once, with which and why; the rest is withdrawn", () => {
    const trial = mapping({ items: [0, 1, 2, 3], max_concurrency: 3, tolerated_failures: 1 });
    const open = trial.token("m[2]");
    trial.fails("m[0]", { code: "FIRST" });
    expect(trial.status("m")).toBe("running");
    trial.send({
      kind: "taskFailed",
      token: trial.token("m[1]"),
      error: { code: "E", message: "x", retryable: false },
      runningMs: 1,
    });
    expect(trial.step()).toMatchObject([
      {
        kind: "nodeFailed",
        node: "m",
        error: {
          code: "MAP_FAILED",
          retryable: false,
          message: "2 of 4 items failed, 1 are tolerated; m[0]: broke",
          details: { items: [0, 1], first: { code: "FIRST" } },
        },
      },
    ]);
    expect(trial.last.revoke).toContain(open);
    trial.settle();
    expect(trial.view("m[2]")).toMatchObject({ status: "CANCELLED", reason: "fail_fast" });
    expect(trial.out).toEqual([]);
    expect(trial.shown).toEqual({ m: "FAILED", b: "SKIPPED upstream_failed" });
  });

  test("under fail_fast the execution ends with the map, not with the item", () => {
    const trial = mapping({ items: [0, 1], tolerated_failures: 1 }, null, {});
    trial.fails("m[0]");
    expect(trial.summary.status).toBe("RUNNING");
    trial.fails("m[1]");
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "MAP_FAILED", node: "m" } });
  });

  test.each<[Json, number, number]>([
    ["0%", 10, 0],
    ["10%", 10, 1],
    ["10%", 19, 1],
    ["33.4%", 3, 1],
    ["100%", 4, 4],
    [2, 10, 2],
  ])("of %j of %i items %i are tolerated", (tolerated, total, count) => {
    const items = Array.from({ length: total }, (_, i) => i);
    const trial = mapping({ items, tolerated_failures: tolerated, max_concurrency: 20 });
    for (let i = 0; i < count; i++) trial.fails(`m[${i}]`);
    expect(trial.status("m")).toBe(count === total ? "completed" : "running");
    if (count < total) expect(trial.fails(`m[${count}]`).status("m")).toBe("failed");
  });

  test.each(["some", -1, "10"])("of %j is no number and no share", (tolerated) => {
    const trial = mapping({ items: [1], tolerated_failures: "{{ input.t }}" }, { t: tolerated });
    expect(trial.view("m").error).toMatchObject({
      code: "CONFIG_INVALID",
      details: { pointer: "/tolerated_failures" },
    });
  });

  test("each item that failed leaves a letter, the map itself none", () => {
    const trial = mapping({ items: [0, 1, 2] });
    trial.fails("m[1]");
    expect(trial.letters.map(({ id }) => id)).toEqual(["x:1:m[1]"]);
    expect(JSON.parse(trial.letters[0]!.text)).toMatchObject({ node_id: "m[1]", handler: "step", attempts: 1 });
  });

  test("a template of an item that cannot be resolved fails that item", () => {
    const config = { handler: "step", config: { x: "{{ item.x }}" } };
    const trial = mapping({ ...config, items: [{ x: 1 }, {}], tolerated_failures: 1 });
    expect(trial.view("m[1]")).toMatchObject({ status: "FAILED", error: { code: "TEMPLATE_UNRESOLVED" } });
    trial.completes("m[0]", 1);
    expect(trial.view("m").output).toEqual({ json: [1, null] });
  });
});

describe("an item", () => {
  const retry = { max_attempts: 2, base_delay_seconds: 3, max_delay_seconds: 3, exponential_base: 1, jitter: 0 };

  test("is tried again by the policy of the map, else by that of its node", () => {
    const own = mapping({ items: [1, 2], retry });
    own.fails("m[0]", RETRYABLE);
    expect(own.view("m[0]")).toMatchObject({ status: "WAITING", reason: "retry", until: START_MS + 3000 });
    own.at(3000).settle().fails("m[0]", RETRYABLE);
    expect(own.status("m[0]")).toBe("failed");
    const nodes = mapping({ items: [1] }, null, { ...branch, retry: { ...retry, base_delay_seconds: 1 } });
    nodes.fails("m[0]", RETRYABLE);
    expect(nodes.view("m[0]").until).toBe(START_MS + 1000);
  });

  test("has deliveries, a start, a timeout and a queue like any task", () => {
    const trial = mapping({ items: [1] }, null, { ...branch, timeout_seconds: 30, queue: "q", retry });
    expect(trial.tasks[0]!.queue).toBe("q");
    trial.loses("m[0]");
    expect(trial.task("m[0]")).toMatchObject({ delivery: 2, timeoutMs: 30_000 });
    trial.starts("m[0]");
    expect(trial.status("m[0]")).toBe("running");
    trial.at(40_000).settle();
    expect(trial.view("m[0]")).toMatchObject({ status: "WAITING", error: { code: "TIMEOUT" } });
  });

  test("that was lost with three workers is poison", () => {
    const trial = mapping({ items: [1] })
      .loses("m[0]")
      .loses("m[0]")
      .loses("m[0]");
    expect(trial.view("m[0]").error?.code).toBe("POISON_TASK");
    expect(trial.status("m")).toBe("failed");
  });

  test("completes from any delivery of its attempt, and only once", () => {
    const trial = mapping({ items: [1, 2] });
    const zombie = trial.token("m[0]");
    trial.loses("m[0]");
    trial.send({ kind: "taskCompleted", token: zombie, output: { json: "z" }, runningMs: 1 });
    expect(trial.last.revoke).toEqual([trial.token("m[0]")]);
    expect(
      trial.send({ kind: "taskCompleted", token: trial.token("m[0]"), output: { json: "y" }, runningMs: 1 }),
    ).toEqual([]);
    expect(trial.last.reply).toEqual({ ok: { accepted: true } });
    expect(trial.settle().completes("m[1]").view("m").output).toEqual({ json: ["z", null] });
  });

  test("beyond the last does not exist", () => {
    const trial = mapping({ items: [1] });
    const token = trial.token("m[0]").replace("m[0]", "m[1]");
    trial.send({ kind: "taskCompleted", token, output: { json: 1 }, runningMs: 1 });
    expect(trial.last.reply).toEqual({ refused: "TASK_TOKEN_INVALID" });
  });
});

describe("engine's own nodes as items", () => {
  test("wait: each item waits for its own time", () => {
    const trial = mapping({ items: [1, 2], handler: "wait", config: { seconds: "{{ item }}" } });
    expect([trial.view("m[0]").until, trial.view("m[1]").until]).toEqual([START_MS + 1000, START_MS + 2000]);
    trial.at(2000).settle();
    expect(trial.view("m").output).toEqual({ json: [null, null] });
  });

  test("wait for a signal: the item that has waited longest takes it", () => {
    const trial = mapping({ items: [1, 2], handler: "wait", config: { signal: "s", timeout_seconds: 50 } });
    trial.does({ kind: "signal", name: "s", data: { json: "first" } });
    expect([trial.shown["m"], trial.view("m[0]").output]).toEqual(["RUNNING", { json: "first" }]);
    trial.does({ kind: "signal", name: "s", data: { json: "second" } });
    expect(trial.view("m").output).toEqual({ json: ["first", "second"] });
  });

  test("review: each item is decided on its own", () => {
    const config = { due_seconds: 100, on_due: "fail", title: "{{ item }}" };
    const trial = mapping({ items: ["a", "b"], handler: "review", config });
    const decide = { kind: "decideReview", generation: 1, data: null } as const;
    trial
      .does({ ...decide, instance: "m[1]", decision: "reject" })
      .does({ ...decide, instance: "m[0]", decision: "approve" });
    expect(trial.view("m").output).toMatchObject({ json: [{ decision: "approve" }, { decision: "reject" }] });
  });

  test("workflow: each item is a child with an input of its own", () => {
    const map = mapNode("m", {
      items: [1, 2, 3],
      handler: "workflow",
      config: { name: "w", input: { n: "{{ item }}" } },
    });
    const child = workflow([node("s", [], { config: { n: "{{ input.n }}" } })]);
    const all = new Family(workflow([map]), { w: child }).begin();
    for (const i of [2, 0, 1]) {
      const trial = all.childOf(`m[${i}]`);
      trial.completes("s", (trial.task("s").config as { n: number }).n * 10);
    }
    expect(all.deliver().root.view("m").output).toEqual({ json: [{ s: 10 }, { s: 20 }, { s: 30 }] });
  });

  test("output and input: at once", () => {
    const trial = mapping({ items: ["a", "b"], handler: "output", config: { is: "{{ item }}" } });
    expect(trial.view("m").output).toEqual({ json: [{ is: "a" }, { is: "b" }] });
  });
});

describe("a graph for each item", () => {
  const inner = [
    node("one", [], { config: { item: "{{ item }}", place: "{{ index }}", word: "{{ p.word }}", n: "{{ input.n }}" } }),
    node("two", ["one"], { config: { got: "{{ one }}" } }),
  ];
  const graph = workflow([
    node("p"),
    mapNode("m", { items: "{{ p.list }}", nodes: inner as unknown as Json, max_concurrency: 2 }, ["p"], branch),
    node("after", ["m"]),
  ]);

  function opened(): Family {
    const all = new Family(graph).begin({ json: { n: 5 } });
    all.root.completes("p", { list: ["a", "b", "c"], word: "w" });
    return all.deliver();
  }

  test("is a child that sees its item and what the map sees", () => {
    const all = opened();
    expect(all.members.size).toBe(3);
    expect(all.childOf("m[1]").task("one").config).toEqual({ item: "b", place: 1, word: "w", n: 5 });
    expect(all.childOf("m[0]").state.parent).toMatchObject({ entity: "execution/x", instance: "m[0]", depth: 1 });
  });

  test("gives the outputs of its sinks, in the order of the items", () => {
    const all = opened();
    for (const i of [1, 0, 2]) {
      all
        .childOf(`m[${i}]`)
        .completes("one", i)
        .completes("two", i * 10);
      all.deliver();
    }
    expect(all.root.view("m").output).toEqual({ json: [{ two: 0 }, { two: 10 }, { two: 20 }] });
    expect(all.root.shown["after"]).toBe("QUEUED");
  });

  test("has its definition written with the first call, under the name of the workflow and the map", () => {
    const all = opened();
    const definitions = all.root.blobs.filter(({ scope }) => scope === "definition");
    expect(new Set(definitions.map(({ hash }) => hash)).size).toBe(1);
    expect(JSON.parse(definitions[0]!.text)).toMatchObject({ name: "test[m]", nodes: [{ id: "one" }, { id: "two" }] });
  });

  test("that fails is one failure of the map, and the others are called off", () => {
    const all = opened();
    const other = all.childOf("m[1]");
    all.childOf("m[0]").fails("one");
    all.deliver();
    expect(all.root.view("m")).toMatchObject({ status: "FAILED", error: { code: "MAP_FAILED" } });
    expect(other.summary.status).toBe("CANCELLED");
    expect(all.root.view("m[1]")).toMatchObject({ status: "CANCELLED", reason: "fail_fast" });
  });

  test("may hold a map of its own, which sees both items", () => {
    const deep = [
      mapNode("d", {
        items: [1, 2],
        nodes: [node("s", [], { config: { item: "{{ item }}", w: "{{ p.word }}" } })] as unknown as Json,
      }),
    ];
    const map = mapNode("m", { items: ["a"], nodes: deep as unknown as Json }, ["p"]);
    const all = new Family(workflow([node("p"), map])).begin();
    all.root.completes("p", { word: "w" });
    all.deliver();
    const middle = all.childOf("m[0]");
    expect(all.childOf("d[1]", middle).task("s").config).toEqual({ item: 2, w: "w" });
    for (const i of [0, 1]) all.childOf(`d[${i}]`, middle).completes("s", i);
    expect(all.deliver().root.view("m").output).toEqual({ json: [{ d: [{ s: 0 }, { s: 1 }] }] });
  });

  test("large items and values around are blobs of the child", () => {
    const all = new Family(graph).begin({ json: { n: 5 } });
    all.root.completes("p", { list: ["x".repeat(70_000)], word: "y".repeat(70_000) });
    all.deliver();
    const child = all.childOf("m[0]");
    const written = JSON.parse(child.blobs[0]!.text) as { config: { item: string; word: string } };
    expect(written.config).toMatchObject({ item: "x".repeat(70_000), word: "y".repeat(70_000) });
  });
});

test("an `end` as an item ends the whole execution", () => {
  const trial = mapping({ items: [1, 2], handler: "end", config: { status: "COMPLETED", output: "{{ item }}" } });
  expect(trial.summary).toMatchObject({ status: "COMPLETED", output: 1 });
});

test("the condition, the join and on: failed of a map are those of any node", () => {
  const map = mapNode("m", { ...step, items: [1] }, ["p"], { condition: "p.go" });
  const nodes = [node("p"), map, node("catch", [{ id: "m", on: "failed" }])];
  expect(new Trial(workflow(nodes)).begin().completes("p", { go: false }).shown["m"]).toBe("SKIPPED condition");
  const caught = new Trial(workflow(nodes)).begin().completes("p", { go: true }).fails("m[0]");
  expect(caught.shown).toMatchObject({ m: "FAILED", catch: "QUEUED" });
  expect(caught.completes("catch").summary.status).toBe("COMPLETED");
});

test("what an item may read is what there was when the map was opened", () => {
  const config = { late: "{{ q.n | default(0) }}" };
  const map = mapNode("m", { items: [0, 1], handler: "step", config, max_concurrency: 1 }, ["p", "q"], {
    join: "one_success",
  });
  const trial = new Trial(workflow([node("p"), node("q"), map, engineNode("end", "output", {}, ["m"])])).begin();
  trial.completes("p").completes("q", { n: 9 }).completes("m[0]");
  expect([trial.task("m[0]").config, trial.task("m[1]").config]).toEqual([{ late: 0 }, { late: 0 }]);
});

describe("a map that is given something else to run", () => {
  const inner = { items: [1, 2], nodes: [node("i")] as unknown as Json };
  const other = (name: string): Record<string, Json> => ({
    items: [1, 2],
    handler: name,
    config: {},
    max_concurrency: 10,
    tolerated_failures: 0,
  });
  const graphs = (more: Partial<WorkflowNode> = {}): Trial =>
    new Trial(workflow([mapNode("m", inner, [], { queue: "map", ...more }), node("z")])).begin();
  const edited = (trial: Trial, config: Record<string, Json>): Trial =>
    trial.does({ kind: "cancel" }).does({ kind: "retry", scope: "descendants", from: "m", config });
  const queues = (trial: Trial): string[] =>
    trial.tasks.flatMap(({ queue, token }) => (token.includes(":2:m[") ? queue : []));

  test("has its items in the queue of that, and they wait for its room", () => {
    const trial = graphs();
    trial.room = (queue) => (queue === "ocr" ? 1 - (trial.state.liveByQueue.get(queue) ?? 0) : 1000);
    edited(trial, other("ocr"));
    expect(queues(trial)).toEqual(["ocr"]);
    expect(trial.last.blocked).toEqual(["ocr"]);
    expect(executionMachine.liveTasks(trial.state).get("ocr")).toBe(1);
    trial.room = () => 1000;
    expect(queues(trial.settle().completes("m[0]").completes("m[1]"))).toEqual(["ocr", "ocr"]);
    expect(trial.view("m").status).toBe("COMPLETED");
  });

  test("stands in line by its priority, as before", () => {
    const trial = graphs({ priority: 5 });
    edited(trial, other("ocr")).does({ kind: "cancel" });
    trial.room = () => 0;
    trial.does({ kind: "retry", scope: "failed" });
    trial.room = () => 1;
    trial.step();
    expect(trial.last.tasks!.map(({ queue }) => queue)).toEqual(["ocr", "step"]);
  });

  test("stays in a queue that was chosen for it", () => {
    expect(queues(edited(graphs({ queue: "slow" }), other("ocr")))).toEqual(["slow", "slow"]);
  });

  test("may run a graph instead of a handler", () => {
    const trial = edited(mapping({ items: [1, 2] }), { ...inner, max_concurrency: 10, tolerated_failures: 0 });
    expect([trial.view("m[0]").status, trial.tasks.filter(({ token }) => token.includes(":2:"))]).toEqual([
      "WAITING",
      [],
    ]);
  });

  test("is found again in a snapshot", () => {
    const trial = graphs();
    trial.room = () => 0;
    edited(trial, other("ocr"));
    edited(trial, other("llm"));
    const { plan } = trial.state;
    const restored = executionMachine.restore("x", plan, executionMachine.snapshot(trial.state));
    expect(imprint(restored)).toBe(imprint(trial.state));
    expect(restored.ready.count).toBe(2);
  });
});
