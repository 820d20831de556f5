import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { withJournal } from "../../src/engine/test-engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json } from "../../src/json/json.ts";
import type { Store, Tasks } from "../../src/store/contract.ts";
import { TestApi } from "../support/api.ts";

const MEGABYTE = "x".repeat(1_000_000);
const SECRET = "s3cret-canary-value";
const SECRETS: Readonly<Record<string, string>> = { TOKEN: SECRET, LARGE: MEGABYTE };
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ secret: (name) => SECRETS[name] });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

let count = 0;
/** A queue of its own for each test. */
const queue = (): string => `remote-${++count}`;

async function run(handler: string, node: object = {}, more: object = {}, input?: Json): Promise<string> {
  const definition = { name: handler, nodes: [{ id: "a", handler, ...node }], ...more };
  const body = input === undefined ? definition : { definition, input_params: input };
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", body);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function lease(handler: string, more: object = {}, from: TestApi = api) {
  const { status, body } = await from.post("/v1/tasks/lease", {
    worker_id: "w1",
    handlers: [handler],
    wait_ms: 5_000,
    ...more,
  });
  expect(status).toBe(200);
  return body as { tasks: Record<string, never>[]; lease_seconds: number; heartbeat_seconds: number };
}

async function leaseOne(handler: string, more: object = {}): Promise<Record<string, never>> {
  const { tasks } = await lease(handler, more);
  expect(tasks.length).toBe(1);
  return tasks[0]!;
}

const complete = (token: unknown, output?: unknown) => api.post("/v1/tasks/complete", { token, output });
const fail = (token: unknown, error: object) => api.post("/v1/tasks/fail", { token, error });

describe("a task that is given back", () => {
  const handBack = (token: unknown) => api.post("/v1/tasks/hand-back", { token });

  test("goes to the next worker in the same attempt; a repeat is answered the same, a late one refused", async () => {
    const name = queue();
    const id = await run(name, { retry: { max_attempts: 1 } });
    const first = await leaseOne(name);
    expect(await handBack(first["token"])).toMatchObject({ status: 200, body: { accepted: true } });
    const second = await leaseOne(name);
    expect(second["token"]).not.toBe(first["token"]);
    expect(second["attempt"]).toBe(1);
    expect(await handBack(first["token"])).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await complete(second["token"], 1)).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await handBack(second["token"])).toMatchObject({ status: 409, body: { code: "STALE_ATTEMPT" } });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 1, deliveries: 2 } } });
  });

  test("may be one of several, and is nobody's with a forged token", async () => {
    const name = queue();
    await run(name);
    await run(name);
    const { tasks } = await lease(name, { max: 2 });
    const results = tasks.map(({ token }) => ({ token }));
    const answer = await api.post("/v1/tasks/hand-back", { results: [...results, { token: "forged" }] });
    const forged = { token: "forged", accepted: false, code: "TASK_TOKEN_INVALID" };
    expect(answer.body.results).toEqual([...results.map((one) => ({ ...one, accepted: true })), forged]);
    expect((await lease(name, { max: 2 })).tasks.length).toBe(2);
  });
});

