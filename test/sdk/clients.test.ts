import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { freePort } from "../../scripts/services/service.ts";
import {
  ApiError,
  type Client,
  connect,
  embedded,
  type EmbeddedEngine,
  expr,
  handlers,
  HandlerError,
  type RunningWorker,
  ServerUnreachable,
  worker,
  workflow,
} from "../../src/sdk/index.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { invoice } from "./invoice.ts";

const double = (() => {
  const wf = workflow("double", { input: z.object({ n: z.number() }) });
  const twice = wf.node("twice", ({ input }) => input.n * 2);
  return wf.output({ twice });
})();

const parent = (() => {
  const wf = workflow("parent", { input: z.object({ n: z.number() }) });
  const sub = wf.sub("sub", double, { input: ({ input }) => ({ n: input.n + 1 }) });
  const each = wf.map("each", { over: [{ n: 1 }, { n: 2 }] }, double);
  const sum = wf.node("sum", { after: { sub, each } }, ({ sub, each }) =>
    each.reduce((sum, { twice }) => sum + twice, sub.twice),
  );
  return wf.output({ sum });
})();

const broken = new Set<string>();
const fragile = (() => {
  const wf = workflow("fragile", { input: z.object({ id: z.string() }) });
  const first = wf.node("first", () => "kept");
  const second = wf.node("second", { after: { first }, retry: 1 }, ({ input }) => {
    if (broken.has(input.id)) throw new HandlerError("BROKEN", "it is broken", { retryable: false, details: { n: 1 } });
    return input.id;
  });
  return wf.output({ first, second });
})();

const waiting = (() => {
  const wf = workflow("waiting");
  const paid = wf.signal("paid", { data: z.number() });
  return wf.output({ paid });
})();

let aborted = 0;
const endless = (() => {
  const wf = workflow("endless");
  const never = wf.node(
    "never",
    ({ ctx }) =>
      new Promise<null>((_, reject) => {
        ctx.signal.addEventListener("abort", () => {
          aborted++;
          reject(new Error("asked to stop"));
        });
      }),
  );
  return wf.output({ never });
})();

const large = (() => {
  const wf = workflow("large");
  const text = wf.node("text", () => "x".repeat(500_000));
  return wf.output({ text });
})();

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
}

