import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HandlerError } from "../../src/worker/handler.ts";
import { gate } from "../../src/engine/test-engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { TestApi } from "../support/api.ts";

const held = gate();
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({
    handlers: {
      step: ({ config }) => config,
      gate: held.handler,
      big: ({ config }) => ({ text: "x".repeat((config as { bytes: number }).bytes) }),
      flaky: ({ attempt }) => {
        if (attempt === 1) throw new HandlerError("SHAKY", "not yet", { retryable: true, details: { n: 1 } });
        return { attempt };
      },
    },
  });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("an execution", () => {
  test("shows what the contract says, for each node and as a whole", async () => {
    const id = await api.run({ name: "shape", nodes: [{ id: "a", handler: "step", config: { x: 1 } }] });
    const body = await api.ended(id);
    expect(Object.keys(body).sort()).toEqual(
      `created_at error execution_id finished_at generation input labels nodes output seq started_at status version workflow
       workflow_definition_id`.split(/\s+/),
    );
    expect(Object.keys(body.nodes.a).sort()).toEqual(
      `attempt child_execution_id deliveries error finished_at output queued_at reason started_at status until
       usage`.split(/\s+/),
    );
    for (const time of [body.created_at, body.started_at, body.finished_at, body.nodes.a.queued_at]) {
      expect(time).toMatch(ISO);
    }
    expect(body).toMatchObject({ input: {}, error: null, output: { a: { x: 1 } }, seq: expect.any(Number) });
  });

  test("between attempts it waits, and shows the error of the one that failed", async () => {
    const id = await api.run({
      name: "flaky",
      nodes: [{ id: "a", handler: "flaky", retry: { max_attempts: 3, base_delay_seconds: 0.4, jitter: 0 } }],
    });
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.a.status === "WAITING");
    expect((await api.get(`/v1/executions/${id}`)).body.nodes.a).toMatchObject({
      status: "WAITING",
      reason: "retry",
      attempt: 1,
      until: expect.stringMatching(ISO),
      error: { code: "SHAKY", message: "not yet", retryable: true, details: { n: 1 } },
    });
    expect((await api.get(`/v1/executions/${id}/explain`)).body).toMatchObject({
      items: [{ node_id: "a", reason: "retry", until: expect.stringMatching(ISO), details: { attempt: 1 } }],
      next_cursor: null,
    });
    expect(await api.ended(id)).toMatchObject({ nodes: { a: { status: "COMPLETED", attempt: 2, error: null } } });
    expect((await api.get(`/v1/executions/${id}/explain`)).body.items).toEqual([]);
  });

  test("a payload over 64 KiB is shown by name, and given whole by its own address", async () => {
    const input = { blob: "y".repeat(70_000) };
    const id = await api.run(
      {
        name: "large",
        nodes: [
          { id: "a.b#c", handler: "big", config: { bytes: 100_000 } },
          { id: "s", handler: "step" },
        ],
      },
      input,
    );
    const body = await api.ended(id);
    const text = JSON.stringify({ text: "x".repeat(100_000) });
    const large = {
      bytes: text.length,
      sha256: createHash("sha256").update(text).digest("hex"),
      href: `/v1/executions/${id}/nodes/a.b%23c`,
    };
    expect(body.nodes["a.b#c"].output).toEqual({ $large: large });
    expect(body.output).toEqual({ "a.b#c": { $large: large }, s: {} });
    expect(body.input.$large).toMatchObject({ href: `/v1/executions/${id}/input` });
    expect((await api.get(large.href)).body).toMatchObject({ node_id: "a.b#c", output: { text: "x".repeat(100_000) } });
    expect((await api.get(body.input.$large.href)).body).toEqual(input);
    expect((await api.get(`/v1/executions/${id}/output`)).body).toEqual({ "a.b#c": JSON.parse(text), s: {} });
    expect((await api.get(`/v1/executions/${id}/nodes/nobody`)).status).toBe(404);
  });

  test("the payloads of one answer are at most 1 MiB together; the largest go first", async () => {
    const sizes = Array.from({ length: 40 }, (_, i) => 30_000 + i);
    const nodes = sizes.map((bytes, i) => ({ id: `n${i}`, handler: "big", config: { bytes } }));
    const id = await api.run({
      name: "many-large",
      nodes: [...nodes, { id: "join", handler: "step", dependencies: nodes.map((node) => node.id) }],
    });
    const body = await api.ended(id);
    const shown = sizes.filter((_, i) => body.nodes[`n${i}`].output.$large === undefined);
    expect(shown.length).toBeGreaterThan(30);
    expect(shown.length).toBeLessThan(36);
    // The smallest ones are there.
    expect(shown).toEqual(sizes.slice(0, shown.length));
    const { $large } = body.nodes.n39.output;
    const node = (await api.get($large.href)).body;
    expect(createHash("sha256").update(JSON.stringify(node.output)).digest("hex")).toBe($large.sha256);
    const page = await api.get(`/v1/executions/${id}/nodes?limit=500`);
    expect(page.body.items.length).toBe(41);
    expect(Buffer.byteLength(JSON.stringify(page.body))).toBeLessThan(1_200_000);
  });

  test("the nodes of an execution can be listed by state", async () => {
    const id = await api.run({
      name: "states",
      nodes: [
        { id: "x", handler: "step" },
        { id: "y", handler: "gate", dependencies: ["x"] },
        { id: "z", handler: "step", dependencies: ["y"] },
      ],
    });
    await api.eventually(async () => (await api.get(`/v1/executions/${id}`)).body.nodes.y.status === "RUNNING");
    const names = async (query: string): Promise<string[]> =>
      (await api.get(`/v1/executions/${id}/nodes${query}`)).body.items.map((node: { node_id: string }) => node.node_id);
    expect(await names("")).toEqual(["x", "y", "z"]);
    expect(await names("?status=COMPLETED")).toEqual(["x"]);
    expect(await names("?status=RUNNING")).toEqual(["y"]);
    expect(await names("?status=FAILED")).toEqual([]);
    expect((await api.get(`/v1/executions/${id}/nodes?status=DONE`)).body).toMatchObject({ code: "INVALID_QUERY" });
    expect((await api.get(`/v1/executions/${id}/explain`)).body.items).toMatchObject([
      { node_id: "y", reason: "running" },
      { node_id: "z", reason: "parents", details: { missing: ["y"] } },
    ]);
    expect((await api.get(`/v1/executions/${id}/explain?node=nobody`)).status).toBe(404);
    await api.post(`/v1/executions/${id}/cancel`);
  });

  test("items of a map are nodes of their own, and counted on theirs", async () => {
    const id = await api.run({
      name: "map",
      nodes: [{ id: "m", handler: "map", config: { items: [1, 2, 3], handler: "step", config: { n: "{{ item }}" } } }],
    });
    expect(await api.ended(id)).toMatchObject({
      status: "COMPLETED",
      nodes: { m: { items: { total: 3, completed: 3, failed: 0 }, output: [{ n: 1 }, { n: 2 }, { n: 3 }] } },
    });
    expect((await api.get(`/v1/executions/${id}/nodes/m%5B1%5D`)).body).toMatchObject({
      node_id: "m[1]",
      output: { n: 2 },
    });
  });

  test("items of a map in parts are found in these, by the number they have in the whole", async () => {
    const config = {
      items: Array.from({ length: 1_002 }, (_, n) => n),
      handler: "output",
      config: { n: "{{ item }}" },
    };
    const id = await api.run({ name: "large", nodes: [{ id: "m", handler: "map", config }] });
    expect(await api.ended(id)).toMatchObject({ status: "COMPLETED" });
    const shown = (name: string) => api.get(`/v1/executions/${id}/nodes/${encodeURIComponent(name)}`);
    expect((await shown("m[500]")).body).toMatchObject({ node_id: "m[500]", status: "COMPLETED", output: { n: 500 } });
    expect((await shown("m[1001]")).body).toMatchObject({ node_id: "m[1001]", output: { n: 1_001 } });
    expect((await shown("m[1002]")).status).toBe(404);
    // The parts have the first numbers, as in the events of the execution.
    expect((await shown("m[1]")).body).toMatchObject({ node_id: "m[1]", output: { m: [{ n: 1_000 }, { n: 1_001 }] } });
  });

  test("keys that reach into prototypes are data like any other", async () => {
    const body =
      '{"definition":{"name":"proto","nodes":[{"id":"a","handler":"step"}]},"input_params":{"__proto__":{"x":1},"constructor":{"prototype":2}}}';
    const { status, body: answer } = await api.post("/v1/workflow?start=true", body);
    expect(status).toBe(201);
    const read = await fetch(`${api.url}/v1/executions/${answer.execution_id}/input`);
    expect(await read.text()).toBe('{"__proto__":{"x":1},"constructor":{"prototype":2}}');
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe("lists", () => {
  test("newest first, page by page, each once", async () => {
    const nodes = [{ id: "a", handler: "step" }];
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.push(await api.run({ name: "listed", nodes }));
    const found: string[] = [];
    let cursor: string | null = null;
    do {
      const more: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { status, body } = await api.get(`/v1/executions?workflow=listed&limit=3${more}`);
      expect(status).toBe(200);
      found.push(...body.items.map((item: { execution_id: string }) => item.execution_id));
      cursor = body.next_cursor as string | null;
    } while (cursor !== null);
    expect(found.sort()).toEqual([...ids].sort());
    for (const id of ids) await api.ended(id);
    const { body } = await api.get("/v1/executions?workflow=listed&status=COMPLETED");
    expect(body.items.length).toBe(7);
    expect(body.items[0]).toMatchObject({
      workflow: "listed",
      status: "COMPLETED",
      finished_at: expect.stringMatching(ISO),
    });
    const times: string[] = body.items.map((item: { created_at: string }) => item.created_at);
    expect(times).toEqual([...times].sort().reverse());
    expect((await api.get("/v1/executions?workflow=listed&status=FAILED")).body.items).toEqual([]);
    expect((await api.get("/v1/executions?workflow=nobody")).body).toEqual({ items: [], next_cursor: null });
    expect((await api.get("/v1/executions?since=2100-01-01T00:00:00Z")).body.items).toEqual([]);
    expect((await api.get("/v1/executions?since=2020-01-01T00:00:00.000Z&workflow=listed")).body.items.length).toBe(7);
  });

  test("a filter finds what is rare among much", async () => {
    const id = await api.run({ name: "listed", nodes: [{ id: "a", handler: "gate" }] });
    await api.post(`/v1/executions/${id}/cancel`);
    expect((await api.get("/v1/executions?workflow=listed&status=CANCELLED&limit=1")).body.items).toMatchObject([
      { execution_id: id },
    ]);
  });

  test.each([
    ["limit=0", "INVALID_QUERY"],
    ["limit=501", "INVALID_QUERY"],
    ["limit=-1", "INVALID_QUERY"],
    ["limit=1e2", "INVALID_QUERY"],
    ["limit=", "INVALID_QUERY"],
    ["limit=5&limit=6", "INVALID_QUERY"],
    ["status=running", "INVALID_QUERY"],
    ["status=DONE", "INVALID_QUERY"],
    ["since=yesterday", "INVALID_QUERY"],
    ["sort=name", "INVALID_QUERY"],
    ["workflow=a%00b", "INVALID_QUERY"],
    ["cursor=", "INVALID_CURSOR"],
    ["cursor=abc", "INVALID_CURSOR"],
    ["cursor=abc.def", "INVALID_CURSOR"],
    [`cursor=${"x".repeat(5000)}`, "INVALID_CURSOR"],
    ["token=abc", "CREDENTIAL_IN_URL"],
  ])("?%s is refused with %s", async (query, code) => {
    expect(await api.get(`/v1/executions?${query}`)).toMatchObject({ status: 400, body: { code } });
  });

  test("what explains an execution is whole, or page by page", async () => {
    const nodes = ["a", "b", "c"].map((id) => ({ id, handler: "step" }));
    const path = `/v1/executions/${(await api.post("/v1/workflow", { name: "held", nodes })).body.execution_id}/explain`;
    expect((await api.get(path)).body).toMatchObject({
      items: [{ node_id: "a", reason: "held" }, { node_id: "b" }, { node_id: "c" }],
      next_cursor: null,
    });
    const { body } = await api.get(`${path}?limit=2`);
    expect(body).toMatchObject({ items: [{ node_id: "a" }, { node_id: "b" }], next_cursor: expect.any(String) });
    const rest = await api.get(`${path}?limit=2&cursor=${encodeURIComponent(body.next_cursor as string)}`);
    expect(rest.body).toMatchObject({ items: [{ node_id: "c" }], next_cursor: null });
    expect((await api.get(`${path}?limit=501`)).body.code).toBe("INVALID_QUERY");
    expect((await api.get(`${path}?cursor=x`)).body.code).toBe("INVALID_CURSOR");
  });

  test("a cursor is good for the list and the filters it was given out for", async () => {
    const { body } = await api.get("/v1/executions?limit=1");
    expect(body.next_cursor).toEqual(expect.any(String));
    const cursor = encodeURIComponent(body.next_cursor as string);
    expect((await api.get(`/v1/executions?limit=5&cursor=${cursor}`)).status).toBe(200);
    expect((await api.get(`/v1/executions?workflow=listed&cursor=${cursor}`)).body.code).toBe("INVALID_CURSOR");
    expect((await api.get(`/v1/dlq?cursor=${cursor}`)).body.code).toBe("INVALID_CURSOR");
    const sealed = body.next_cursor as string;
    const forged = sealed.slice(0, -1) + (sealed.endsWith("A") ? "B" : "A");
    expect((await api.get(`/v1/executions?cursor=${encodeURIComponent(forged)}`)).body.code).toBe("INVALID_CURSOR");
  });
});

test("two processes over one store read what the other has committed, and take each other's cursors", async () => {
  const memory = openMemory({ host: nodeHost });
  const first = await TestApi.start({ memory, handlers: { step: () => 1 } });
  const second = await TestApi.start({ memory, engine: false, known: ["step"] });
  try {
    const definition = { name: "shared", nodes: [{ id: "a", handler: "step" }] };
    for (let i = 0; i < 20; i++) {
      const { body } = await second.post("/v1/workflow", definition);
      expect((await first.get(`/v1/executions/${body.execution_id}`)).status).toBe(200);
      expect((await first.post(`/v1/workflow/trigger/${body.execution_id}`)).status).toBe(202);
      const read = await second.get(`/v1/executions/${body.execution_id}`);
      expect(["RUNNING", "COMPLETED"]).toContain(read.body.status);
    }
    const { body } = await first.get("/v1/executions?limit=3");
    const next = await second.get(`/v1/executions?limit=3&cursor=${encodeURIComponent(body.next_cursor as string)}`);
    expect(next.body.items.length).toBe(3);
  } finally {
    await second.close();
    await first.close();
    await memory.close();
  }
});

test("a read never goes back, however many ask while it runs", async () => {
  const nodes = Array.from({ length: 60 }, (_, i) => ({
    id: `n${i}`,
    handler: "step",
    dependencies: i === 0 ? [] : [`n${i - 1}`],
  }));
  const id = await api.run({ name: "watched", nodes });
  const watch = async (): Promise<void> => {
    let seq = 0;
    for (;;) {
      const { body } = await api.get(`/v1/executions/${id}`);
      expect(body.seq).toBeGreaterThanOrEqual(seq);
      ({ seq } = body as { seq: number });
      if (body.status === "COMPLETED") return;
    }
  };
  await Promise.all([watch(), watch(), watch(), watch()]);
});
