import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import type { WorkflowNode } from "../definition/workflow.ts";
import type { ExecutionSummary } from "../core/execution/test-summary.ts";
import { gate, TestWorld } from "../engine/test-engine.ts";
import type { Json } from "../json/json.ts";
import type { LeasedTask, LeaseRequest, Settlement, Store } from "../store/contract.ts";
import { nodeHost } from "../host/node-host.ts";
import { type FarTask, leasedFarTask } from "./far-tasks.ts";
import { type Handler, type HandlerCall, HandlerError } from "./handler.ts";
import { Worker } from "./worker.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
  world.engine();
});
afterEach(() => world.close());

const branch = { on_error: "fail_branch" } as const;
const once = { max_attempts: 1, base_delay_seconds: 0, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
const again = { ...once, max_attempts: 3, base_delay_seconds: 0.01 };

/** Runs one node with a handler that may do anything, beside one that must not suffer from it. */
async function besideOthers(handler: Handler, more: Partial<WorkflowNode> = {}): Promise<ExecutionSummary> {
  world.worker({ step: handler, good: () => "good" });
  const good = { handler: "good", queue: "good" };
  const nodes = [
    node("a", [], { retry: once, ...branch, ...more }),
    node("before", [], good),
    node("after", ["before"], good),
  ];
  const view = await world.ended(await world.start(workflow(nodes)));
  expect(view.nodes["after"]).toMatchObject({ status: "COMPLETED", output: { json: "good" } });
  return view;
}

/** The store as a worker sees it that hears of its leases only later. */
function hearingLate(store: Store, later: Promise<void>): Store {
  const lease = async (request: LeaseRequest): Promise<readonly LeasedTask[]> => {
    const leased = await store.tasks.lease(request);
    if (leased.length > 0) await later;
    return leased;
  };
  const tasks = new Proxy(store.tasks, {
    get: (target, name) =>
      name === "lease" ? lease : (Reflect.get(target, name) as (...given: unknown[]) => unknown).bind(target),
  });
  return new Proxy(store, { get: (target, role: keyof Store) => (role === "tasks" ? tasks : target[role]) });
}

function nested(depth: number): Json {
  let value: Json = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

const circle: { self?: unknown } = {};
circle.self = circle;

describe("an output that cannot be stored fails its node, and harms nothing else", () => {
  test.each<[string, unknown, string]>([
    ["a BigInt", { n: 1n }, "OUTPUT_INVALID"],
    ["a circle", circle, "OUTPUT_INVALID"],
    ["NaN", { n: Number.NaN }, "OUTPUT_INVALID"],
    ["infinity", [Infinity], "OUTPUT_INVALID"],
    ["a NUL", { text: "a\0b" }, "OUTPUT_INVALID"],
    ["a NUL in a key", { "a\0b": 1 }, "OUTPUT_INVALID"],
    ["half a surrogate pair", "\ud800", "OUTPUT_INVALID"],
    ["5,000 levels", nested(5000), "OUTPUT_INVALID"],
    ["65 levels", nested(65), "OUTPUT_INVALID"],
    ["a __proto__ key", JSON.parse('{"__proto__": {"admin": true}}'), "OUTPUT_INVALID"],
    ["a function", { f: () => 1 }, "OUTPUT_INVALID"],
    ["an undefined in an array", [undefined], "OUTPUT_INVALID"],
    ["an instance", { at: new Date(0) }, "OUTPUT_INVALID"],
    ["a map", new Map([["a", 1]]), "OUTPUT_INVALID"],
    ["a symbol", Symbol("s"), "OUTPUT_INVALID"],
    ["more than 1 MiB", "x".repeat(1024 * 1024), "OUTPUT_TOO_LARGE"],
    ["more than 1 MiB in bytes", "é".repeat(524_288), "OUTPUT_TOO_LARGE"],
    ["50 MB", "x".repeat(50_000_000), "OUTPUT_TOO_LARGE"],
  ])("%s", async (_, output, code) => {
    const view = await besideOthers(() => output as Json, { retry: again });
    expect(view.status).toBe("PARTIAL");
    expect(view.nodes["a"]).toMatchObject({ status: "FAILED", attempt: 1, error: { code, retryable: false } });
    const { items } = await world.memory.queries.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ class: "poison" }]);
  });

  test.each<[string, unknown, Json]>([
    ["nothing", undefined, null],
    ["null", null, null],
    ["false", false, false],
    ["an empty text", "", ""],
    ["64 levels", nested(64), nested(64)],
    ["a member that is undefined", { a: 1, b: undefined }, { a: 1 }],
    ["text that looks like a template", "{{ secrets.TOKEN }}", "{{ secrets.TOKEN }}"],
    ["the key $large", { $large: { bytes: 1 } }, { $large: { bytes: 1 } }],
  ])("but %s is stored", async (_, output, stored) => {
    const view = await besideOthers(() => output as Json);
    expect(view.nodes["a"]).toMatchObject({ status: "COMPLETED", output: { json: stored } });
  });
});