/** What has to hold wherever the engine is. */
function clientStory(client: () => Client, forget: (name: string, id: string) => Promise<void>): void {
  test("runs a workflow and gives its result", async () => {
    expect(await client().run(double, { n: 21 })).toEqual({ twice: 42 });
  });

  test("runs workflows that call others", async () => {
    expect(await client().run(parent, { n: 1 })).toEqual({ sum: 10 });
  });

  test("gives results however large", async () => {
    expect((await client().run(large)).text).toHaveLength(500_000);
  });

  test("takes an input as it is when it is given, whatever becomes of it", async () => {
    const input = { n: 0 };
    const runs = [1, 2, 3].map((n) => {
      input.n = n;
      return client().run(double, input);
    });
    expect(await Promise.all(runs)).toEqual([{ twice: 2 }, { twice: 4 }, { twice: 6 }]);
  });

  test("refuses what JSON does not carry, also for a workflow by its name, a signal and a review", async () => {
    const refused = { code: "INPUT_INVALID" };
    const bad = { n: Number.NaN };
    await expect(client().startByName("double", bad)).rejects.toMatchObject(refused);
    const run = client().get("01a1df5f-6a03-7577-9c7e-5beebf97af69");
    await expect(run.signal("s", bad)).rejects.toMatchObject(refused);
    await expect(run.approve("r", bad)).rejects.toMatchObject(refused);
    await expect(run.retry({ input: bad })).rejects.toMatchObject(refused);
  });

  test("refuses an input that does not fit before anything is sent", async () => {
    await expect(client().run(double, { n: "1" } as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(client().run(double, { n: 1n } as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  test("a run that fails says where and why, and goes on after a retry with what it had", async () => {
    const id = `broken-${Math.random()}`;
    broken.add(id);
    const run = await client().start(fragile, { id });
    await expect(run.result()).rejects.toMatchObject({
      name: "WorkflowFailed",
      executionId: run.id,
      workflow: "fragile",
      status: "FAILED",
      node: "second",
      code: "BROKEN",
      retryable: false,
      details: { n: 1 },
      message: `Workflow "fragile" ended FAILED at node "second" in execution ${run.id}: BROKEN: it is broken`,
    });
    expect(await run.status()).toBe("FAILED");
    broken.delete(id);
    expect(await (await run.retry()).result()).toEqual({ first: "kept", second: id });
    expect(await run.node("first")).toMatchObject({ status: "COMPLETED", attempt: 1, output: "kept" });
    expect((await run.view()).generation).toBe(2);
    expect(await (await run.retry({ from: "second", input: { id: "other" } })).result()).toMatchObject({
      second: "other",
    });
  });

  test("the same key is the same run", async () => {
    const idempotencyKey = `key-${Math.random()}`;
    const runs = await Promise.all(
      Array.from({ length: 5 }, () => client().start(double, { n: 1 }, { idempotencyKey })),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    const other = client().start(double, { n: 2 }, { idempotencyKey });
    await expect(other).rejects.toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
  });

  test("tells what happens, from the beginning or from where one was", async () => {
    const run = await client().start(double, { n: 1 });
    const events = await all(run.events());
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
    expect(events.at(-1)).toMatchObject({ type: "execution_ended" });
    expect(events.find(({ type }) => type === "task_completed")).toMatchObject({ node: "twice", attempt: 1 });
    const later = await all(run.events({ after: events.length - 1 }));
    expect(later).toEqual(events.slice(-1));
    expect(await all(run.events({ after: events.length }))).toEqual([]);
  });

  test("waits no longer than it is told, and the run goes on", async () => {
    const run = await client().start(waiting);
    await expect(run.result({ timeout: "50ms" })).rejects.toMatchObject({ name: "ResultTimeout", executionId: run.id });
    const stop = new AbortController();
    const result = run.result({ signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(result).rejects.toThrow("enough");
    for await (const _ of run.events()) break;
    expect(await run.status()).toBe("RUNNING");
    await run.signal("paid", 7);
    expect(await run.result()).toEqual({ paid: 7 });
    await expect(run.signal("paid", 8)).rejects.toMatchObject({ code: "ALREADY_TERMINAL" });
  });

  test("pauses, resumes and cancels, and functions hear of it", async () => {
    const run = await client().start(waiting);
    await run.pause();
    expect(await run.status()).toBe("PAUSED");
    await run.resume();
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ status: "CANCELLED", node: undefined, code: "CANCELLED" });

    const before = aborted;
    const busy = await client().start(endless);
    await expect.poll(async () => (await busy.node("never")).status).toBe("RUNNING");
    await busy.cancel();
    await expect.poll(() => aborted).toBe(before + 1);
  });

  test("lets people decide", async () => {
    const run = await client().start(invoice, { path: "a", minConfidence: 0.95 });
    await expect.poll(async () => (await run.node("approve")).status).toBe("WAITING");
    await expect(run.approve("approve", { ok: 1 })).rejects.toMatchObject({ code: "REVIEW_INVALID" });
    await run.approve("approve", { ok: true }, { comment: "fine" });
    expect(await run.result()).toEqual({ done: { text: "A/1\nA/2", flagged: true, ok: true } });
  });

  test("stores a workflow again that is gone", async () => {
    const wf = workflow(`gone ${Math.random()}`);
    const built = wf.output({ a: wf.node("a", { when: expr`true` }, () => 1) });
    const { id } = await client().start(built);
    await forget(built.name, id);
    expect((await client().start(built)).id).not.toBe(id);
  });

  test("starts by name what is stored, and finds a run again", async () => {
    await client().run(double, { n: 1 });
    const run = await client().startByName<{ twice: number }>("double", { n: 4 });
    expect(await client().get(run.id).result()).toEqual({ twice: 8 });
    await expect(client().startByName("no such workflow")).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(client().get("no-such-run").result()).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
}

describe("an embedded engine in memory", () => {
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    engine = await embedded({ dataDir: false, port: 0 });
  });
  afterAll(() => engine.close());
  clientStory(
    () => engine,
    async (name, id) => {
      // A name is free once nothing of it is open; it may well have ended by itself.
      await engine.get(id).result();
      await fetch(`${engine.url}/v1/workflows/${encodeURIComponent(name)}`, { method: "DELETE" });
    },
  );

  test("says that its port is taken, by the code that a server has for it", async () => {
    const port = Number(new URL(engine.url!).port);
    await expect(embedded({ dataDir: false, port })).rejects.toMatchObject({
      code: "PORT_IN_USE",
      message: `Port ${port} is in use: choose another, or 0 for any that is free.`,
    });
  });

  test("has what a function threw as the cause of a failure, and its stack in the log", async () => {
    const wf = workflow("throwing");
    const thrown = new TypeError("no", { cause: new Error("because") });
    const a = wf.node("a", (): string => {
      throw thrown;
    });
    const run = await engine.start(wf.output({ a }));
    const failure = await run.result().catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: "WorkflowFailed", node: "a" });
    expect((failure as Error).cause).toBe(thrown);
    const response = await fetch(`${engine.url}/v1/executions/${run.id}/logs?node=a`);
    expect(await response.json()).toMatchObject({
      items: [
        { level: "error", message: expect.stringMatching(/^TypeError: no\n.*caused by Error: because\n/s) as string },
      ],
    });
  });

  test("serves the first start of a workflow at once", async () => {
    const tookMs: number[] = [];
    for (let i = 0; i < 5; i++) {
      const wf = workflow(`unknown until now ${i}`);
      const built = wf.output({ a: wf.node("a", () => 1) });
      const startedAt = performance.now();
      await engine.run(built);
      tookMs.push(performance.now() - startedAt);
    }
    // The quickest: a machine may be busy, but a worker that waits out its lease does so every time.
    expect(Math.min(...tookMs)).toBeLessThan(500);
  });
});

describe("an embedded engine on disk", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-sdk-"));
  afterAll(() => rmSync(dataDir, { recursive: true }));

  test("keeps runs, goes on with them, and tells a second process that it is not alone", async () => {
    let id: string;
    {
      await using engine = await embedded({ dataDir });
      const run = await engine.start(waiting);
      ({ id } = run);
      await expect(embedded({ dataDir })).rejects.toMatchObject({ name: "StoreError", code: "STORE_LOCKED" });
      expect(await engine.run(double, { n: 2 })).toEqual({ twice: 4 });
    }
    await using engine = await embedded({ dataDir, workflows: [waiting] });
    const run = engine.get(id);
    expect(await run.status()).toBe("RUNNING");
    await run.signal("paid", 3);
    expect(await run.result()).toEqual({ paid: 3 });
  });
});

test("an embedded engine has a queue for each handler, whatever the environment says of one for all", async () => {
  vi.stubEnv("MILLRACE_SINGLE_QUEUE", "everything");
  try {
    await using engine = await embedded({ dataDir: false });
    const wf = workflow("both-kinds", { input: z.object({ n: z.number() }) });
    const value = wf.task("value", { handler: "transform", config: { value: wf.input.n }, output: z.number() });
    const next = wf.node("next", { after: { value } }, ({ value }) => value + 1);
    expect(await engine.run(wf.output({ next }), { n: 1 }, { timeout: "10s" })).toEqual({ next: 2 });
  } finally {
    vi.unstubAllEnvs();
  }
});

test("whoever waits for a run is told when the engine or the client is closed", async () => {
  const engine = await embedded({ dataDir: false, port: 0 });
  const client = connect({ url: engine.url! });
  const here = (await engine.start(waiting)).result();
  const there = (await client.start(waiting)).result();
  const told = Promise.all([
    expect(here).rejects.toThrow("The engine is closed"),
    expect(there).rejects.toThrow("The client is closed"),
  ]);
  await client.close();
  await engine.close();
  await told;
});

describe("a server may restart while a worker far from it works: the result still counts, and is made once", () => {
  test("by a worker that asks for more meanwhile, and is given it again", () => restartedUnder(4));
  test("by a worker without a free slot, that only says that it still has it", () => restartedUnder(1));
});

async function restartedUnder(concurrency: number): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-restart-"));
  let calls = 0;
  let finish: (() => void) | undefined;
  const wf = workflow("patient");
  const slow = wf.node("slow", async () => {
    calls++;
    await new Promise<void>((resolve) => (finish = resolve));
    return "done";
  });
  const built = wf.output({ slow });
  const port = await freePort();
  let server = await embedded({ dataDir, port });
  const url = server.url!;
  await using far = worker({ url, workflows: [built], concurrency });
  await far.start();
  await using client = connect({ url });
  const result = (await client.start(built)).result();
  await expect.poll(() => calls).toBe(1);
  await server.close();
  server = await embedded({ dataDir, port });
  // It is put back, and is the worker's that still has it.
  const leased = async (): Promise<unknown> => {
    const { items } = (await (await fetch(`${url}/v1/queues`)).json()) as { items: { leased: number }[] };
    return items.reduce((sum, queue) => sum + queue.leased, 0);
  };
  await expect.poll(leased).toBe(1);
  await using another = worker({ url, workflows: [built] });
  await another.start();
  finish!();
  expect(await result).toEqual({ slow: "done" });
  expect(calls).toBe(1);
  await client.close();
  await far.stop();
  await server.close();
  rmSync(dataDir, { recursive: true });
}

describe("a server, with a worker far from it", () => {
  let server: EmbeddedEngine;
  let far: RunningWorker;
  let client: Client;
  let proxy: CuttingProxy;
  const logs: string[] = [];

  beforeAll(async () => {
    server = await embedded({ dataDir: false, port: 0 });
    const workflows = [double, parent, fragile, waiting, endless, large, invoice];
    const own = handlers({
      "text.upper": (config: { text: string }, ctx) => {
        ctx.log("upper", { text: config.text });
        return config.text.toUpperCase();
      },
    });
    const url = server.url!;
    far = worker({
      url,
      workflows,
      handlers: own,
      concurrency: 8,
      onLog: ({ node, message, level = "info" }) => logs.push(`${node}: ${level}: ${message}`),
    });
    await far.start();
    proxy = new CuttingProxy(url);
    client = connect({ url });
  });
  afterAll(async () => {
    await client.close();
    await far.stop();
    await proxy.close();
    await server.close();
  });

  clientStory(
    () => client,
    async (name, id) => {
      await client.get(id).cancel();
      await fetch(`${server.url}/v1/workflows/${encodeURIComponent(name)}`, { method: "DELETE" });
    },
  );

  test("runs handlers for definitions that are written as JSON", async () => {
    const definition = {
      name: "upper",
      nodes: [{ id: "u", handler: "text.upper", config: { text: "{{ input.t }}" } }],
    };
    const response = await fetch(`${server.url}/v1/workflow?start=true`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ definition, input_params: { t: "abc" } }),
    });
    const { execution_id: id } = (await response.json()) as { execution_id: string };
    expect(await client.get(id).result()).toEqual({ u: "ABC" });
    expect(logs).toContain("u: info: upper");
    expect(logs).toContainEqual(
      expect.stringMatching(/^second: error: HandlerError: it is broken\n {4}at .*clients\.test/),
    );
  });

  test("whatever breaks on the way, a request is done once and an event is told once", async () => {
    const url = await proxy.listen();
    await using shaky = connect({ url });
    const starts = "/v1/workflows/invoice/executions";
    proxy.fate = (path, count) => {
      if (path === starts) return count === 1 ? 503 : count === 2 ? "lose-answer" : "pass";
      if (path.endsWith("/events")) return count < 4 ? { cutAfterBytes: 300 * count } : "pass";
      return count % 3 === 1 ? "lose-answer" : "pass";
    };
    const run = await shaky.start(invoice, { path: "p", minConfidence: 0.99 });
    const sent = proxy.requests.filter(({ path }) => path === starts);
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1);
    const events: number[] = [];
    const reading = (async () => {
      for await (const { seq } of run.events()) events.push(seq);
    })();
    await expect.poll(async () => (await run.node("approve")).status).toBe("WAITING");
    await run.approve("approve", { ok: true });
    expect(await run.result()).toMatchObject({ done: { ok: true } });
    await reading;
    expect(events).toEqual(events.map((_, i) => i + 1));
    expect(events).toHaveLength((await run.view()).seq);
  });

  test("says no in the server's words", async () => {
    const error: unknown = await client
      .get("nothing")
      .view()
      .catch((no: unknown) => no);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      code: "NOT_FOUND",
      status: 404,
      message: 'NOT_FOUND: There is no execution "nothing".',
    });
  });

  test("says so if nobody is there", async () => {
    const nobody = connect({ url: "http://127.0.0.1:4", retryFor: 0 });
    const error: unknown = await nobody
      .get("x")
      .cancel()
      .catch((no: unknown) => no);
    expect(error).toBeInstanceOf(ServerUnreachable);
    expect((error as Error).message).toBe(
      "Cannot reach Millrace at http://127.0.0.1:4: nobody listens there. Start one with: millrace dev",
    );
    expect(() => connect({ url: "localhost:4747" })).toThrow(/must begin with http:/);
  });

  test("a worker that could not start may be started again", async () => {
    let isOpen = false;
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(isOpen ? 200 : 403, { "content-type": "application/json" });
      response.end(JSON.stringify(isOpen ? { tasks: [], cancelled: [] } : { code: "FORBIDDEN", detail: "Not yet." }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const patient = worker({ url: `http://127.0.0.1:${port}`, workflows: [double] });
    await expect(patient.start()).rejects.toMatchObject({ code: "FORBIDDEN" });
    isOpen = true;
    await patient.start();
    await patient.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test("a worker needs something to serve, and a store that others share", async () => {
    expect(() => worker({})).toThrow(/needs workflows or handlers/);
    const over = (store: string): Promise<void> => worker({ workflows: [double], store }).start();
    await expect(over("sqlite:x.db")).rejects.toThrow(/belongs to one process/);
    await expect(over("mysql://x")).rejects.toThrow(/MILLRACE_STORE must be/);
  });
});
