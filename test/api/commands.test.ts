import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { HandlerError } from "../../src/worker/handler.ts";
import { gate } from "../../src/engine/test-engine.ts";
import { TestApi } from "../support/api.ts";

const held = gate();
const broken = new Set<string>();
let api: TestApi;

beforeAll(async () => {
  api = await TestApi.start({
    handlers: {
      step: ({ config }) => config,
      gate: held.handler,
      /** Fails while its node is broken. */
      fragile: ({ config, nodeId }) => {
        if (broken.has(nodeId)) throw new HandlerError("BROKEN", "it is broken", { retryable: false });
        return config;
      },
    },
  });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const one = (handler: string, id = "a") => ({ name: `one-${handler}-${id}`, nodes: [{ id, handler }] });
const conflict = (code: string, id: string, status: string) => ({
  status: 409,
  body: { code, status: 409, execution: { execution_id: id, status, generation: expect.any(Number) } },
});

describe("cancel", () => {
  test("ends it and all that is open, in one commit; again it is over", async () => {
    const id = await api.run({
      name: "c",
      nodes: [
        { id: "a", handler: "gate" },
        { id: "b", handler: "step", dependencies: ["a"] },
      ],
    });
    expect(await api.post(`/v1/executions/${id}/cancel`)).toMatchObject({
      status: 202,
      body: { execution_id: id, status: "CANCELLED", generation: 1 },
    });
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({
      status: "CANCELLED",
      output: null,
      nodes: { a: { status: "CANCELLED", reason: "cancel" }, b: { status: "CANCELLED", reason: "cancel" } },
    });
    expect(await api.post(`/v1/executions/${id}/cancel`)).toMatchObject(conflict("ALREADY_TERMINAL", id, "CANCELLED"));
    expect(await api.post(`/v1/workflow/trigger/${id}`)).toMatchObject(conflict("ALREADY_TERMINAL", id, "CANCELLED"));
  });

  test("also before it was triggered; twenty at once are one", async () => {
    const { body } = await api.post("/v1/workflow", one("gate"));
    const id = body.execution_id as string;
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.post(`/v1/executions/${id}/cancel`)));
    expect(answers.filter(({ status }) => status === 202).length).toBe(1);
    expect(answers.filter(({ status }) => status === 409).length).toBe(19);
  });

  test("with a key the answer stays the same", async () => {
    const id = await api.run(one("gate"));
    const headers = { "idempotency-key": "k" };
    const first = await api.post(`/v1/executions/${id}/cancel`, {}, headers);
    expect(await api.post(`/v1/executions/${id}/cancel`, {}, headers)).toMatchObject({ status: 202, body: first.body });
    expect((await api.post(`/v1/executions/${id}/cancel`, {}, { "idempotency-key": "other" })).status).toBe(409);
  });
});

describe("pause and resume", () => {
  test("nothing new starts while it is paused; what runs goes on", async () => {
    const id = await api.run({
      name: "p",
      nodes: [
        { id: "first", handler: "gate" },
        { id: "second", handler: "step", dependencies: ["first"] },
      ],
    });
    expect(await api.post(`/v1/executions/${id}/resume`)).toMatchObject(conflict("NOT_PAUSED", id, "RUNNING"));
    expect(await api.post(`/v1/executions/${id}/pause`)).toMatchObject({ status: 202, body: { status: "PAUSED" } });
    expect(await api.post(`/v1/executions/${id}/pause`)).toMatchObject({ status: 202, body: { status: "PAUSED" } });
    expect(await api.post(`/v1/workflow/trigger/${id}`)).toMatchObject(conflict("ALREADY_RUNNING", id, "PAUSED"));
    held.open("first", { done: true });
    await api.eventually(async () => {
      const { body } = await api.get(`/v1/executions/${id}`);
      return body.nodes.first.status === "COMPLETED";
    });
    expect((await api.get(`/v1/executions/${id}/explain?node=second`)).body.items).toMatchObject([
      { node_id: "second", reason: "paused", sentence: expect.any(String) },
    ]);
    expect((await api.get("/v1/executions?status=PAUSED")).body.items).toMatchObject([{ execution_id: id }]);
    expect(await api.post(`/v1/executions/${id}/resume`)).toMatchObject({ status: 202, body: { status: "RUNNING" } });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED" });
    expect(await api.post(`/v1/executions/${id}/pause`)).toMatchObject(conflict("ALREADY_TERMINAL", id, "COMPLETED"));
  });

  test("what was not triggered cannot be paused", async () => {
    const { body } = await api.post("/v1/workflow", one("gate"));
    expect(await api.post(`/v1/executions/${body.execution_id}/pause`)).toMatchObject(
      conflict("NOT_RUNNING", body.execution_id, "PENDING"),
    );
  });
});

