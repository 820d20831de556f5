import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({
    keys: "admin:boss,reviewer:ann,reviewer:bob",
    handlers: { step: ({ config }) => config },
  });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const as = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
const form = { type: "object", required: ["total"], properties: { total: { type: "number" } } };
const config = {
  title: "Is this right?",
  form,
  values: "{{ extract.fields }}",
  confidence: "{{ extract.confidence }}",
  source: { total: "page 1" },
};
const definition = (name: string, more: object = {}) => ({
  name,
  nodes: [
    {
      id: "extract",
      handler: "step",
      config: { fields: { total: 3, who: "ann" }, confidence: { total: 0.4, who: 0.99 } },
    },
    { id: "ask", handler: "review", dependencies: ["extract"], config: { ...config, ...more } },
    {
      id: "out",
      handler: "output",
      dependencies: ["ask"],
      config: { total: "{{ ask.data.total }}", locks: "{{ ask.locks }}" },
    },
  ],
});

async function opened(name: string, more: object = {}): Promise<{ readonly id: string; readonly path: string }> {
  const { body } = await api.post("/v1/workflow?start=true", definition(name, more), as("boss"));
  const id = body.execution_id as string;
  const path = `/v1/reviews/${encodeURIComponent(`${id}:1:ask`)}`;
  await api.eventually(async () => (await api.get(path, as("ann"))).body.status === "open");
  return { id, path };
}

async function output(id: string): Promise<unknown> {
  await api.eventually(async () => (await api.get(`/v1/executions/${id}`, as("boss"))).body.status === "COMPLETED");
  return (await api.get(`/v1/executions/${id}`, as("boss"))).body.output;
}

describe("what a model proposes", () => {
  test("is shown by field, and what a person changes is locked", async () => {
    const { id, path } = await opened("corrected");
    expect((await api.get(path, as("ann"))).body).toMatchObject({
      values: { total: 3, who: "ann" },
      confidence: { total: 0.4, who: 0.99 },
      source: { total: "page 1" },
      four_eyes: false,
      first: null,
    });
    const wrong = await api.post(path, { decision: "approve", data: { total: "4" } }, as("ann"));
    expect(wrong).toMatchObject({ status: 422, body: { code: "REVIEW_INVALID", errors: [{ path: "/total" }] } });
    const data = { total: 4, who: "ann", extra: 1 };
    expect((await api.post(path, { decision: "approve", data }, as("ann"))).status).toBe(200);
    expect(await output(id)).toEqual({ total: 4, locks: ["total", "extra"] });
  });

  test("keeps its own words in the history", async () => {
    const values = { latencyMs: 5_000, dueAtMs: 1_000 };
    const { id } = await opened("worded", { values, on_due: { decision: "reject", data: { total: 0, waitedMs: 1 } } });
    const { body } = await api.get(`/v1/executions/${id}/events`, as("boss"));
    const asked = (body.items as { type: string; data: object }[]).find(({ type }) => type === "node_waiting")!;
    expect(asked.data).toMatchObject({
      wait: { for: "review", review: { values, on_due: { decision: "reject", data: { total: 0, waitedMs: 1 } } } },
    });
  });

  test("counts as it is for whoever approves without a word", async () => {
    const { id, path } = await opened("taken");
    expect((await api.post(path, { decision: "approve" }, as("ann"))).status).toBe(200);
    expect(await output(id)).toEqual({ total: 3, locks: [] });
  });

  test("too much of it fails the node", async () => {
    const { body } = await api.post(
      "/v1/workflow?start=true",
      definition("much", { source: { total: "x".repeat(70_000) } }),
      as("boss"),
    );
    await api.eventually(
      async () => (await api.get(`/v1/executions/${body.execution_id}`, as("boss"))).body.status === "FAILED",
    );
    expect((await api.get(`/v1/executions/${body.execution_id}`, as("boss"))).body.error).toMatchObject({
      code: "CONFIG_INVALID",
      node_id: "ask",
    });
  });
});