describe("a worker elsewhere", () => {
  test("takes a task with all it needs, and its output is the node's", async () => {
    const name = queue();
    const id = await run(name, { config: { url: "{{ input.url }}", n: 1 }, timeout_seconds: 60 }, {}, { url: "u" });
    const answer = await lease(name);
    expect(answer).toMatchObject({ lease_seconds: 15, heartbeat_seconds: 5 });
    const [task] = answer.tasks;
    expect(task).toEqual({
      task_id: expect.any(String),
      token: expect.any(String),
      execution_id: id,
      node_id: "a",
      handler: name,
      attempt: 1,
      generation: 1,
      config: { url: "u", n: 1 },
      idempotency_key: `${id}/a/1`,
      deadline: expect.stringMatching(/Z$/),
      timeout_seconds: 60,
    });
    expect(await complete(task!["token"], { ok: true })).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", output: { a: { ok: true } } });
    expect(await complete(task!["token"], { ok: true })).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await complete(task!["token"], { other: 1 })).toMatchObject({ status: 200, body: { accepted: true } });
    expect((await api.get(`/v1/executions/${id}`)).body.output).toEqual({ a: { ok: true } });
  });

  test("is seen as running a second after it took a task, without a heartbeat", async () => {
    const name = queue();
    const id = await run(name);
    const task = await leaseOne(name);
    expect((await api.get(`/v1/executions/${id}`)).body.nodes.a.status).toBe("QUEUED");
    await nodeHost.sleep(1_200);
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.a.status === "RUNNING");
    await complete(task["token"], null);
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED" });
  });

  test("a key stands for one report", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    const report = (output: unknown) =>
      api.post("/v1/tasks/complete", { token, output }, { "idempotency-key": `${name} report` });
    for (let i = 0; i < 2; i++) expect(await report(1)).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await report(2)).toMatchObject({ status: 422, body: { code: "IDEMPOTENCY_KEY_REUSED" } });
    expect(await api.ended(id)).toMatchObject({ output: { a: 1 } });
  });

  test("any JSON is an output, and none is null", async () => {
    for (const output of [0, "", false, [], "text", [1, { a: null }], undefined]) {
      const name = queue();
      const id = await run(name, {}, { name });
      const { token } = await leaseOne(name);
      expect((await complete(token, output)).status).toBe(200);
      expect((await api.ended(id)).nodes.a.output).toEqual(output ?? null);
    }
  });

  test("reports a failure, which is tried again or not", async () => {
    const name = queue();
    const id = await run(name, { retry: { max_attempts: 2, base_delay_seconds: 0.01 } });
    const first = await leaseOne(name);
    expect(
      await fail(first["token"], { code: "RATE", message: "later", retryable: true, retry_after_seconds: 0.05 }),
    ).toMatchObject({
      status: 200,
      body: { accepted: true },
    });
    // The same report again is the same report.
    expect(await fail(first["token"], { code: "RATE", message: "later", retryable: true })).toMatchObject({
      status: 200,
    });
    const second = await leaseOne(name);
    expect(second).toMatchObject({ attempt: 2, idempotency_key: first["idempotency_key"] });
    expect(await complete(first["token"], 1)).toMatchObject({
      status: 409,
      body: { code: "STALE_ATTEMPT", execution: { execution_id: id, status: "RUNNING", generation: 1 } },
    });
    expect(
      (await fail(second["token"], { code: "BAD", message: "no", retryable: false, details: { x: 1 } })).status,
    ).toBe(200);
    expect(await api.ended(id)).toMatchObject({
      status: "FAILED",
      error: { code: "BAD", message: "no", retryable: false, details: { x: 1 }, node_id: "a" },
    });
  });

  test("the same failure several times at once is one report, and each is told that it counts", async () => {
    const memory = openMemory({ host: nodeHost });
    // Slow enough that the others come while the first is being decided.
    const store = withJournal(memory, {
      commit: async (batches) => {
        await nodeHost.sleep(50);
        return memory.journal.commit(batches);
      },
    });
    const slow = await TestApi.start({ store });
    try {
      const nodes = [{ id: "a", handler: "elsewhere", retry: { max_attempts: 1 } }];
      const started = await slow.post("/v1/workflow?start=true&allow_missing_handlers=true", { name: "slow", nodes });
      const [task] = (await lease("elsewhere", {}, slow)).tasks;
      const error = { code: "BAD", message: "no" };
      const reports = Array.from({ length: 5 }, () => slow.post("/v1/tasks/fail", { token: task!["token"], error }));
      for (const { status, body } of await Promise.all(reports))
        expect([status, body]).toEqual([200, { accepted: true }]);
      expect(await slow.ended(started.body.execution_id)).toMatchObject({ status: "FAILED", error: { code: "BAD" } });
    } finally {
      await slow.close();
      await memory.close();
    }
  });

  test("a result after the end is recorded and changes nothing", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    await api.post(`/v1/executions/${id}/cancel`);
    expect((await api.post("/v1/tasks/heartbeat", { worker_id: "w1", tokens: [token] })).body).toEqual({
      cancelled: [token],
    });
    expect(await complete(token, { late: 1 })).toMatchObject({
      status: 200,
      body: { accepted: false, recorded: true },
    });
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({
      status: "CANCELLED",
      nodes: { a: { status: "CANCELLED", output: null } },
    });
    await api.post(`/v1/executions/${id}/retry`);
    expect(await api.ended(id)).toMatchObject({
      nodes: { a: { status: "COMPLETED", reason: "late_result", output: { late: 1 } } },
    });
  });

  test("a lost worker is a new delivery of the same attempt", async () => {
    const name = queue();
    const id = await run(name);
    const first = await leaseOne(name, { lease_seconds: 0.1 });
    const second = await leaseOne(name, { lease_seconds: 15 });
    expect(second).toMatchObject({ attempt: 1, idempotency_key: first["idempotency_key"] });
    expect(second["token"]).not.toBe(first["token"]);
    expect(
      (await api.post("/v1/tasks/heartbeat", { worker_id: "w1", tokens: [first["token"], second["token"]] })).body,
    ).toEqual({
      cancelled: [first["token"]],
    });
    expect(await fail(first["token"], { message: "too late" })).toMatchObject({
      status: 409,
      body: { code: "STALE_ATTEMPT" },
    });
    // A completion counts from any delivery of the attempt.
    expect(await complete(first["token"], { from: "first" })).toMatchObject({ status: 200, body: { accepted: true } });
    expect(await api.ended(id)).toMatchObject({ nodes: { a: { output: { from: "first" }, deliveries: 2 } } });
  });

  test("a heartbeat keeps a task, and only that one", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name, { lease_seconds: 0.4 });
    for (let i = 0; i < 6; i++) {
      await nodeHost.sleep(150);
      expect(
        (await api.post("/v1/tasks/heartbeat", { worker_id: "w1", tokens: [token, "nobody.knows"] })).body,
      ).toEqual({
        cancelled: ["nobody.knows"],
      });
    }
    expect((await complete(token, 1)).body).toEqual({ accepted: true });
    expect(await api.ended(id)).toMatchObject({ nodes: { a: { deliveries: 1 } } });
  });

  test("many results at once, each judged for itself", async () => {
    const name = queue();
    const nodes = Array.from({ length: 5 }, (_, i) => ({ id: `n${i}`, handler: name }));
    const id = await run(name, {}, { nodes });
    const { tasks } = await lease(name, { max: 10 });
    expect(tasks.length).toBe(5);
    const results = [
      ...tasks.slice(0, 4).map(({ token, node_id }) => ({ token, output: { node_id } })),
      { token: "forged.token", output: 1 },
    ];
    const { status, body } = await api.post("/v1/tasks/complete", { results });
    expect(status).toBe(200);
    expect(body.results).toEqual([
      ...tasks.slice(0, 4).map(({ token }) => ({ token, accepted: true })),
      { token: "forged.token", accepted: false, code: "TASK_TOKEN_INVALID" },
    ]);
    const failed = await api.post("/v1/tasks/fail", {
      results: [{ token: tasks[4]!["token"], error: { code: "X", message: "x", retryable: false } }],
    });
    expect(failed.body).toEqual({ results: [{ token: tasks[4]!["token"], accepted: true }] });
    expect(await api.ended(id)).toMatchObject({ status: "FAILED", nodes: { n0: { output: { node_id: "n0" } } } });
  });

  test("items of a map and rounds of a repeat say which they are", async () => {
    const name = queue();
    const id = await run(
      name,
      {},
      { nodes: [{ id: "m", handler: "map", config: { items: [7, 8], handler: name, config: { n: "{{ item }}" } } }] },
    );
    const { tasks } = await lease(name, { max: 5 });
    expect(tasks.map(({ node_id, item, config }) => ({ node_id, item, config }))).toEqual([
      { node_id: "m", item: 0, config: { n: 7 } },
      { node_id: "m", item: 1, config: { n: 8 } },
    ]);
    await api.post("/v1/tasks/complete", { results: tasks.map(({ token, item }) => ({ token, output: item })) });
    expect(await api.ended(id)).toMatchObject({ output: { m: [0, 1] } });
  });

  test("large configs and outputs pass whole", async () => {
    const name = queue();
    const text = "z".repeat(200_000);
    const id = await run(name, { config: { text: "{{ input.text }}" } }, {}, { text });
    const { token, config } = await leaseOne(name);
    expect(config).toEqual({ text });
    expect((await complete(token, { text })).status).toBe(200);
    await api.ended(id);
    expect((await api.get(`/v1/executions/${id}/nodes/a`)).body.output).toEqual({ text });
  });

  test("a mock that brings its own result needs no worker", async () => {
    const name = queue();
    const id = await run(name, { config: { mock: { from: "mock" } } });
    expect((await lease(name, { wait_ms: 200 })).tasks).toEqual([]);
    expect(await api.ended(id)).toMatchObject({ output: { a: { from: "mock" } } });
  });

  test("a mock may give what a worker may, and no more", async () => {
    const name = queue();
    const twice = { config: { mock: ["{{ input.text }}", "{{ input.text }}"] } };
    const id = await run(name, twice, {}, { text: "x".repeat(600_000) });
    expect((await lease(name, { wait_ms: 200 })).tasks).toEqual([]);
    expect(await api.ended(id)).toMatchObject({ status: "FAILED", error: { code: "OUTPUT_TOO_LARGE" } });
  });

  test("what was used is told within reason: too much of it must not cost the result", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    const answer = await api.post("/v1/tasks/complete", { token, output: 1, usage: { log: "x".repeat(20_000) } });
    expect(answer.status).toBe(200);
    expect((await api.ended(id)).nodes.a).toMatchObject({ status: "COMPLETED", output: 1, usage: null });
  });
});