describe("retry", () => {
  const chain = (name: string) => ({
    name,
    nodes: [
      { id: `${name}-a`, handler: "step", config: { x: 1 } },
      { id: `${name}-b`, handler: "fragile", dependencies: [`${name}-a`], config: { y: "{{ input.y | default(1) }}" } },
      { id: `${name}-c`, handler: "step", dependencies: [`${name}-b`] },
    ],
  });

  test("runs again what failed, and keeps what completed", async () => {
    broken.add("r1-b");
    const id = await api.run(chain("r1"));
    const failed = await api.ended(id);
    expect(failed).toMatchObject({
      status: "FAILED",
      retryable_from: ["r1-b"],
      error: { code: "BROKEN", message: "it is broken", retryable: false, node_id: "r1-b" },
    });
    expect(await api.post(`/v1/executions/${id}/retry?dry_run=true`)).toMatchObject({
      status: 200,
      body: { rerun: ["r1-b", "r1-c"], kept: ["r1-a"] },
    });
    expect((await api.get(`/v1/executions/${id}`)).body.generation).toBe(1);
    broken.delete("r1-b");
    const answers = await Promise.all([api.post(`/v1/executions/${id}/retry`), api.post(`/v1/executions/${id}/retry`)]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 409]));
    expect(answers.find(({ status }) => status === 202)!.body).toMatchObject({ status: "RUNNING", generation: 2 });
    const again = await api.ended(id);
    expect(again).toMatchObject({ status: "COMPLETED", generation: 2 });
    expect(again.nodes["r1-a"]).toEqual(failed.nodes["r1-a"]);
    expect(await api.post(`/v1/executions/${id}/retry`)).toMatchObject(conflict("NOT_RETRYABLE", id, "COMPLETED"));
  });

  test("another config is checked like one that is submitted, and written out like one", async () => {
    const items = { items: [1, 2], nodes: [{ id: "i", handler: "step", config: { n: "{{ item }}" } }] };
    const id = await api.run({
      name: "edits",
      nodes: [
        { id: "m", handler: "map", config: { items: [0], handler: "step", config: {} } },
        { id: "w", handler: "wait", dependencies: ["m"], config: { seconds: 0.01 } },
      ],
    });
    await api.ended(id);
    const retry = (body: object) => api.post(`/v1/executions/${id}/retry`, body);
    expect(await retry({ from: "w", config: { seconds: "{{ nobody.x }}", signl: "s" } })).toMatchObject({
      status: 422,
      body: {
        code: "INVALID_DEFINITION",
        errors: [
          { code: "CONFIG_INVALID", path: "/config/signl" },
          { code: "TEMPLATE_UNKNOWN_NODE", path: "/config/seconds" },
        ],
      },
    });
    expect(await api.post(`/v1/executions/${id}/retry?dry_run=true`, { from: "w", config: { secs: 1 } })).toMatchObject(
      {
        status: 422,
        body: { code: "INVALID_DEFINITION" },
      },
    );
    expect(await retry({ from: "m", config: { items: [1], nodes: [{ id: "x" }] } })).toMatchObject({
      status: 422,
      body: { code: "INVALID_DEFINITION" },
    });
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({ status: "COMPLETED", generation: 1 });
    // A graph instead of a handler, with defaults that nobody has written.
    expect((await retry({ from: "m", config: items })).status).toBe(202);
    expect((await api.ended(id)).nodes.m).toMatchObject({
      status: "COMPLETED",
      output: [{ i: { n: 1 } }, { i: { n: 2 } }],
    });
  });

  test("from a node: it and what comes after, or it alone; with another config or input", async () => {
    const id = await api.run(chain("r2"), { y: 1 });
    await api.ended(id);
    expect((await api.post(`/v1/executions/${id}/retry?dry_run=true`, { from: "r2-b" })).body).toEqual({
      rerun: ["r2-b", "r2-c"],
      kept: ["r2-a"],
    });
    expect((await api.post(`/v1/executions/${id}/retry?dry_run=true`, { from: "r2-b", scope: "node" })).body).toEqual({
      rerun: ["r2-b"],
      kept: ["r2-a", "r2-c"],
    });
    expect(await api.post(`/v1/executions/${id}/retry`, { from: "r2-b", input_params: { y: 5 } })).toMatchObject({
      status: 202,
      body: { generation: 2 },
    });
    expect(await api.ended(id)).toMatchObject({ nodes: { "r2-b": { output: { y: 5 } } }, input: { y: 5 } });
    const edited = { from: "r2-b", scope: "node", config: { z: 9 } };
    expect((await api.post(`/v1/executions/${id}/retry`, edited)).status).toBe(202);
    expect(await api.ended(id)).toMatchObject({ generation: 3, nodes: { "r2-b": { output: { z: 9 } } } });
  });

  test("is refused while it is open, from nowhere, and when it contradicts itself", async () => {
    const id = await api.run(one("gate"));
    expect(await api.post(`/v1/executions/${id}/retry`)).toMatchObject(conflict("EXECUTION_OPEN", id, "RUNNING"));
    for (const query of ["dry_run", "dry_run=", "dry_run=yes"]) {
      expect((await api.post(`/v1/executions/${id}/retry?${query}`)).body.code).toBe("INVALID_QUERY");
    }
    expect(await api.post(`/v1/executions/${id}/retry?dry_run=1`)).toMatchObject(
      conflict("EXECUTION_OPEN", id, "RUNNING"),
    );
    await api.post(`/v1/executions/${id}/cancel`);
    for (const query of ["", "?dry_run=true"]) {
      expect(await api.post(`/v1/executions/${id}/retry${query}`, { from: "nobody" })).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND" },
      });
    }
    for (const body of [
      { scope: "node" },
      { from: "a", scope: "failed" },
      { config: {} },
      { scope: "x" },
      { from: 1 },
    ]) {
      expect(await api.post(`/v1/executions/${id}/retry`, body)).toMatchObject({
        status: 400,
        body: { code: "INVALID_TYPE" },
      });
    }
  });

  test("another input has to fit like the first one", async () => {
    const input_schema = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
    broken.add("r-input");
    const id = await api.run(
      { name: "r-input", input_schema, nodes: [{ id: "r-input", handler: "fragile" }] },
      { n: 1 },
    );
    const retry = (input_params: unknown) => api.post(`/v1/executions/${id}/retry`, { input_params });
    expect(await api.ended(id)).toMatchObject({ status: "FAILED" });
    for (const bad of [{}, { n: "1" }, []]) {
      expect(await retry(bad)).toMatchObject({
        status: 422,
        body: { code: "INPUT_INVALID", errors: [expect.any(Object)] },
      });
    }
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({ status: "FAILED", generation: 1 });
    broken.delete("r-input");
    expect(await retry({ n: 2 })).toMatchObject({ status: 202, body: { generation: 2 } });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", input: { n: 2 } });
    expect((await api.post("/v1/executions/nobody/retry", { input_params: {} })).status).toBe(404);
  });

  test("a trigger of what failed is a retry, and cannot bring another input", async () => {
    broken.add("r3-b");
    const id = await api.run(chain("r3"));
    await api.ended(id);
    expect(await api.post(`/v1/workflow/trigger/${id}`, { input_params: {} })).toMatchObject(
      conflict("INPUT_FIXED", id, "FAILED"),
    );
    broken.delete("r3-b");
    expect(await api.post(`/v1/workflow/trigger/${id}`)).toMatchObject({
      status: 202,
      body: { status: "RUNNING", generation: 2 },
    });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", generation: 2 });
  });
});

