import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import type { TaskCompleted, TaskFailed } from "../core/message.ts";
import type { WorkflowNode } from "../definition/workflow.ts";
import { gate, TestWorld } from "../engine/test-engine.ts";
import type { JsonObject } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import type { LogEntry } from "./delivery.ts";
import { type Handler, HandlerError } from "./handler.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

const QUICK = { slots: 2, startReportMs: 10, heartbeatMs: 20, pollMs: 20, graceMs: 100 };
const once = { max_attempts: 1, base_delay_seconds: 0, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
const SECRET = "s3cr3t-v4lue";

/** Everything that workers hand to the store, as text. */
let posted: string[];
let world: TestWorld;
const workers: Worker[] = [];

beforeEach(() => {
  posted = [];
  world = new TestWorld();
  world.engine();
});
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop();
  await world.close();
});

/** The store as a worker sees it, with somebody who listens to what it is given. */
function overheard(store: Store): Store {
  return new Proxy(store, {
    get: (target, role: keyof Store) =>
      role === "tasks" || role === "records" ? overheardRole(target[role]) : target[role],
  });
}

function overheardRole<Role extends object>(role: Role): Role {
  return new Proxy(role, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...given: unknown[]) => unknown;
      return (...given: unknown[]) => {
        if (name === "settle" || name === "put") {
          posted.push(...(given[0] as readonly { readonly text: string }[]).map(({ text }) => text));
        }
        return method.apply(target, given);
      };
    },
  });
}

function work(handler: Handler, more: Partial<WorkerOptions> = {}): Worker {
  const worker = new Worker({
    store: overheard(world.store),
    host: world.host,
    handlers: new Map([["step", handler]]),
    queues: ["step"],
    secret: (name) => (name === "TOKEN" ? SECRET : undefined),
    ...more,
    settings: { ...QUICK, ...more.settings },
  });
  worker.start();
  workers.push(worker);
  return worker;
}

async function ran(more: Partial<WorkflowNode> = {}): ReturnType<TestWorld["ended"]> {
  return world.ended(await world.start(workflow([node("a", [], { retry: once, ...more })])));
}

function bodies(): (TaskCompleted | TaskFailed)[] {
  return posted
    .filter((text) => text.includes('"kind":"task'))
    .map((text) => (JSON.parse(text) as { body: TaskCompleted | TaskFailed }).body);
}

describe("what a call has used up", () => {
  test("goes with its result, summed", async () => {
    work(({ addUsage }) => {
      addUsage({ prompt_tokens: 3, completion_tokens: 4 });
      addUsage({ prompt_tokens: 10 });
      return "done";
    });
    await ran();
    expect(bodies()).toMatchObject([{ kind: "taskCompleted", usage: { prompt_tokens: 13, completion_tokens: 4 } }]);
  });

  test("goes with its failure as well: it was paid for", async () => {
    work(({ addUsage }) => {
      addUsage({ tokens: 5 });
      throw new HandlerError("BAD", "no use");
    });
    await ran();
    expect(bodies()).toMatchObject([{ kind: "taskFailed", usage: { tokens: 5 } }]);
  });

  test("is not mentioned when there is nothing", async () => {
    work(() => "done");
    await ran();
    expect(bodies()[0]).not.toHaveProperty("usage");
  });
});

test.each<[string, string, () => string]>([
  ["result", "taskCompleted", () => "done"],
  [
    "failure",
    "taskFailed",
    () => {
      throw new HandlerError("BAD", "no use");
    },
  ],
])("that whoever was called has no more for a while goes with the %s", async (_what, kind, end) => {
  work(({ closeLimit }) => {
    for (const forMs of [20, 7_000, Number.NaN, -5]) closeLimit(forMs);
    return end();
  });
  await ran();
  expect(bodies()).toMatchObject([{ kind, closeForMs: 7_000 }]);
});

describe("no secret leaves the worker", () => {
  const config = { auth: "Bearer {{ secrets.TOKEN }}" };
  const authOf = (given: unknown): string => (given as { auth: string }).auth;

  test.each<[string, Handler]>([
    ["in an output", (call) => ({ echo: authOf(call.config), [authOf(call.config)]: 1 })],
    ["in a large output, which is a blob", (call) => ({ filler: "x".repeat(100_000), echo: authOf(call.config) })],
    [
      "in an error",
      (call) => {
        throw new Error(`refused: ${authOf(call.config)}`);
      },
    ],
    [
      "at the edge where a long error is cut",
      (call) => {
        throw new Error(`${"x".repeat(15_995 - "Bearer ".length)}${authOf(call.config)}`);
      },
    ],
    [
      "in the code and details of a handler's own error",
      (call) => {
        throw new HandlerError(`E_${authOf(call.config)}`, "m", {
          retryable: false,
          details: { sent: [authOf(call.config)] },
        });
      },
    ],
    [
      "in whatever is thrown",
      (call) => {
        // oxlint-disable-next-line typescript/only-throw-error -- a handler may throw anything
        throw { sent: call.config };
      },
    ],
    ["in what is wrong with an output", (call) => ({ [authOf(call.config)]: 1n }) as never],
  ])("%s", async (_, handler) => {
    work(handler);
    await ran({ config });
    expect(posted.length).toBeGreaterThan(0);
    expect(posted.join("\n")).not.toMatch(/s3cr3t|v4lue/);
  });

  test("that its handler has from elsewhere and asks to conceal", async () => {
    work(({ conceal }) => {
      conceal("session-0815");
      return "with session-0815";
    });
    expect(await ran()).toMatchObject({ output: { a: "with ***" } });
  });

  test("in a log", async () => {
    const entries: LogEntry[] = [];
    work(
      (call) => {
        call.log(`sent ${authOf(call.config)}`, { header: authOf(call.config), n: 1 });
        call.log("without fields");
        call.log("with fields that no log can carry", { n: 1n } as unknown as JsonObject);
        return null;
      },
      { observer: { logged: (_, entry) => entries.push(entry) } },
    );
    await ran({ config });
    expect(entries).toEqual([
      { message: "sent Bearer ***", fields: { header: "Bearer ***", n: 1 } },
      { message: "without fields" },
      { message: "with fields that no log can carry" },
    ]);
  });

  test("in the stack of what is thrown", async () => {
    const entries: LogEntry[] = [];
    work(
      (call) => {
        throw new TypeError(`no: ${authOf(call.config)}`, { cause: new Error(`sent ${authOf(call.config)}`) });
      },
      { observer: { logged: (_, entry) => entries.push(entry) } },
    );
    await ran({ config });
    expect(entries).toEqual([{ level: "error", message: expect.any(String) as string }]);
    expect(entries[0]!.message).toMatch(
      /^TypeError: no: Bearer \*\*\*\n {4}at .*\ncaused by Error: sent Bearer \*\*\*\n/s,
    );
    expect(entries[0]!.message).not.toContain(SECRET);
  });

  test("in what an observer is shown of the output", async () => {
    const outputs: unknown[] = [];
    work((call) => authOf(call.config), { observer: { ended: (_, output) => outputs.push(output) } });
    await ran({ config });
    expect(outputs).toEqual(["Bearer ***"]);
  });
});