describe("an error of a handler", () => {
  test.each<[string, Handler, object]>([
    [
      "thrown",
      () => {
        throw new Error("broke");
      },
      { code: "HANDLER_ERROR", message: "broke", retryable: true },
    ],
    ["rejected", () => Promise.reject(new Error("broke")), { code: "HANDLER_ERROR", message: "broke" }],
    // oxlint-disable-next-line typescript/only-throw-error -- a handler may throw anything
    [
      "undefined",
      () => {
        throw undefined;
      },
      { code: "HANDLER_ERROR", message: "The handler threw undefined" },
    ],
    // oxlint-disable-next-line typescript/only-throw-error -- a handler may throw anything
    [
      "a circle",
      () => {
        throw circle;
      },
      { code: "HANDLER_ERROR" },
    ],
    [
      "of 10 MB",
      () => {
        throw new Error("x".repeat(10_000_000));
      },
      { code: "HANDLER_ERROR" },
    ],
    [
      "of its own kind",
      () => {
        throw new HandlerError("E1", "m", { retryable: false, details: { n: 1 } });
      },
      { code: "E1", details: { n: 1 } },
    ],
  ])("%s ends the attempt, and nothing else", async (_, handler, error) => {
    const view = await besideOthers(handler);
    expect(view.nodes["a"]).toMatchObject({ status: "FAILED", error });
    expect(view.nodes["a"]!.error!.message.length).toBeLessThanOrEqual(16_001);
  });

  test("that comes twice from one call counts once", async () => {
    const view = await besideOthers(
      () =>
        new Promise((_, reject) => {
          reject(new HandlerError("FIRST", "", { retryable: true }));
          // oxlint-disable-next-line promise/no-multiple-resolved -- a careless handler does
          reject(new HandlerError("SECOND", "", { retryable: true }));
        }),
    );
    expect(view.nodes["a"]).toMatchObject({ attempt: 1, error: { code: "FIRST" } });
  });

  test("is followed by another attempt, with the same idempotency key and another token", async () => {
    const calls: HandlerCall[] = [];
    const view = await besideOthers(
      (call) => {
        calls.push(call);
        if (call.attempt < 3) throw new HandlerError("BUSY", "", { retryable: true, retryAfterMs: 5 });
        return call.attempt;
      },
      { retry: again },
    );
    expect(view.nodes["a"]).toMatchObject({ status: "COMPLETED", attempt: 3, output: { json: 3 } });
    expect(new Set(calls.map((call) => call.idempotencyKey)).size).toBe(1);
    expect(new Set(calls.map((call) => call.token)).size).toBe(3);
  });

  test("of a handler that this worker does not have waits for a worker that does, in the same attempt", async () => {
    world.worker({ step: () => null });
    const id = await world.start(workflow([node("a", [], { handler: "missing", queue: "step", retry: once })]));
    await world.until(id, (events) => events.filter(({ kind }) => kind === "taskDispatched").length === 2);
    world.worker({ step: () => null, missing: () => "found" });
    const view = await world.ended(id);
    expect(view.nodes["a"]).toMatchObject({ status: "COMPLETED", attempt: 1, output: { json: "found" } });
    // Given back once, and then left alone for as long as this took: each time is written down.
    expect(view.nodes["a"]!.deliveries).toBeLessThanOrEqual(3);
  });
});

test("a task whose handler nobody ever knows fails in the end", async () => {
  world.worker({ step: () => null }, { maxUnknownDeliveries: 2 });
  const id = await world.start(workflow([node("a", [], { handler: "missing", queue: "step", retry: once })]));
  const view = await world.ended(id);
  const error = { code: "UNKNOWN_HANDLER", retryable: false };
  expect(view.nodes["a"]).toMatchObject({ status: "FAILED", attempt: 1, deliveries: 2, error });
});