describe("four eyes", () => {
  test("the same key may not decide twice; the second person's word counts, and both are written down", async () => {
    const { id, path } = await opened("both", { four_eyes: true });
    const approve = { decision: "approve", data: { total: 4 }, comment: "a 4" };
    expect((await api.post(path, approve, as("ann"))).status).toBe(200);
    expect((await api.get(path, as("bob"))).body).toMatchObject({
      status: "open",
      four_eyes: true,
      first: { decision: "approve", data: { total: 4 }, comment: "a 4", by: expect.stringMatching(/^key-/) },
    });
    const again = await api.post(path, approve, as("ann"));
    expect(again).toMatchObject({ status: 409, body: { code: "REVIEW_SAME_PERSON", execution: { execution_id: id } } });
    expect((await api.post(path, { decision: "approve", data: { total: 5 } }, as("bob"))).status).toBe(200);
    expect(await output(id)).toEqual({ total: 5, locks: ["total"] });
    const { body } = await api.get(`/v1/executions/${id}/nodes/ask`, as("boss"));
    expect(body.output).toMatchObject({ data: { total: 5 }, first: { decision: "approve", comment: "a 4" } });
    expect(body.output.by).not.toBe(body.output.first.by);
    expect((await api.post(path, approve, as("ann"))).body.code).toBe("REVIEW_CLOSED");
  });

  test("a key that is repeated is one decision", async () => {
    const { path } = await opened("repeated", { four_eyes: true });
    const headers = { ...as("ann"), "idempotency-key": "d" };
    const first = await api.post(path, { decision: "reject" }, headers);
    expect(await api.post(path, { decision: "reject" }, headers)).toMatchObject({ status: 200, body: first.body });
  });
});

test("a review is assigned to others, who find it", async () => {
  const { path } = await opened("assigned", { assignees: ["carl"] });
  const mine = async (who: string) => (await api.get(`/v1/reviews?assignee=${who}`, as("ann"))).body.items.length;
  expect(await mine("carl")).toBe(1);
  expect((await api.post(`${path}/assign`, { assignees: ["dora", "emil"] }, as("ann"))).status).toBe(200);
  expect([await mine("carl"), await mine("dora"), await mine("emil")]).toEqual([0, 1, 1]);
  expect((await api.get(path, as("ann"))).body.assignees).toEqual(["dora", "emil"]);
  expect((await api.post(`${path}/assign`, { assignees: "dora" }, as("ann"))).status).toBe(400);
  await api.post(path, { decision: "reject" }, as("ann"));
  expect((await api.post(`${path}/assign`, { assignees: [] }, as("ann"))).body.code).toBe("REVIEW_CLOSED");
  expect(await mine("dora")).toBe(0);
});

test("what was proposed and what became of it is kept as an example", async () => {
  const { id, path } = await opened("learned");
  await api.post(path, { decision: "approve", data: { total: 9, who: "ann" }, comment: "smudge" }, as("bob"));
  await output(id);
  const { items } = (await api.get("/v1/reviews/examples?workflow=learned", as("ann"))).body;
  expect(items).toEqual([
    {
      id: `${id}:1:ask`,
      execution_id: id,
      generation: 1,
      node_id: "ask",
      workflow: "learned",
      title: "Is this right?",
      values: { total: 3, who: "ann" },
      confidence: { total: 0.4, who: 0.99 },
      source: { total: "page 1" },
      decision: "approve",
      data: { total: 9, who: "ann" },
      locks: ["total"],
      by: expect.stringMatching(/^key-/),
      at: expect.any(String),
      comment: "smudge",
    },
  ]);
  const large = { total: 1, text: "x".repeat(70_000) };
  const other = await opened("learned");
  await api.post(other.path, { decision: "approve", data: large }, as("bob"));
  await output(other.id);
  const [newest] = (await api.get("/v1/reviews/examples?workflow=learned&limit=1", as("ann"))).body.items;
  expect(newest).toMatchObject({ execution_id: other.id, data: null, data_omitted: true, locks: ["total", "text"] });
});
