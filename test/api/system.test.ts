import { validate } from "@readme/openapi-parser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gate } from "../../src/engine/test-engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";
import { TestApi } from "../support/api.ts";

const held = gate();
let tries = 0;
const flaky = (): number => {
  if (++tries === 1) throw new Error("not yet");
  return tries;
};
let isStubborn = true;
const stubborn = (): number => {
  if (isStubborn) throw new Error("not today");
  return 1;
};
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: () => 1, flaky, stubborn, gate: held.handler }, version: "1.2.3" });
});
afterAll(() => api.close());

describe("/openapi.json", () => {
  test("has every route of the table, and no other", async () => {
    const { body, status } = await api.get("/openapi.json");
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: "3.1.0", info: { title: "Millrace", version: "1.2.3" } });
    const described = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = api.server.routes.map(({ method, path }) => `${method} ${path}`);
    expect(described.sort()).toEqual(served.sort());
  });

  test("is a valid OpenAPI document", async () => {
    const { body } = await api.get("/openapi.json");
    expect(await validate(body)).toMatchObject({ valid: true });
  });

  test("every reference leads somewhere, every id is used once, every parameter is in its path", async () => {
    const { body } = await api.get("/openapi.json");
    const text = JSON.stringify(body);
    for (const [, ref] of text.matchAll(/"\$ref":"#([^"]*)"/g)) {
      let at: unknown = body;
      for (const step of ref!.split("/").slice(1)) at = (at as Record<string, unknown>)[step];
      expect(at).toBeDefined();
    }
    const ids = [...text.matchAll(/"operationId":"([^"]*)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, methods] of Object.entries(body.paths as Record<string, Record<string, Operation>>)) {
      for (const { parameters = [], responses } of Object.values(methods)) {
        const named = parameters
          .filter((parameter) => parameter.in === "path")
          .map((parameter) => `{${parameter.name}}`);
        expect(named).toEqual([...path.matchAll(/\{\w+\}/g)].map(([name]) => name));
        expect(Object.keys(responses).length).toBeGreaterThan(1);
      }
    }
  });

  test("says that events come as a page and as a stream, and how a stream goes on", async () => {
    const { body } = await api.get("/openapi.json");
    const { parameters, responses } = body.paths["/v1/executions/{id}/events"].get;
    const id = await api.run({ name: "told", nodes: [{ id: "a", handler: "step" }] });
    await api.ended(id);
    for (const [type, { schema }] of Object.entries<{ schema: { type: string } }>(responses[200].content)) {
      const headers = { accept: type };
      const answer = await fetch(`${api.url}/v1/executions/${id}/events`, { headers });
      await answer.text();
      expect([answer.headers.get("content-type"), schema.type]).toEqual([
        `${type}; charset=utf-8`,
        type === "application/json" ? "object" : "string",
      ]);
    }
    expect(Object.keys(responses[200].content)).toEqual(["application/json", "text/event-stream"]);
    expect(parameters).toContainEqual(
      expect.objectContaining({ name: "Last-Event-ID", in: "header", required: false }),
    );
  });

  interface Operation {
    readonly parameters?: readonly { readonly in: string; readonly name: string }[];
    readonly responses: Record<string, unknown>;
  }
});