describe("an answer to a lease has a size", () => {
  /** Nodes that each read the same large value so many times: the output of the first, or a secret. */
  async function readers(name: string, template: string, times: Readonly<Record<string, number>>): Promise<string> {
    const nodes = Object.entries(times).map(([id, length]) => ({
      id,
      handler: name,
      dependencies: ["large"],
      config: { all: Array.from({ length }, () => template) },
      on_error: "fail_branch",
    }));
    const id = await run(name, {}, { nodes: [{ id: "large", handler: name }, ...nodes] });
    const { token } = await leaseOne(name);
    expect((await complete(token, MEGABYTE)).status).toBe(200);
    await api.eventually(async () =>
      Object.values<{ status: string }>((await api.get(`/v1/executions/${id}`)).body.nodes).every(
        ({ status }) => status !== "PENDING",
      ),
    );
    return id;
  }

  test("what does not fit stays in the queue, and no delivery of it counts as lost", async () => {
    const name = queue();
    const ids = Array.from({ length: 12 }, (_, i) => `n${i}`);
    const id = await readers(name, "{{ large }}", Object.fromEntries(ids.map((one) => [one, 3])));
    const sizes: number[] = [];
    while (sizes.reduce((sum, size) => sum + size, 0) < ids.length) {
      const { tasks } = await lease(name, { max: 100 });
      sizes.push(tasks.length);
      await api.post("/v1/tasks/complete", { results: tasks.map(({ token }) => ({ token, output: 1 })) });
    }
    expect(sizes).toEqual([5, 5, 2]);
    const { status, nodes } = await api.ended(id);
    expect(status).toBe("COMPLETED");
    const { items } = (await api.get(`/v1/executions/${id}/events?limit=500`)).body;
    const lost = (items as { type: string; data: Json }[]).filter(({ type }) => /lost/i.test(type));
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.every(({ data }) => (data as { handed_back?: boolean }).handed_back)).toBe(true);
    // A worker that gets large tasks is not leased all there are each time.
    expect(Math.max(...Object.values<{ deliveries: number }>(nodes).map(({ deliveries }) => deliveries))).toBe(3);
  });

  test("one task is always given, if it is not too large to be given at all", async () => {
    const name = queue();
    const id = await readers(name, "{{ secrets.LARGE }}", { a: 20, tooLarge: 70, b: 1 });
    const first = await lease(name, { max: 10 });
    expect(first.tasks.map(({ node_id }) => node_id)).toEqual(["a"]);
    const second = await lease(name, { max: 10 });
    expect(second.tasks.map(({ node_id }) => node_id)).toEqual(["b"]);
    await complete(first.tasks[0]!["token"], 1);
    await complete(second.tasks[0]!["token"], 1);
    expect(await api.ended(id)).toMatchObject({
      status: "PARTIAL",
      nodes: {
        a: { status: "COMPLETED" },
        b: { status: "COMPLETED" },
        tooLarge: { status: "FAILED", attempt: 1, error: { code: "RESOLVED_INPUT_TOO_LARGE", retryable: false } },
      },
    });
  });

  test("only so much of what was answered to keys is kept", async () => {
    const name = queue();
    await readers(name, "{{ secrets.LARGE }}", { a: 20, b: 20 });
    const keyed = async (key: string) => {
      const body = { worker_id: "w1", handlers: [name], wait_ms: 500 };
      const { tasks } = (await api.post("/v1/tasks/lease", body, { "idempotency-key": name + key })).body;
      return (tasks as { node_id: string }[]).map(({ node_id }) => node_id);
    };
    expect(await keyed("first")).toEqual(["a"]);
    expect(await keyed("first")).toEqual(["a"]);
    expect(await keyed("second")).toEqual(["b"]);
    expect(await keyed("second")).toEqual(["b"]);
    expect(await keyed("first")).toEqual([]);
  });

  test("what was leased for an answer that could not be given is there for the next at once", async () => {
    let isBroken = true;
    const wrap = (store: Store): Store => {
      const { capabilities, partitions, inbox, journal, records, queries } = store;
      const settle: Tasks["settle"] = (results) =>
        isBroken && results.some(({ outcome }) => outcome === "failed")
          ? Promise.reject(new Error("no such disk"))
          : store.tasks.settle(results);
      const tasks = new Proxy(store.tasks, {
        get: (target, name) =>
          name === "settle" ? settle : (Reflect.get(target, name) as (...args: unknown[]) => unknown).bind(target),
      });
      return { capabilities, partitions, inbox, journal, tasks, records, queries, close: () => store.close() };
    };
    const other = await TestApi.start({ known: ["broken"], wrap });
    try {
      const nodes = [
        { id: "good", handler: "broken" },
        { id: "bad", handler: "broken", config: { key: "{{ secrets.NOBODY }}" } },
      ];
      const id = await other.run({ name: "broken", on_error: "fail_branch", nodes });
      const body = { worker_id: "w1", handlers: ["broken"], max: 10, wait_ms: 5_000 };
      await other.eventually(async () => {
        const { good, bad } = (await other.get(`/v1/executions/${id}`)).body.nodes;
        return good.status === "QUEUED" && bad.status === "QUEUED";
      });
      expect((await other.post("/v1/tasks/lease", body)).status).toBe(503);
      isBroken = false;
      const { tasks } = (await other.post("/v1/tasks/lease", body)).body as { tasks: Record<string, string>[] };
      expect(tasks.map(({ node_id }) => node_id)).toEqual(["good"]);
      await other.post("/v1/tasks/complete", { token: tasks[0]!["token"], output: 1 });
      await other.post("/v1/tasks/lease", { ...body, wait_ms: 100 });
      expect(await other.ended(id)).toMatchObject({ status: "PARTIAL", error: { code: "SECRET_MISSING" } });
    } finally {
      await other.close();
    }
  });
});