describe("slots of its own", () => {
  test("bound a handler, and leave the shared ones to the others", async () => {
    const { handler, open } = gate();
    let [running, most] = [0, 0];
    const slow: Handler = async (call) => {
      most = Math.max(most, ++running);
      await handler(call);
      running--;
      return null;
    };
    world.worker({ slow, quick: () => "quick" }, { slots: 1 }, undefined, new Map([["slow", 2]]));
    const slows = ["a", "b", "c", "d"].map((name) => node(name, [], { handler: "slow", queue: "slow" }));
    const quicks = ["p", "q"].map((name) => node(name, [], { handler: "quick", queue: "quick" }));
    const id = await world.start(workflow([...slows, ...quicks]));
    await world.until(id, (events) => events.filter(({ kind }) => kind === "taskCompleted").length === 2);
    await world.until(id, (events) => events.filter(({ kind }) => kind === "taskStarted").length === 2);
    for (const one of slows) open(one.id);
    expect((await world.ended(id)).status).toBe("COMPLETED");
    expect(most).toBe(2);
  });
});

describe("secrets", () => {
  const secret = (name: string): string | undefined => (name === "TOKEN" ? "s3cret" : undefined);

  test("stand where a template named them, and nowhere else", async () => {
    const configs: Json[] = [];
    const collect: Handler = ({ nodeId, config }) => {
      configs.push(config);
      return nodeId === "page" ? { body: "give me {{ secrets.TOKEN }}" } : null;
    };
    world.worker({ step: collect }, {}, secret);
    const config = {
      auth: "Bearer {{ secrets.TOKEN }}",
      list: ["{{ secrets.TOKEN }}", "a~/b"],
      "k~/": "{{ secrets.TOKEN }}",
      note: "{{ page.body }}",
      text: "it says {{ page.body }}",
    };
    const id = await world.start(workflow([node("page"), node("a", ["page"], { config })]));
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect(configs[1]).toEqual({
      auth: "Bearer s3cret",
      list: ["s3cret", "a~/b"],
      "k~/": "s3cret",
      note: "give me {{ secrets.TOKEN }}",
      text: "it says give me {{ secrets.TOKEN }}",
    });
    expect(JSON.stringify(await world.events(id))).not.toContain("s3cret");
  });

  test("that this worker does not have fail the node, before its handler is called", async () => {
    let called = false;
    world.worker({ step: () => (called = true) }, {}, secret);
    const id = await world.start(workflow([node("a", [], { config: { x: "{{ secrets.OTHER }}" }, ...branch })]));
    expect(await world.ended(id)).toMatchObject({
      nodes: {
        a: {
          status: "FAILED",
          error: {
            code: "SECRET_MISSING",
            message: "The secret OTHER is missing: set MILLRACE_SECRET_OTHER in the environment of the worker",
          },
        },
      },
    });
    expect(called).toBe(false);
  });
});

describe("large values", () => {
  const large = { n: 7, text: "x".repeat(100_000), list: [1, 2, 3] };

  test("travel by name: passed on whole, read deeper, judged by a condition, collected by a node", async () => {
    const configs = new Map<string, Json>();
    const inputs = new Map<string, Json | undefined>();
    world.worker({
      step: (call) => {
        configs.set(call.nodeId, call.config);
        inputs.set(call.nodeId, call.inputs);
        return call.nodeId === "a" ? large : null;
      },
    });
    const nodes = [
      node("a"),
      node("whole", ["a"], { config: { all: "{{ a }}", deep: { all: "{{ a.output }}" } } }),
      node("deeper", ["a"], { config: { n: "{{ a.n }}", last: "{{ a.list | last }}" } }),
      node("judged", ["a"], { condition: "a.n > 5" }),
      node("skipped", ["a"], { condition: "a.n > 50" }),
      node("inputs", ["a"], { inputs: true }),
    ];
    const id = await world.start(workflow(nodes));
    const view = await world.ended(id);
    expect(view.nodes["a"]!.output).toEqual({
      blob: { hash: expect.any(String) as string, bytes: JSON.stringify(large).length },
    });
    expect(configs.get("whole")).toEqual({ all: large, deep: { all: large } });
    expect(configs.get("deeper")).toEqual({ n: 7, last: 3 });
    expect(inputs.get("inputs")).toEqual({ a: large });
    expect([view.nodes["judged"]!.status, view.nodes["skipped"]!.status]).toEqual(["COMPLETED", "SKIPPED"]);
    const bytes = JSON.stringify(await world.events(id)).length;
    expect(bytes).toBeLessThan(20_000);
  });

  test("as input: of the execution, of an input node and of a config", async () => {
    const configs: Json[] = [];
    world.worker({ step: ({ config }) => (configs.push(config), null) });
    const nodes = [
      node("i", [], { handler: "input", timeout_seconds: null }),
      node("a", ["i"], { config: { n: "{{ input.n }}", again: "{{ input.text }}", all: "{{ i }}" } }),
    ];
    expect(await world.ended(await world.start(workflow(nodes), large))).toMatchObject({ status: "COMPLETED" });
    expect(configs).toEqual([{ n: 7, again: large.text, all: large }]);
  });
});