test("/docs is a page of its own: no scripts, nothing from elsewhere", async () => {
  const { status, body, headers } = await api.get("/docs");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toContain("text/html");
  expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(body).toContain("/v1/executions/{id}");
  expect(body).not.toMatch(/<script|https?:\/\//);
});

describe("/metrics", () => {
  test("counts every answer once: refusals, what no route has, and streams when they end", async () => {
    const counted = async (): Promise<ReadonlyMap<string, number>> => {
      const { body } = await api.get("/metrics");
      const lines = (body as string).matchAll(/^millrace_http_requests_total\{(.*)\} (\d+)$/gm);
      return new Map([...lines].map(([, labels, value]) => [labels!, Number(value)]));
    };
    const id = await api.run({ name: "counted", nodes: [{ id: "a", handler: "step" }] });
    await api.ended(id);
    const before = await counted();
    await api.post("/v1/workflow", { name: "no nodes" });
    await api.get("/nobody-has-this");
    await (await fetch(`${api.url}/v1/executions/${id}/events`, { headers: { accept: "text/event-stream" } })).text();
    const expected = {
      'method="POST",route="/v1/workflow",status="422"': 1,
      'method="(any)",route="(none)",status="404"': 1,
      'method="GET",route="/v1/executions/:id/events",status="200"': 1,
    };
    await expect
      .poll(async () => {
        const then = await counted();
        const more = (labels: string): number => (then.get(labels) ?? 0) - (before.get(labels) ?? 0);
        return Object.fromEntries(Object.keys(expected).map((labels) => [labels, more(labels)]));
      })
      .toEqual(expected);
  });

  test("counts executions, tasks, commits, requests and queues", async () => {
    const id = await api.run({ name: "m", nodes: [{ id: "a", handler: "step" }] });
    await api.ended(id);
    const { body, headers } = await api.get("/metrics");
    expect(headers.get("content-type")).toContain("text/plain");
    for (const line of [
      /^millrace_executions_accepted_total [1-9]/m,
      /^millrace_executions_ended_total\{status="COMPLETED"\} [1-9]/m,
      /^millrace_commits_total\{outcome="committed"\} [1-9]/m,
      /^millrace_events_total [1-9]/m,
      /^millrace_tasks_dispatched_total\{queue="step"\} [1-9]/m,
      /^millrace_tasks_leased_total\{queue="step"\} [1-9]/m,
      /^millrace_tasks_settled_total\{result="completed",outcome="settled"\} [1-9]/m,
      /^millrace_task_seconds_count\{result="completed"\} [1-9]/m,
      /^millrace_execution_seconds_count\{status="COMPLETED"\} [1-9]/m,
      /^millrace_http_requests_total\{method="POST",route="\/v1\/workflow",status="201"\} [1-9]/m,
      /^millrace_http_request_seconds_count\{method="POST",route="\/v1\/workflow"\} [1-9]/m,
      /^millrace_inbox_messages 0/m,
      /^millrace_dead_letters 0/m,
      /^millrace_process_cpu_seconds_total /m,
    ]) {
      expect(body).toMatch(line);
    }
    // Limits have journals too, and are no executions.
    const count = (text: string, name: string) => Number(new RegExp(`^millrace_${name} (\\d+)`, "m").exec(text)![1]);
    const limited = {
      id: "a",
      handler: "flaky",
      limit: "metered",
      retry: { max_attempts: 2, base_delay_seconds: 0.01 },
    };
    const definition = { name: "metered", limits: { metered: { concurrency: 1 } }, nodes: [limited] };
    await api.ended(await api.run(definition));
    const then = (await api.get("/metrics")).body as string;
    expect(count(then, "executions_accepted_total")).toBe(count(body, "executions_accepted_total") + 1);
    expect(count(then, "tasks_retried_total")).toBe(1);
    expect(then).toMatch(/^millrace_retry_delay_seconds_count 1$/m);
    // Paths that do not exist, and ids, are no labels.
    await api.get(`/v1/executions/${id}`);
    await api.get("/nobody/knows");
    const after = (await api.get("/metrics")).body as string;
    expect(after).not.toContain(id);
    expect(after).not.toContain("nobody");
  });

  test("counts a dead letter when it is left, and not again when a replay marks it", async () => {
    const letters = async () =>
      ((await api.get("/metrics")).body as string).match(/^millrace_dead_letters_total\{.*$/gm);
    const failed = await api.run({
      name: "dead",
      nodes: [{ id: "a", handler: "stubborn", retry: { max_attempts: 1 } }],
    });
    await api.ended(failed);
    expect(await letters()).toEqual(['millrace_dead_letters_total{class="exhausted"} 1']);
    const [letter] = (await api.get(`/v1/dlq?execution_id=${failed}`)).body.items;
    isStubborn = false;
    expect((await api.post(`/v1/dlq/${letter.id}/retry`)).status).toBe(202);
    await api.ended(failed);
    expect(await letters()).toEqual(['millrace_dead_letters_total{class="exhausted"} 1']);
  });
});

describe("health", () => {
  test("alive and ready", async () => {
    for (const path of ["/health/live", "/livez", "/healthz"]) {
      expect(await api.get(path)).toMatchObject({ status: 200, body: { status: "ok" } });
    }
    for (const path of ["/health/ready", "/readyz?verbose=1"]) {
      expect(await api.get(path)).toMatchObject({ status: 200, body: { status: "ok", parts: { store: "ok" } } });
    }
    expect((await fetch(`${api.url}/livez`, { method: "HEAD" })).status).toBe(200);
  });

  test("workers that are full with handlers that do not stop are told of, and so is what waits for them", async () => {
    const other = await TestApi.start({ known: ["slow"] });
    try {
      const register = (process: string, more: object) => {
        const text = JSON.stringify({ handlers: [{ name: "slow" }], queues: ["slow"], slots: 1, running: 1, ...more });
        return other.memory.records.register({ process, role: "worker", text }, 60_000);
      };
      const call = { handler: "slow", execution_id: "x1", node_id: "n1", attempt: 1 };
      const stuck = { degraded: true, slots_kept: 1, not_stopping: [call], stuck_queues: ["slow"] };
      await register("w1", stuck);
      const id = await other.run({ name: "waits", nodes: [{ id: "a", handler: "slow" }] });
      await other.eventually(async () => (await other.get(`/v1/executions/${id}`)).body.nodes.a.status === "QUEUED");
      const explain = async () => (await other.get(`/v1/executions/${id}/explain`)).body.items[0];
      expect(await explain()).toMatchObject({
        reason: "queued",
        sentence:
          'a is ready, but the only worker of queue "slow" is full with handlers that do not stop when asked: "slow" (n1 of x1). restart it, or start another: millrace worker',
        details: { workers: true, not_stopping: [{ worker_id: "w1", ...call }] },
      });
      const ready = (await other.get("/health/ready")).body as { status: string; parts: Record<string, string> };
      expect(ready).toMatchObject({
        status: "ok",
        parts: {
          workers: 'handlers do not stop when asked: "slow" in w1, which takes nothing more until one of them ends',
        },
      });
      const [queue] = (await other.get("/v1/queues")).body.items;
      expect(queue).toMatchObject({ name: "slow", queued: 1, workers: 1, stuck_workers: 1 });

      // Somebody has room: then it only waits for its turn.
      await register("w2", { degraded: true, not_stopping: [call], slots: 2 });
      await expect
        .poll(async () => (await explain()).sentence, { interval: 200, timeout: 5_000 })
        .toContain("waits in");
      expect((await other.get("/v1/queues")).body.items[0]).toMatchObject({ workers: 2, stuck_workers: 1 });
    } finally {
      await other.close();
    }
  });

  test("not ready first, while everything is still served", async () => {
    const other = await TestApi.start({ handlers: { gate: held.handler } });
    other.server.drain();
    const answer = await other.get("/readyz");
    expect(answer).toMatchObject({ status: 503, body: { code: "NOT_READY" } });
    expect(answer.headers.get("retry-after")).toBe("1");
    expect((await other.get("/livez")).status).toBe(200);
    expect((await other.get("/v1/executions")).status).toBe(200);
    await other.close();
  });

  test("a stop lets requests under way finish: nothing that was accepted is without its answer", async () => {
    const other = await TestApi.start({ handlers: { step: () => 1 } });
    const definition = { name: "s", nodes: [{ id: "a", handler: "step" }] };
    const answers = Promise.all(
      Array.from({ length: 50 }, () =>
        other.post("/v1/workflow", definition).then(
          ({ status }) => status,
          () => 0,
        ),
      ),
    );
    await nodeHost.sleep(5);
    const closed = other.server.close();
    const statuses = await answers;
    await closed;
    const { items } = await other.memory.queries.headers({ limit: 500 });
    expect(items.length).toBe(statuses.filter((status) => status === 201).length);
    await other.close();
  });
});

describe("when the store is in trouble", () => {
  const broken: { how: "fails" | "hangs" | "no" } = { how: "no" };
  const wrap = (store: Store): Store => {
    const role = <Role extends object>(given: Role): Role =>
      new Proxy(given, {
        get: (target, name) => {
          const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
          return (...args: unknown[]) => {
            if (broken.how === "fails") return Promise.reject(new Error("ECONNREFUSED 10.0.0.7:6379 password=hunter2"));
            if (broken.how === "hangs") return new Promise(() => {});
            return method.apply(target, args);
          };
        },
      });
    const { inbox, journal, tasks, records, queries } = store;
    return {
      capabilities: store.capabilities,
      partitions: store.partitions,
      inbox: role(inbox),
      journal: role(journal),
      tasks: role(tasks),
      records: role(records),
      queries: role(queries),
      close: () => store.close(),
    };
  };
  let trouble: TestApi;
  beforeAll(async () => {
    trouble = await TestApi.start({ wrap, handlers: { step: () => 1 } });
  });
  afterAll(async () => {
    broken.how = "no";
    await trouble.close();
  });

  test("the answer is 503 with Retry-After, never 2xx, and tells nothing of the inside", async () => {
    const definition = { name: "t", nodes: [{ id: "a", handler: "step" }] };
    const id = await trouble.run(definition);
    broken.how = "fails";
    const answers = await Promise.all([
      trouble.post("/v1/workflow", definition),
      trouble.post(`/v1/workflow/trigger/${id}`),
      trouble.post(`/v1/executions/${id}/cancel`),
      trouble.get(`/v1/executions/${id}`),
      trouble.get("/v1/executions"),
      trouble.get("/v1/dlq"),
      trouble.get("/v1/workers"),
      trouble.post("/v1/tasks/lease", { worker_id: "w", queues: ["q"] }),
      trouble.get(`/v1/executions/${id}/events`),
    ]);
    for (const { status, body, headers } of answers) {
      expect({ status, code: body.code }).toEqual({ status: 503, code: "STORE_UNAVAILABLE" });
      expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(2);
      expect(JSON.stringify(body)).not.toMatch(/hunter2|ECONNREFUSED|10\.0\.0/);
    }
    expect(await trouble.get("/readyz")).toMatchObject({ status: 503, body: { code: "STORE_UNAVAILABLE" } });
    expect((await trouble.get("/livez")).status).toBe(200);
    broken.how = "no";
    expect((await trouble.get(`/v1/executions/${id}`)).status).toBe(200);
    expect((await trouble.get("/readyz")).status).toBe(200);
  });

  test("a process lives whether or not its store answers, also if nobody knows yet whether there are keys", async () => {
    broken.how = "fails";
    const other = await TestApi.start({ wrap });
    for (const how of ["fails", "hangs"] as const) {
      broken.how = how;
      const startedAtMs = performance.now();
      expect(await other.get("/health/live")).toMatchObject({ status: 200, body: { status: "ok" } });
      expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    }
    broken.how = "no";
    await other.close();
  });

  test("a store that hangs is given up", async () => {
    broken.how = "hangs";
    expect(await trouble.get("/v1/executions")).toMatchObject({ status: 503, body: { code: "STORE_UNAVAILABLE" } });
    broken.how = "no";
  });
});

test("without an owner the answer is 503 NO_OWNER after ten seconds, and the message may still be applied", async () => {
  const other = await TestApi.start({ handlers: { step: () => 1 } });
  const { body } = await other.post("/v1/workflow", { name: "n", nodes: [{ id: "a", handler: "step" }] });
  await other.stopEngine();
  const startedAtMs = performance.now();
  const answers = await Promise.all([
    other.post(`/v1/workflow/trigger/${body.execution_id}`),
    other.post(`/v1/executions/${body.execution_id}/cancel`),
  ]);
  const tookMs = performance.now() - startedAtMs;
  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: 503,
      body: { code: "NO_OWNER", detail: expect.stringContaining("Idempotency-Key") },
    });
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  expect(tookMs).toBeGreaterThan(9_900);
  expect(tookMs).toBeLessThan(20_000);
  await other.close();
});

test("a full store takes nothing new, and says so", async () => {
  const other = await TestApi.start({ handlers: { step: () => 1 } });
  other.memory.faults.isFull = true;
  const submit = () => other.post("/v1/workflow", { name: "f", nodes: [{ id: "a", handler: "step" }] });
  expect(await submit()).toMatchObject({ status: 503, body: { code: "STORE_FULL" } });
  other.memory.faults.isFull = false;
  // A look at the store is good for a second.
  await expect.poll(async () => (await submit()).status, { interval: 100, timeout: 10_000 }).toBe(201);
  await other.close();
});

test("what goes wrong here is an incident with a number, and nothing more", async () => {
  const other = await TestApi.start();
  Object.assign(other.service.executions, {
    list: () => {
      throw new Error("secret inside");
    },
  });
  const { status, body } = await other.get("/v1/executions");
  expect({ status, code: body.code }).toEqual({ status: 500, code: "INTERNAL" });
  expect(JSON.stringify(body)).not.toContain("secret inside");
  expect(other.incidents).toEqual([new Error("secret inside")]);
  await other.close();
});