describe("signal", () => {
  const waiting = {
    name: "waits",
    nodes: [
      { id: "go", handler: "wait", config: { signal: "go" } },
      { id: "after", handler: "step", dependencies: ["go"], config: { got: "{{ go.output }}" } },
    ],
  };

  test("is taken by the node that waits, also if it came first", async () => {
    const id = await api.run(waiting);
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.go.status === "WAITING");
    const { body } = await api.get(`/v1/executions/${id}`);
    expect(body.nodes.go).toMatchObject({ status: "WAITING", reason: "signal", until: expect.any(String) });
    expect(await api.post(`/v1/executions/${id}/signal`, { name: "go", data: { n: 1 } })).toMatchObject({
      status: 202,
    });
    expect(await api.ended(id)).toMatchObject({ nodes: { after: { output: { got: { n: 1 } } } } });
    expect(await api.post(`/v1/executions/${id}/signal`, { name: "go" })).toMatchObject(
      conflict("ALREADY_TERMINAL", id, "COMPLETED"),
    );
    const early = (await api.post("/v1/workflow", waiting)).body.execution_id as string;
    expect((await api.post(`/v1/executions/${early}/signal`, { name: "go", data: "x".repeat(100_000) })).status).toBe(
      202,
    );
    await api.post(`/v1/workflow/trigger/${early}`);
    expect(await api.ended(early)).toMatchObject({ status: "COMPLETED", nodes: { go: { output: { $large: {} } } } });
  });

  test("at most a hundred of one name are kept", async () => {
    const { body } = await api.post("/v1/workflow", waiting);
    const path = `/v1/executions/${body.execution_id}/signal`;
    const answers = await Promise.all(Array.from({ length: 101 }, (_, i) => api.post(path, { name: "go", data: i })));
    expect(answers.filter(({ status }) => status === 202).length).toBe(100);
    const refused = answers.find(({ status }) => status !== 202)!;
    expect(refused).toMatchObject({ status: 429, body: { code: "RATE_LIMITED" } });
    expect(refused.headers.get("retry-after")).toBe("1");
  });

  test("a name is needed", async () => {
    for (const body of [{}, { name: "" }, { name: 1 }, { name: "a\u0000b" }, { name: "x".repeat(129) }]) {
      expect(await api.post("/v1/executions/x/signal", body)).toMatchObject({
        status: 400,
        body: { code: "INVALID_TYPE" },
      });
    }
  });
});