describe("timeouts", () => {
  test("a handler that does not end is aborted, loses its attempt, and its late result counts for nothing", async () => {
    const signals: AbortSignal[] = [];
    const late = gate();
    const view = await besideOthers(
      (call) => {
        signals.push(call.signal);
        return call.attempt === 1 ? late.handler(call) : "second";
      },
      { timeout_seconds: 0.05, retry: again },
    );
    late.open("a", "first");
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
    expect(view.nodes["a"]).toMatchObject({ status: "COMPLETED", attempt: 2, output: { json: "second" } });
  });

  test("the last one fails the node with TIMEOUT", async () => {
    const view = await besideOthers(() => new Promise(() => {}), { timeout_seconds: 0.03 });
    expect(view.nodes["a"]).toMatchObject({ status: "FAILED", error: { code: "TIMEOUT", retryable: true } });
  });

  test("a handler that fails after its timeout disturbs nobody", async () => {
    const view = await besideOthers(
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener("abort", () => setTimeout(() => reject(new Error("late")), 1)),
        ),
      { timeout_seconds: 0.03 },
    );
    expect(view.nodes["a"]).toMatchObject({ error: { code: "TIMEOUT" } });
  });
});

describe("a cancel", () => {
  test("aborts the handler that runs, by its heartbeat, and withdraws what is queued", async () => {
    let aborted: (value: Json) => void = () => {};
    const abort = new Promise<Json>((resolve) => (aborted = resolve));
    const running = gate();
    world.worker(
      {
        step: ({ signal, nodeId }) => {
          running.open(nodeId);
          signal.addEventListener("abort", () => aborted(nodeId));
          return abort;
        },
      },
      { slots: 1 },
    );
    const id = await world.start(workflow([node("a"), node("b")]));
    await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
    await world.send(id, { kind: "cancel", request: "r" });
    const stopped = await abort;
    const other = stopped === "a" ? "b" : "a";
    const events = await world.until(id, (all) => all.some(({ kind }) => kind === "lateResult"));
    expect(events.filter((event) => event.kind === "taskStarted" && event.node === other)).toEqual([]);
    expect(await world.ended(id)).toMatchObject({
      status: "CANCELLED",
      nodes: { a: { status: "CANCELLED", output: null } },
    });
    expect((await world.memory.queries.counts()).queued).toEqual({});
  });
});

test("a task whose lease has run out when the worker hears of it is not begun", async () => {
  const lost = Promise.withResolvers<void>();
  const begun: string[] = [];
  const worker = new Worker({
    store: hearingLate(world.store, lost.promise),
    host: world.host,
    handlers: new Map([["step", ({ token }) => begun.push(token)]]),
    queues: ["step"],
    settings: { leaseMs: 100 },
  });
  worker.start();
  const id = await world.start(workflow([node("a")]));
  await world.until(id, (events) => events.filter(({ kind }) => kind === "taskDispatched").length === 2);
  lost.resolve();
  await world.ended(id);
  await worker.stop();
  expect(begun).not.toEqual([]);
  expect(begun).not.toContainEqual(expect.stringMatching(/:a:1:1$/));
});