describe("outputs that cannot be stored fail their node", () => {
  test.each([
    ["too large", { text: "x".repeat(1_048_577) }, 413, "OUTPUT_TOO_LARGE"],
    ["NUL", { text: "a\u0000b" }, 422, "OUTPUT_INVALID"],
    ["half a surrogate pair", { text: "\ud800" }, 422, "OUTPUT_INVALID"],
    ["65 levels", JSON.parse(`${"[".repeat(65)}${"]".repeat(65)}`) as Json, 422, "OUTPUT_INVALID"],
  ])("%s", async (_, output, status, code) => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    expect(await complete(token, output)).toMatchObject({ status, body: { code } });
    expect(await api.ended(id)).toMatchObject({ status: "FAILED", error: { code, retryable: false } });
    expect(await complete(token, output)).toMatchObject({ status, body: { code } });
  });

  test("what is not an output is refused with its request if it is that deep", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    const deep = JSON.parse(`${"[".repeat(64)}${"]".repeat(64)}`) as Json;
    const answer = await api.post("/v1/tasks/complete", { token, output: deep, usage: { tokens: deep } });
    expect(answer).toMatchObject({ status: 400, body: { code: "JSON_TOO_DEEP" } });
    expect(await complete(token, deep)).toMatchObject({ status: 200 });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", output: { a: deep } });
  });

  test("__proto__", async () => {
    const name = queue();
    const id = await run(name);
    const { token } = await leaseOne(name);
    const answer = await api.post("/v1/tasks/complete", `{"token":${JSON.stringify(token)},"output":{"__proto__":1}}`);
    expect(answer).toMatchObject({ status: 422, body: { code: "OUTPUT_INVALID" } });
    expect(await api.ended(id)).toMatchObject({ status: "FAILED" });
  });
});