describe("a handler that does not stop when it is asked", () => {
  test("loses its attempt, keeps its slot, and makes the worker say so until it ends", async () => {
    const deaf = gate();
    const told: unknown[] = [];
    const worker = work((call) => (call.nodeId === "a" ? deaf.handler(call) : call.nodeId), {
      settings: { slots: 1 },
      observer: { degraded: (count, { node: id }, hasEnded) => told.push([count, id, hasEnded]) },
    });
    expect(await ran({ timeout_seconds: 0.03 })).toMatchObject({ nodes: { a: { error: { code: "TIMEOUT" } } } });
    expect(worker.degraded).toBe(true);
    expect(worker.notStopping).toMatchObject([{ node: "a", handler: "step" }]);
    expect(worker.stuckQueues).toEqual(["step"]);

    // The only slot is taken: nothing else runs here.
    const other = await world.start(workflow([node("b")]));
    await world.host.sleep(100);
    expect(await world.kinds(other)).not.toContain("taskCompleted");

    deaf.open("a", "after all");
    expect(await world.ended(other)).toMatchObject({ output: { b: "b" } });
    expect(worker.degraded).toBe(false);
    expect([worker.notStopping, worker.stuckQueues]).toEqual([[], []]);
    expect(told).toEqual([
      [1, "a", false],
      [0, "a", true],
    ]);
  });

  test("leaves the other slots to others", async () => {
    const deaf = gate();
    const worker = work((call) => (call.nodeId === "a" ? deaf.handler(call) : call.nodeId));
    await ran({ timeout_seconds: 0.03 });
    expect(worker.degraded).toBe(true);
    expect(worker.stuckQueues).toEqual([]);
    expect(await world.ended(await world.start(workflow([node("b")])))).toMatchObject({ output: { b: "b" } });
    deaf.open("a");
  });

  test("does not hold up a stop, and nothing of it is handed back", async () => {
    const deaf = gate();
    const worker = work(deaf.handler, { settings: { slots: 1, graceMs: 3_600_000 } });
    await ran({ timeout_seconds: 0.03 });
    await worker.stop();
    expect(bodies().map(({ kind }) => kind)).toEqual(["taskFailed"]);
  });

  test("of a cancelled execution keeps its slot no longer than it must", async () => {
    const deaf = gate();
    const worker = work(deaf.handler, { settings: { slots: 1 } });
    const id = await world.start(workflow([node("a", [], { timeout_seconds: 3_600 })]));
    await world.until(id, (events) => events.some(({ kind }) => kind === "taskStarted"));
    await world.send(id, { kind: "cancel", request: "r" });
    while (!worker.degraded) await world.host.sleep(5);
    deaf.open("a");
    while (worker.degraded) await world.host.sleep(5);
  });
});

test("a handler that kept the loop busy beyond its time has timed out", async () => {
  work(() => {
    const untilMs = performance.now() + 200;
    while (performance.now() < untilMs);
    return "too late";
  });
  const view = await ran({ timeout_seconds: 0.05 });
  expect(view.nodes["a"]).toMatchObject({ status: "FAILED", error: { code: "TIMEOUT", retryable: true } });
});

test("in the process of the queues, a handler that blocks for longer than a lease loses nothing", async () => {
  const block: Handler = async ({ nodeId }) => {
    if (nodeId === "busy") {
      const untilMs = performance.now() + 400;
      while (performance.now() < untilMs);
    } else await world.host.sleep(150);
    return nodeId;
  };
  work(block, { leases: { kind: "process" }, settings: { leaseMs: 50, heartbeatMs: 10_000, startReportMs: 10_000 } });
  const id = await world.start(workflow([node("idle"), node("busy", [], { timeout_seconds: 5 })]));
  const view = await world.ended(id);
  expect(view).toMatchObject({ status: "COMPLETED", output: { idle: "idle", busy: "busy" } });
  expect(await world.kinds(id)).not.toContain("deliveryLost");
});
