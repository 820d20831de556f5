import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HandlerError } from "../../src/worker/handler.ts";
import { gate } from "../../src/engine/test-engine.ts";
import { TestApi } from "../support/api.ts";

const held = gate();
const mended = new Set<string>();
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({
    handlers: {
      step: ({ config }) => config,
      gate: held.handler,
      fragile: ({ nodeId, config }) => {
        if (mended.has(nodeId)) return config;
        const retryable = (config as { retryable?: boolean }).retryable === true;
        throw new HandlerError("BROKEN", `no ${nodeId}`, { retryable });
      },
    },
  });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const failing = (name: string, more: object = {}) => ({
  name,
  on_error: "fail_branch",
  nodes: [
    { id: `${name}-x`, handler: "fragile", ...more },
    { id: `${name}-y`, handler: "fragile", config: { retryable: true }, retry: { max_attempts: 1 } },
    { id: `${name}-after`, handler: "step", dependencies: [`${name}-x`] },
  ],
});
const letters = async (query: string): Promise<Record<string, never>[]> =>
  (await api.get(`/v1/dlq?${query}`)).body.items as never;

describe("dead letters", () => {
  test("one for each node that failed by its own fault, as the contract shows it", async () => {
    const id = await api.run(failing("d1"));
    expect(await api.ended(id)).toMatchObject({ status: "FAILED" });
    const found = await letters(`execution_id=${id}`);
    expect(found.length).toBe(2);
    const letter = found.find((one) => one["node_id"] === "d1-x")!;
    expect(Object.keys(letter).sort()).toEqual(
      `attempts class config error execution_id generation handler id node_id original_message_id queue rejected_at
       status`.split(/\s+/),
    );
    expect(letter).toMatchObject({
      class: "poison",
      queue: "fragile",
      execution_id: id,
      generation: 1,
      handler: "fragile",
      attempts: 1,
      error: { code: "BROKEN", message: "no d1-x", retryable: false },
      original_message_id: `${id}:1:d1-x:1`,
      status: "open",
    });
    expect(found.find((one) => one["node_id"] === "d1-y")).toMatchObject({ class: "exhausted" });
    expect((await api.get(`/v1/dlq/${encodeURIComponent(letter["id"]!)}`)).body).toEqual(letter);
    expect((await letters(`execution_id=${id}&class=poison`)).length).toBe(1);
    expect((await letters(`execution_id=${id}&queue=fragile&limit=1`)).length).toBe(1);
    expect(await letters("execution_id=..")).toEqual([]);
    expect(await letters("queue=nobody")).toEqual([]);
    for (const query of ["class=x", "status=done", "limit=0", "foo=1"]) {
      expect((await api.get(`/v1/dlq?${query}`)).body).toMatchObject({ status: 400, code: "INVALID_QUERY" });
    }
  });

  test("a replay opens that node again in a new generation, and what came after it; once", async () => {
    const id = await api.run(failing("d2"));
    await api.ended(id);
    const [letter] = (await letters(`execution_id=${id}`)).filter((one) => one["node_id"] === "d2-x");
    const path = `/v1/dlq/${encodeURIComponent(letter!["id"]!)}`;
    mended.add("d2-x");
    expect(await api.post(`${path}/retry`)).toMatchObject({ status: 202, body: { execution_id: id, generation: 2 } });
    expect(await api.ended(id)).toMatchObject({
      status: "PARTIAL",
      nodes: { "d2-x": { status: "COMPLETED" }, "d2-after": { status: "COMPLETED" }, "d2-y": { status: "FAILED" } },
    });
    expect((await api.get(path)).body).toEqual({ ...letter, status: "replayed" });
    expect(await api.post(`${path}/retry`)).toMatchObject({ status: 409, body: { code: "ALREADY_REPLAYED" } });
    expect((await letters(`execution_id=${id}&status=open`)).map((one) => one["node_id"])).toEqual(["d2-y"]);
  });

  test("what a retry of the execution has run again is open no more, though it failed again: that left its own", async () => {
    const id = await api.run(failing("d7"));
    await api.ended(id);
    expect((await api.post(`/v1/executions/${id}/retry`)).status).toBe(202);
    await api.ended(id);
    const statuses = async (query: string): Promise<Record<string, string>> =>
      Object.fromEntries((await letters(`execution_id=${id}${query}`)).map((one) => [one["id"], one["status"]]));
    const open = { [`${id}:2:d7-x`]: "open", [`${id}:2:d7-y`]: "open" };
    expect(await statuses("")).toEqual({ ...open, [`${id}:1:d7-x`]: "replayed", [`${id}:1:d7-y`]: "replayed" });
    expect(await statuses("&status=open")).toEqual(open);
    const all = { filter: { execution_id: id } };
    const key = { "idempotency-key": `dry ${id}` };
    expect((await api.post("/v1/dlq/retry", { ...all, dry_run: true }, key)).body).toEqual({ count: 2 });
    expect(await api.post("/v1/dlq/retry", all, key)).toMatchObject({ body: { code: "IDEMPOTENCY_KEY_REUSED" } });
    const path = `/v1/dlq/${encodeURIComponent(`${id}:1:d7-x`)}`;
    expect(await api.post(`${path}/retry`)).toMatchObject({ status: 409, body: { code: "ALREADY_REPLAYED" } });
    expect((await api.post("/v1/dlq/retry", all)).body).toEqual({ count: 2 });
    expect((await api.ended(id))["generation"]).toBe(3);
  });

  test("what a retry of the execution has opened again is open no more, and what it has not is", async () => {
    const definition = failing("d6");
    const map = { items: [1, 2], handler: "fragile", tolerated_failures: 2 };
    const id = await api.run({
      ...definition,
      nodes: [...definition.nodes, { id: "d6-m", handler: "map", config: map }],
    });
    await api.ended(id);
    const statuses = async (query = ""): Promise<Record<string, string>> =>
      Object.fromEntries((await letters(`execution_id=${id}${query}`)).map((one) => [one["id"], one["status"]]));
    const all = ["d6-x", "d6-y", "d6-m[0]", "d6-m[1]"].map((node) => `${id}:1:${node}`);
    expect(await statuses("&status=open")).toEqual(Object.fromEntries(all.map((one) => [one, "open"])));
    mended.add("d6-x").add("d6-m");
    const from = async (node: string): Promise<void> => {
      expect((await api.post(`/v1/executions/${id}/retry`, { from: node })).status).toBe(202);
      await api.ended(id);
    };
    await from("d6-x");
    expect(await statuses("&status=replayed")).toEqual({ [`${id}:1:d6-x`]: "replayed" });
    expect((await api.get(`/v1/dlq/${encodeURIComponent(`${id}:1:d6-x`)}`)).body.status).toBe("replayed");
    expect(await api.post("/v1/dlq/retry", { filter: { execution_id: id }, dry_run: true })).toMatchObject({
      body: { count: 3 },
    });
    await from("d6-m");
    expect(await statuses()).toEqual({
      [`${id}:1:d6-x`]: "replayed",
      [`${id}:1:d6-y`]: "open",
      [`${id}:1:d6-m[0]`]: "replayed",
      [`${id}:1:d6-m[1]`]: "replayed",
    });
  });

  test("a replay may change the config of its node, which is checked like any other", async () => {
    const definition = { name: "d9", nodes: [{ id: "d9-x", handler: "fragile", config: { a: 1 } }] };
    const id = await api.run(definition);
    await api.ended(id);
    const [letter] = await letters(`execution_id=${id}`);
    const path = `/v1/dlq/${encodeURIComponent(letter!["id"]!)}/retry`;
    const wrong = await api.post(path, { config: { a: "{{ nobody.x }}" } });
    expect(wrong).toMatchObject({ status: 422, body: { code: "INVALID_DEFINITION" } });
    expect(wrong.body.errors[0]).toMatchObject({ code: "TEMPLATE_UNKNOWN_NODE", path: "/config/a" });
    expect(await api.post(path, { config: { a: 2 } })).toMatchObject({ status: 202, body: { generation: 2 } });
    await api.ended(id);
    const open = await letters(`execution_id=${id}&status=open`);
    expect(open.map((one) => one["config"])).toEqual([{ a: 2 }]);
  });

  test("a replay needs an execution that is over", async () => {
    const definition = failing("d3");
    const id = await api.run({ ...definition, nodes: [...definition.nodes, { id: "d3-open", handler: "gate" }] });
    await api.eventually(async () => (await letters(`execution_id=${id}`)).length === 2);
    const [letter] = await letters(`execution_id=${id}`);
    expect(await api.post(`/v1/dlq/${encodeURIComponent(letter!["id"]!)}/retry`)).toMatchObject({
      status: 409,
      body: { code: "EXECUTION_OPEN", execution: { execution_id: id, status: "RUNNING" } },
    });
    await api.post(`/v1/executions/${id}/cancel`);
  });

  test("a letter is thrown away by its owner", async () => {
    const id = await api.run(failing("d4"));
    await api.ended(id);
    const [letter] = await letters(`execution_id=${id}`);
    const path = `/v1/dlq/${encodeURIComponent(letter!["id"]!)}`;
    expect((await api.delete(path)).status).toBe(204);
    for (const answer of [await api.get(path), await api.delete(path), await api.post(`${path}/retry`)]) {
      expect(answer).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    }
    expect((await api.get("/v1/dlq/a%00b")).status).toBe(404);
  });

  test("many are replayed at once, those of one execution in one generation", async () => {
    const ids = [await api.run(failing("d5")), await api.run(failing("d5"))];
    for (const id of ids) await api.ended(id);
    const filter = { execution_id: ids[0] };
    expect(await api.post("/v1/dlq/retry", { filter, dry_run: true })).toMatchObject({
      status: 202,
      body: { count: 2 },
    });
    expect(await api.post("/v1/dlq/retry", { filter, limit: 1, dry_run: true })).toMatchObject({ body: { count: 1 } });
    mended.add("d5-x").add("d5-y");
    expect(await api.post("/v1/dlq/retry", { filter })).toMatchObject({ status: 202, body: { count: 2 } });
    expect(await api.ended(ids[0]!)).toMatchObject({ status: "COMPLETED", generation: 2 });
    expect(await api.post("/v1/dlq/retry", { filter })).toMatchObject({ body: { count: 0 } });
    expect((await api.get(`/v1/executions/${ids[1]}`)).body.generation).toBe(1);
    const key = { "idempotency-key": "replay" };
    const other = { filter: { execution_id: ids[1] } };
    const replay = async (): Promise<unknown> => (await api.post("/v1/dlq/retry", other, key)).body;
    expect(await Promise.all([replay(), replay(), replay()])).toEqual([{ count: 2 }, { count: 2 }, { count: 2 }]);
    expect(await replay()).toEqual({ count: 2 });
    expect((await api.ended(ids[1]!))["generation"]).toBe(2);
    expect((await api.post("/v1/dlq/retry", { filter }, key)).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
    for (const body of [{ filter: { state: "x" } }, { limits: 1 }]) {
      expect((await api.post("/v1/dlq/retry", body)).body).toMatchObject({ code: "UNKNOWN_FIELD" });
    }
    expect((await api.post("/v1/dlq/retry", { limit: 0 })).body).toMatchObject({ code: "INVALID_TYPE" });
  });
});

describe("reviews", () => {
  const form = { type: "object", required: ["ok"], properties: { ok: { type: "boolean" } } };
  const reviewed = (name: string) => ({
    name,
    nodes: [
      { id: "ask", handler: "review", config: { title: "Pay?", form, assignees: ["ada"] } },
      { id: "next", handler: "step", dependencies: ["ask"], config: { was: "{{ ask.decision }}" } },
    ],
  });
  const open = async (id: string): Promise<string> => {
    let found: string | undefined;
    await api.eventually(async () => {
      const { body } = await api.get("/v1/reviews?limit=500");
      found = body.items.find((item: { execution_id: string }) => item.execution_id === id)?.id;
      return found !== undefined;
    });
    return found!;
  };

  test("are listed while they are open, and lead to their execution", async () => {
    const id = await api.run(reviewed("v1"));
    const review = await open(id);
    const path = `/v1/reviews/${encodeURIComponent(review)}`;
    expect((await api.get(path)).body).toMatchObject({
      id: review,
      status: "open",
      execution_id: id,
      node_id: "ask",
      workflow: "v1",
      title: "Pay?",
      form,
      assignees: ["ada"],
      opened_at: expect.any(String),
      due_at: expect.any(String),
    });
    expect((await api.get(`/v1/executions/${id}`)).body.nodes.ask).toMatchObject({
      status: "WAITING",
      reason: "review",
    });
    expect(await api.post(path, { decision: "approve", data: { ok: "yes" } })).toMatchObject({
      status: 422,
      body: { code: "REVIEW_INVALID", errors: [{ path: "/ok", message: expect.any(String) }] },
    });
    const answers = await Promise.all([
      api.post(path, { decision: "approve", data: { ok: true }, comment: "fine" }),
      api.post(path, { decision: "reject", data: { ok: false } }),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect(answers.find(({ status }) => status === 409)!.body).toMatchObject({ code: "REVIEW_CLOSED" });
    const body = await api.ended(id);
    const won = answers[0].status === 200 ? "approve" : "reject";
    expect(body).toMatchObject({
      status: "COMPLETED",
      nodes: {
        ask: { output: { decision: won, by: "local", at: expect.any(String) } },
        next: { output: { was: won } },
      },
    });
    expect((await api.get(path)).body).toMatchObject({ status: "closed", execution_id: id });
    expect((await api.get("/v1/reviews?limit=500")).body.items.some((item: { id: string }) => item.id === review)).toBe(
      false,
    );
    expect(await api.post(path, { decision: "approve", data: { ok: true } })).toMatchObject({
      status: 409,
      body: { code: "REVIEW_CLOSED", execution: { execution_id: id } },
    });
  });

  test("with a key the same decision is one, and another is refused", async () => {
    const id = await api.run(reviewed("v2"));
    const path = `/v1/reviews/${encodeURIComponent(await open(id))}`;
    const key = { "idempotency-key": "decide" };
    const decision = { decision: "approve", data: { ok: true } };
    const first = await api.post(path, decision, key);
    expect(first.status).toBe(200);
    expect(await api.post(path, decision, key)).toMatchObject({ status: 200, body: first.body });
    expect((await api.post(path, { decision: "reject", data: { ok: true } }, key)).body).toMatchObject({
      code: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  test("there is none before somebody is asked", async () => {
    const id = await api.run({
      name: "asked-later",
      nodes: [
        { id: "w", handler: "wait", config: { signal: "go" } },
        { id: "r", handler: "review", dependencies: ["w"], config: {} },
      ],
    });
    const path = `/v1/reviews/${id}:1:r`;
    expect(await api.get(path)).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    expect(await api.post(path, { decision: "approve" })).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
    await api.post(`/v1/executions/${id}/signal`, { name: "go" });
    await api.eventually(async () => (await api.get(path)).body.status === "open");
    expect((await api.post(path, { decision: "approve" })).status).toBe(200);
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED" });
  });

  test("an id that leads nowhere is 404, a body that says nothing 400", async () => {
    const id = await api.run(reviewed("v3"));
    await open(id);
    for (const bad of ["x", `${id}:1:nobody`, `${id}:1:next`, `${id}:2:ask`, "nobody:1:ask", `${id}:0:ask`, "%00"]) {
      for (const answer of [
        await api.get(`/v1/reviews/${bad}`),
        await api.post(`/v1/reviews/${bad}`, { decision: "approve" }),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } });
      }
    }
    for (const body of [{}, { decision: "maybe" }, { decision: "approve", comment: 1 }]) {
      expect((await api.post(`/v1/reviews/${id}:1:ask`, body)).body).toMatchObject({
        status: 400,
        code: "INVALID_TYPE",
      });
    }
    expect((await api.post(`/v1/reviews/${id}:1:ask`, { decision: "approve", who: "me" })).body.code).toBe(
      "UNKNOWN_FIELD",
    );
  });
});

describe("workflows", () => {
  const graph = {
    name: "graph",
    nodes: [
      { id: "a", handler: "step" },
      { id: "b", handler: "step" },
      { id: "c", handler: "step", dependencies: ["a", "b"] },
      { id: "d", handler: "step", dependencies: ["a"] },
      { id: "e", handler: "gate", dependencies: ["c", "d"] },
    ],
  };

  test("show their shape, and every version", async () => {
    const first = (await api.post("/v1/workflow", graph)).body;
    const second = (await api.post("/v1/workflow", { ...graph, description: "x" })).body;
    const { body } = await api.get("/v1/workflows/graph");
    expect(body).toMatchObject({
      name: "graph",
      version: 2,
      workflow_definition_id: second.workflow_definition_id,
      entry_points: ["a", "b"],
      terminal_points: ["e"],
      levels: [["a", "b"], ["c", "d"], ["e"]],
      definition: { name: "graph", description: "x", nodes: expect.any(Array) },
    });
    expect((await api.get("/v1/workflows/graph/versions")).body).toEqual({
      items: [
        { name: "graph", version: 2, workflow_definition_id: second.workflow_definition_id },
        { name: "graph", version: 1, workflow_definition_id: first.workflow_definition_id },
      ],
      next_cursor: null,
    });
    const newest = (await api.get("/v1/workflows/graph/versions?limit=1")).body;
    expect(newest).toMatchObject({ items: [{ version: 2 }], next_cursor: expect.any(String) });
    const cursor = encodeURIComponent(newest.next_cursor as string);
    expect((await api.get(`/v1/workflows/graph/versions?limit=1&cursor=${cursor}`)).body).toMatchObject({
      items: [{ version: 1 }],
      next_cursor: null,
    });
    for (const version of ["1", first.workflow_definition_id]) {
      expect((await api.get(`/v1/workflows/graph/versions/${version}`)).body).toMatchObject({ version: 1 });
    }
    for (const version of ["3", "0", "-1", "x", "1.0", "f".repeat(64)]) {
      expect((await api.get(`/v1/workflows/graph/versions/${version}`)).status).toBe(404);
    }
    const list = (await api.get("/v1/workflows?limit=500")).body.items as { name: string }[];
    expect(list).toContainEqual({ name: "graph", version: 2, workflow_definition_id: second.workflow_definition_id });
    expect(list.map(({ name }) => name)).toEqual(list.map(({ name }) => name).sort());
    const page = (await api.get("/v1/workflows?limit=1")).body;
    const next = (await api.get(`/v1/workflows?limit=1&cursor=${encodeURIComponent(page.next_cursor as string)}`)).body;
    expect(next.items[0].name > page.items[0].name).toBe(true);
  });

  test("a definition can be stored without an execution", async () => {
    const definition = { ...graph, name: "stored" };
    const { status, body } = await api.post("/v1/workflows", definition);
    expect({ status, body }).toMatchObject({ status: 201, body: { name: "stored", version: 1 } });
    expect(body.execution_id).toBeUndefined();
    expect((await api.get("/v1/executions?workflow=stored")).body.items).toEqual([]);
    expect((await api.get("/v1/workflows/stored")).body.version).toBe(1);
    expect((await api.post("/v1/workflows", { name: "bad", nodes: [] })).body.code).toBe("INVALID_DEFINITION");
    expect((await api.post("/v1/workflows", { definition, extra: 1 })).body.code).toBe("UNKNOWN_FIELD");
  });

  test("a name can be deleted once none of its executions is open; then it begins anew", async () => {
    const definition = { ...graph, name: "deleted" };
    const { body } = await api.post("/v1/workflow", definition);
    const id = body.execution_id as string;
    expect(await api.delete("/v1/workflows/deleted")).toMatchObject({
      status: 409,
      body: { code: "EXECUTION_OPEN", execution: { execution_id: id, status: "PENDING" } },
    });
    await api.post(`/v1/executions/${id}/cancel`);
    expect((await api.delete("/v1/workflows/deleted")).status).toBe(204);
    expect((await api.get("/v1/workflows/deleted")).status).toBe(404);
    expect((await api.get("/v1/workflows/deleted/versions")).status).toBe(404);
    expect((await api.delete("/v1/workflows/deleted")).status).toBe(404);
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({ status: "CANCELLED", nodes: { a: {} } });
    const { body: stored } = await api.get(`/v1/executions/${id}/definition`);
    expect(stored).toMatchObject({ name: "deleted", nodes: graph.nodes });
    expect((await api.post("/v1/workflow", { ...definition, description: "other" })).body.version).toBe(2);
    expect((await api.post("/v1/workflow", definition)).body.version).toBe(1);
  });
});