describe("tokens", () => {
  test("a token that was changed anywhere is none of ours", async () => {
    const name = queue();
    await run(name);
    const { token } = await leaseOne(name);
    const text = token as unknown as string;
    const places = [0, 1, 10, Math.floor(text.length / 2), text.length - 33, text.length - 32, text.length - 1];
    for (const place of places) {
      const other = text[place] === "A" ? "B" : "A";
      const forged = text.slice(0, place) + other + text.slice(place + 1);
      expect(await complete(forged, 1)).toMatchObject({ status: 403, body: { code: "TASK_TOKEN_INVALID" } });
    }
    for (const forged of ["x", ".", "a.b", `${text}x`, text.slice(0, -1), "é".repeat(10)]) {
      expect((await complete(forged, 1)).status).toBe(403);
      expect((await fail(forged, { message: "x" })).status).toBe(403);
    }
    expect((await complete(text, 1)).status).toBe(200);
  });

  test("any process settles what another has given out", async () => {
    const memory = openMemory({ host: nodeHost });
    const first = await TestApi.start({ memory });
    const second = await TestApi.start({ memory, engine: false });
    try {
      const definition = { name: "two", nodes: [{ id: "a", handler: "elsewhere" }] };
      const { body } = await first.post("/v1/workflow?start=true&allow_missing_handlers=true", definition);
      const [task] = (await lease("elsewhere", {}, first)).tasks;
      const { token } = task!;
      expect((await second.post("/v1/tasks/heartbeat", { worker_id: "w", tokens: [token] })).body).toEqual({
        cancelled: [],
      });
      expect((await second.post("/v1/tasks/complete", { token, output: 5 })).body).toEqual({ accepted: true });
      expect(await first.ended(body.execution_id)).toMatchObject({ output: { a: 5 } });
    } finally {
      await second.close();
      await first.close();
      await memory.close();
    }
  });
});