describe("stopping", () => {
  test("waits for what runs, and posts its result", async () => {
    const steps = gate();
    const worker = world.worker({ step: steps.handler }, { graceMs: 60_000 });
    const id = await world.start(workflow([node("a")]));
    await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
    const stopping = world.stop(worker);
    steps.open("a", "in time");
    await stopping;
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", output: { a: "in time" } });
  });

  test("hands back what does not end in time: aborted, the same attempt goes to somebody else", async () => {
    const abandoned: boolean[] = [];
    const worker = world.worker(
      {
        step: ({ signal }) =>
          new Promise((resolve) => signal.addEventListener("abort", () => (abandoned.push(true), resolve("too late")))),
      },
      { graceMs: 10 },
    );
    const id = await world.start(workflow([node("a")]));
    await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
    await world.stop(worker);
    expect(abandoned).toEqual([true]);
    world.worker({ step: ({ attempt }) => attempt });
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 1, deliveries: 2 } } });
    expect((await world.events(id)).find(({ kind }) => kind === "deliveryLost")).toMatchObject({ handedBack: true });
  });

  test("takes no new task, and gives back the one that came meanwhile", async () => {
    const worker = world.worker({ step: () => "never" });
    const stopping = world.stop(worker);
    const id = await world.start(workflow([node("a")]));
    await stopping;
    world.worker({ step: () => "by another" });
    expect(await world.ended(id)).toMatchObject({ output: { a: "by another" }, nodes: { a: { attempt: 1 } } });
  });
});

test("a worker has no more tasks than slots", async () => {
  let now = 0;
  let most = 0;
  world.worker(
    {
      step: async () => {
        most = Math.max(most, ++now);
        await world.host.sleep(1);
        now--;
        return null;
      },
    },
    { slots: 3 },
  );
  const id = await world.start(workflow(Array.from({ length: 20 }, (_, i) => node(`n${i}`))));
  expect(await world.ended(id)).toMatchObject({ status: "COMPLETED" });
  expect(most).toBe(3);
});

test("a worker whose lease ran out does not post, and the task is delivered again", async () => {
  const steps = gate();
  world.worker({ step: steps.handler }, { slots: 1, leaseMs: 30, heartbeatMs: 3_600_000, startReportMs: 3_600_000 });
  const id = await world.start(workflow([node("a")]));
  await world.until(id, (events) => events.some(({ kind }) => kind === "deliveryLost"));
  world.worker({ step: () => "second worker" });
  expect(await world.ended(id)).toMatchObject({
    output: { a: "second worker" },
    nodes: { a: { attempt: 1, deliveries: 2 } },
  });
});

test("where tasks live in the process a stop waits for no poll, and what the poll is given goes back", async () => {
  world = new TestWorld({ volatileTasks: true });
  world.engine();
  const stopped = world.worker({ step: () => "never" }, { pollMs: 600_000 });
  // It is waiting for a task.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await world.stop(stopped);
  const id = await world.start(workflow([node("a")]));
  world.worker({ step: () => "next" });
  const ended = await world.ended(id);
  expect(ended).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 1, output: { json: "next" } } } });
});

test("a dispatch that is given out again while it runs here is run once, and settled by its newest lease", async () => {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const leased = (token: string): LeasedTask => ({
    ...leasedFarTask({ ...FAR_TASK, token }, "step"),
    // Of another lease of a server that has forgotten the first.
    ref: token,
  });
  const given = [[leased("first")], [leased("second")]];
  const settled: string[] = [];
  const tasks = {
    lease: async () => {
      const next = given.shift();
      if (given.length === 0) end();
      if (next === undefined) await nodeHost.sleep(5);
      return next ?? [];
    },
    settle: async (settlements: readonly Settlement[]) => {
      for (const { token } of settlements) settled.push(token);
      // The owner has heard of it, and the queue has not.
      if (settled.length === 1) given.push([leased("third")]);
      return settlements.map(() => "settled");
    },
    heartbeat: async () => ({ lost: [], cancelled: [] }),
  };
  let calls = 0;
  const handler = async (): Promise<Json> => {
    calls++;
    await over;
    await nodeHost.sleep(20);
    return calls;
  };
  const worker = new Worker({
    store: { capabilities: { volatileTasks: false }, tasks } as unknown as Store,
    host: nodeHost,
    handlers: new Map([["step", handler]]),
    queues: ["step"],
  });
  worker.start();
  await expect.poll(() => settled).toEqual(["second"]);
  await expect.poll(() => given).toEqual([]);
  await nodeHost.sleep(20);
  await worker.stop();
  expect(calls).toBe(1);
  expect(settled).toEqual(["second"]);
});

const FAR_TASK: FarTask = {
  task_id: "run:1:a:1:1",
  token: "",
  execution_id: "run",
  node_id: "a",
  handler: "step",
  attempt: 1,
  generation: 1,
  config: {},
  idempotency_key: "key",
  timeout_seconds: 30,
};