test("only what is in quarantine can be released", async () => {
  const id = await api.run(one("gate"));
  expect(await api.post(`/v1/executions/${id}/release`)).toMatchObject(conflict("NOT_QUARANTINED", id, "RUNNING"));
  await api.post(`/v1/executions/${id}/cancel`);
});

test("an unknown execution is 404 on every route", async () => {
  const absent = ["0198a000-0000-7000-8000-000000000000", "..%2f..", "a%20b", "%00", "x".repeat(200), "ünknown"];
  for (const id of absent) {
    for (const path of ["", "/events", "/explain", "/nodes", "/nodes/a", "/input", "/output", "/definition"]) {
      expect(await api.get(`/v1/executions/${id}${path}`)).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    }
    for (const command of ["cancel", "pause", "resume", "retry", "retry?dry_run=true", "release"]) {
      expect((await api.post(`/v1/executions/${id}/${command}`)).body).toMatchObject({
        status: 404,
        code: "NOT_FOUND",
      });
    }
    expect((await api.post(`/v1/executions/${id}/signal`, { name: "x" })).status).toBe(404);
    expect((await api.post(`/v1/workflow/trigger/${id}`)).status).toBe(404);
  }
});

test("nothing is written for an execution that is not there", async () => {
  const put = vi.spyOn(api.memory.records, "put");
  const large = "x".repeat(100_000);
  const absent = "0198a000-0000-7000-8000-000000000001";
  expect((await api.post(`/v1/executions/${absent}/signal`, { name: "x", data: large })).status).toBe(404);
  expect((await api.post(`/v1/executions/${absent}/retry`, { input_params: { large } })).status).toBe(404);
  expect(put).not.toHaveBeenCalled();
  put.mockRestore();
});