describe("secrets", () => {
  test("are filled in at the lease, and cut out of what is reported", async () => {
    const name = queue();
    const id = await run(
      name,
      { config: { header: "Bearer {{ secrets.TOKEN }}", note: "{{ input.note }}" } },
      {},
      {
        note: "{{ secrets.TOKEN }}",
      },
    );
    const { token, config, secrets } = await leaseOne(name);
    expect(config).toEqual({ header: `Bearer ${SECRET}`, note: "{{ secrets.TOKEN }}" });
    expect(secrets).toEqual([SECRET]);
    await complete(token, { echo: `it was ${SECRET}` });
    const body = await api.ended(id);
    expect(body.nodes.a.output).toEqual({ echo: "it was ***" });
    const history = await api.get(`/v1/executions/${id}/events?limit=500`);
    expect(JSON.stringify([body, history.body])).not.toContain(SECRET);
  });

  test("are cut out of what was used, and of a mock, too", async () => {
    const name = queue();
    const config = { header: "{{ secrets.TOKEN }}" };
    const used = await run(name, { config });
    const { token } = await leaseOne(name);
    await api.post("/v1/tasks/complete", { token, output: 1, usage: { tokens: 3, [SECRET]: `for ${SECRET}` } });
    expect((await api.ended(used)).nodes.a.usage).toEqual({ tokens: 3, "***": "for ***" });
    const mocked = await run(name, { config: { ...config, mock: { text: "it is {{ secrets.TOKEN }}" } } });
    expect((await lease(name, { wait_ms: 200 })).tasks).toEqual([]);
    expect((await api.ended(mocked)).nodes.a.output).toEqual({ text: "it is ***" });
    const histories = await Promise.all([used, mocked].map((id) => api.get(`/v1/executions/${id}/events?limit=500`)));
    expect(JSON.stringify(histories.map(({ body }) => body))).not.toContain(SECRET);
  });

  test("one that is not there fails the node", async () => {
    const name = queue();
    const id = await run(name, { config: { header: "{{ secrets.NOBODY }}" } });
    expect((await lease(name, { wait_ms: 100 })).tasks).toEqual([]);
    const message = expect.stringContaining(
      "set MILLRACE_SECRET_NOBODY in the environment of the server, which",
    ) as string;
    expect(await api.ended(id)).toMatchObject({ status: "FAILED", error: { code: "SECRET_MISSING", message } });
  });
});

describe("leases", () => {
  test("a lease waits for a task, and not longer than it was asked to", async () => {
    const name = queue();
    const startedAtMs = performance.now();
    expect((await lease(name, { wait_ms: 150 })).tasks).toEqual([]);
    expect(performance.now() - startedAtMs).toBeGreaterThan(140);
    const waiting = lease(name, { wait_ms: 20_000 });
    await nodeHost.sleep(50);
    await run(name);
    const leasedAtMs = performance.now();
    expect((await waiting).tasks.length).toBe(1);
    expect(performance.now() - leasedAtMs).toBeLessThan(10_000);
  });

  test("what is given to a client that has gone is given to the next at once", async () => {
    const name = queue();
    const abort = new AbortController();
    const gone = fetch(`${api.url}/v1/tasks/lease`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ worker_id: "gone", handlers: [name], wait_ms: 20_000 }),
      signal: abort.signal,
    }).catch(() => undefined);
    await nodeHost.sleep(100);
    abort.abort();
    await gone;
    const id = await run(name);
    const task = await leaseOne(name, { worker_id: "next" });
    await complete(task["token"], 1);
    expect(await api.ended(id)).toMatchObject({ nodes: { a: { status: "COMPLETED", attempt: 1 } } });
  });

  test("a repeated lease with a key gives the same tasks", async () => {
    const name = queue();
    await run(name);
    const body = { worker_id: "w1", handlers: [name], wait_ms: 1_000 };
    const headers = { "idempotency-key": name };
    const first = await api.post("/v1/tasks/lease", body, headers);
    expect(first.body.tasks.length).toBe(1);
    expect((await api.post("/v1/tasks/lease", body, headers)).body).toEqual(first.body);
    expect((await api.post("/v1/tasks/lease", { ...body, max: 2 }, headers)).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  test("workers and queues are seen, and handlers they have named are known", async () => {
    const name = queue();
    const definition = { name, nodes: [{ id: "a", handler: name }] };
    expect((await api.post("/v1/workflow", definition)).status).toBe(422);
    await lease(name, { wait_ms: 0, worker_id: "seen" });
    const submitted = await api.post("/v1/workflow?start=true", definition);
    expect(submitted).toMatchObject({ status: 201 });
    expect(submitted.body.warnings).toBeUndefined();
    expect((await api.get("/v1/workers")).body.items).toContainEqual(
      expect.objectContaining({ worker_id: "gateway-seen", handlers: [name] }),
    );
    await api.eventually(async () =>
      (await api.get("/v1/queues")).body.items.some(
        (one: { name: string; queued: number }) => one.name === name && one.queued === 1,
      ),
    );
    expect((await api.get("/v1/queues")).body.items).toContainEqual(
      expect.objectContaining({ name, queued: 1, workers: 1 }),
    );
  });

  test("workers and queues are lists like any other: page by page, each once", async () => {
    const names = [queue(), queue()];
    await lease(names[0]!, { wait_ms: 0, worker_id: "first" });
    await lease(names[1]!, { wait_ms: 0, worker_id: "second" });
    for (const [path, key, expected] of [
      ["/v1/workers", "worker_id", ["gateway-first", "gateway-second"]],
      ["/v1/queues", "name", names],
    ] as const) {
      const found: string[] = [];
      for (let at = "?limit=1"; at !== "";) {
        const { status, body } = await api.get(path + at);
        expect(status).toBe(200);
        expect(body.items.length).toBeLessThanOrEqual(1);
        found.push(...(body.items as Record<string, string>[]).map((one) => one[key]!));
        at = body.next_cursor === null ? "" : `?limit=1&cursor=${encodeURIComponent(body.next_cursor as string)}`;
      }
      expect(found).toEqual([...new Set(found)].sort());
      expect(found).toEqual(expect.arrayContaining([...expected]));
      expect((await api.get(`${path}?limit=0`)).body.code).toBe("INVALID_QUERY");
      expect((await api.get(`${path}?cursor=x`)).body.code).toBe("INVALID_CURSOR");
    }
  });

  test("a queue that nobody serves is told as the reason", async () => {
    const name = queue();
    const id = await run(name);
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.a.status === "QUEUED");
    expect((await api.get(`/v1/executions/${id}/explain`)).body.items).toMatchObject([
      {
        reason: "queued",
        sentence: `a is ready, but no connected worker provides "${name}". start one: millrace worker --handlers FILE`,
        details: { workers: false },
      },
    ]);
  });

  test("of a queue with a name of its own is said how a worker comes to serve it", async () => {
    const name = queue();
    const definition = { name, nodes: [{ id: "a", handler: "transform", queue: name, config: { value: 1 } }] };
    const { execution_id: id } = (await api.post("/v1/workflow?start=true", definition)).body;
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.a.status === "QUEUED");
    const [told] = (await api.get(`/v1/executions/${id}/explain`)).body.items;
    expect(told.sentence).toBe(
      `a is ready, but no connected worker provides "transform" from queue "${name}". ` +
        `start one: millrace worker --queues "${name}"`,
    );
  });

  test.each([
    [{}, "INVALID_TYPE"],
    [{ worker_id: "w" }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], queues: ["b"] }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: [] }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: "a" }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], max: 0 }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], max: 1001 }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], wait_ms: 30_001 }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], wait_ms: -1 }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], lease_seconds: 0 }, "INVALID_TYPE"],
    [{ worker_id: "", handlers: ["a"] }, "INVALID_TYPE"],
    [{ worker_id: "w", handlers: ["a"], tenant: "x" }, "UNKNOWN_FIELD"],
  ])("%j is refused with %s", async (body, code) => {
    expect(await api.post("/v1/tasks/lease", body)).toMatchObject({ status: 400, body: { code } });
  });
});

test("a stop answers those who wait for tasks", async () => {
  const other = await TestApi.start();
  const waiting = other.post("/v1/tasks/lease", { worker_id: "w", queues: ["nothing"], wait_ms: 30_000 });
  await nodeHost.sleep(50);
  const startedAtMs = performance.now();
  await other.close();
  expect(await waiting).toMatchObject({ status: 200, body: { tasks: [] } });
  expect(performance.now() - startedAtMs).toBeLessThan(15_000);
});