describe("fork", () => {
  const definition = (name: string) => ({
    name,
    on_error: "fail_branch",
    input_schema: { type: "object", properties: { big: { type: "integer" } } },
    nodes: [
      { id: "a", handler: "step", config: { n: "{{ input.n | default(1) }}", text: "x".repeat(100_000) } },
      {
        id: "b",
        handler: "fragile",
        dependencies: ["a"],
        config: { n: "{{ a.n }}", in: "{{ input.n | default(0) }}" },
      },
      { id: "c", handler: "output", dependencies: ["b"], config: { b: "{{ b }}", length: "{{ a.text | length }}" } },
    ],
  });

  test("another execution begins with what this one has completed, and this one stays as it is", async () => {
    broken.add("b");
    const id = await api.run(definition("forked"));
    await api.ended(id);
    broken.delete("b");
    const before = (await api.get(`/v1/executions/${id}`)).body;
    const { status, body } = await api.post(`/v1/executions/${id}/fork`);
    expect([status, body]).toEqual([
      201,
      { execution_id: expect.any(String) as string, status: "RUNNING", forked_from: id, kept: ["a"] },
    ]);
    const forked = await api.ended(body.execution_id);
    expect(forked).toMatchObject({
      status: "COMPLETED",
      output: { b: { n: 1, in: 0 }, length: 100_000 },
      nodes: { a: { status: "COMPLETED", attempt: 0 }, b: { status: "COMPLETED", attempt: 1 } },
    });
    expect((await api.get(`/v1/executions/${id}`)).body).toEqual(before);
  });

  test("from a node it and what comes after runs anew, with another input if one is given", async () => {
    const id = await api.run(definition("forked-from"), { n: 5 });
    await api.ended(id);
    const { body } = await api.post(`/v1/executions/${id}/fork`, { from: "b", input_params: { n: 6 } });
    expect(body.kept).toEqual(["a"]);
    expect((await api.ended(body.execution_id)).output).toMatchObject({ b: { n: 5, in: 6 } });
    const again = await api.post(`/v1/executions/${id}/fork`, { from: "a" });
    expect((await api.ended(again.body.execution_id)).nodes).toMatchObject({ a: { attempt: 1 } });
  });

  test("the same key is the same fork, and what is wrong is told", async () => {
    const id = await api.run(definition("forked-twice"));
    await api.ended(id);
    const key = { "idempotency-key": "fork" };
    const first = await api.post(`/v1/executions/${id}/fork`, { from: "b" }, key);
    expect((await api.post(`/v1/executions/${id}/fork`, { from: "b" }, key)).body).toEqual(first.body);
    expect(await api.post(`/v1/executions/${id}/fork`, { from: "c" }, key)).toMatchObject({
      status: 422,
      body: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
    const fork = (body: object) => api.post(`/v1/executions/${id}/fork`, body);
    expect(await fork({ from: "nobody" })).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    expect(await fork({ frm: "b" })).toMatchObject({ status: 400, body: { code: "UNKNOWN_FIELD" } });
    expect(await fork({ input_params: { big: "x" } })).toMatchObject({ status: 422, body: { code: "INPUT_INVALID" } });
    expect(await api.post("/v1/executions/nobody/fork", {})).toMatchObject({ status: 404 });
  });
});
