import { afterAll, beforeAll, expect, test } from "vitest";
import { TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: ({ config }) => config } });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const definition = { name: "labelled", nodes: [{ id: "a", handler: "step" }] };
const found = async (query: string): Promise<string[]> => {
  const { body } = await api.get(`/v1/executions?${query}`);
  return (body.items as { execution_id: string }[]).map(({ execution_id: id }) => id);
};

test("labels come with a submit, a trigger or a start, are shown, and find the execution", async () => {
  const submitted = await api.post("/v1/workflow", { definition, labels: { env: "test", team: "a" } });
  const first = submitted.body.execution_id as string;
  expect((await api.get(`/v1/executions/${first}`)).body.labels).toEqual({ env: "test", team: "a" });
  expect(await found("label=env=test")).toEqual([first]);
  expect((await api.post(`/v1/workflow/trigger/${first}`, { labels: { env: "prod" } })).status).toBe(202);
  expect((await api.ended(first)).labels).toEqual({ env: "prod", team: "a" });
  const { body } = await api.post("/v1/workflows/labelled/executions", {
    inputs: [{}, {}],
    labels: { env: "prod", team: "b" },
  });
  const more = (body.items as { execution_id: string }[]).map(({ execution_id: id }) => id);
  for (const id of more) await api.ended(id);

  expect(await found("label=env=test")).toEqual([]);
  expect(new Set(await found("label=env=prod"))).toEqual(new Set([first, ...more]));
  expect(await found("label=env=prod,team=a")).toEqual([first]);
  expect(await found("label=team=a,env=prod&status=FAILED")).toEqual([]);
  expect(await found("label=team=a&workflow=other")).toEqual([]);
  expect(await found("label=team=a&since=2999-01-01T00:00:00Z")).toEqual([]);
  const page = await api.get("/v1/executions?label=env=prod&limit=2");
  expect(page.body.items).toHaveLength(2);
  const rest = await found(`label=env=prod&limit=2&cursor=${encodeURIComponent(page.body.next_cursor)}`);
  expect(rest).toHaveLength(1);
  expect((await api.get(`/v1/executions/${first}/events`)).body.items[0].data.labels).toEqual({
    env: "test",
    team: "a",
  });
});

test("a definition has labels for its executions, and who is called has those of its caller", async () => {
  const inner = { name: "labelled-inner", labels: { part: "inner", size: 7 }, nodes: definition.nodes };
  expect((await api.post("/v1/workflow", inner)).status).toBe(201);
  const outer = {
    name: "labelled-outer",
    labels: { part: "outer", "not one": true, list: [1] },
    nodes: [
      { id: "call", handler: "workflow", config: { name: "labelled-inner" } },
      { id: "each", handler: "map", config: { items: [1], nodes: [{ id: "in", handler: "step" }] } },
    ],
  };
  const started = await api.post("/v1/workflow?start=true", { definition: outer, labels: { customer: "c7" } });
  const id = started.body.execution_id as string;
  const { labels, nodes } = await api.ended(id);
  expect(labels).toEqual({ customer: "c7", part: "outer" });
  const child = nodes.call.child_execution_id as string;
  expect((await api.get(`/v1/executions/${child}`)).body.labels).toEqual({ customer: "c7", part: "inner", size: "7" });
  expect(await found("label=part=inner,customer=c7")).toEqual([child]);
  expect(await found("label=part=outer&workflow=labelled-outer")).toEqual([id]);
  // The graph of the map's item is an execution too.
  expect(await found("label=customer=c7")).toHaveLength(3);
});

test("a fork has the labels of the execution that it comes from", async () => {
  const wanted = {
    definition: { ...definition, name: "labelled-fork", labels: { part: "p" } },
    labels: { tree: "t1" },
  };
  const { body } = await api.post("/v1/workflow?start=true", wanted);
  await api.ended(body.execution_id as string);
  const forked = await api.post(`/v1/executions/${body.execution_id}/fork`, { from: "a" });
  const { labels } = await api.ended(forked.body.execution_id as string);
  expect(labels).toEqual({ part: "p", tree: "t1" });
  expect(new Set(await found("label=tree=t1"))).toEqual(new Set([body.execution_id, forked.body.execution_id]));
});

test("a key stands for its labels too, and what runs already keeps those it has", async () => {
  const headers = { "idempotency-key": "labelled" };
  const start = (labels: unknown) => api.post("/v1/workflows/labelled/executions", { labels }, headers);
  const { body } = await start({ n: "1" });
  expect((await start({ n: "1" })).body).toEqual(body);
  expect((await start({ n: "2" })).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
});

test.each([
  [{ "": "x" }, "/labels/"],
  [{ "a b": "x" }, "/labels/a b"],
  [{ a: "" }, "/labels/a"],
  [{ a: "x,y" }, "/labels/a"],
  [{ a: "\u0000" }, "/labels/a"],
  [{ a: 1 }, "/labels/a"],
  [["a"], "/labels"],
  [Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, "x"])), "/labels"],
])("labels %j are refused, with the place, wherever they come", async (labels, path) => {
  const envelope = await api.post("/v1/workflow", { definition, labels });
  expect(envelope).toMatchObject({ status: 400, body: { code: "INVALID_TYPE", errors: [{ path }] } });
  const started = await api.post("/v1/workflows/labelled/executions", { labels });
  expect(started).toMatchObject({ status: envelope.status, body: { code: "INVALID_TYPE", errors: [{ path }] } });
});

test.each(["env", "=x", "a=b,c", "a=", "a%00=b"])("the filter %j is refused", async (label) => {
  const answer = await api.get(`/v1/executions?label=${label}`);
  expect(answer).toMatchObject({ status: 400, body: { code: "INVALID_QUERY" } });
});

test("labels of the engine itself are nobody else's to give, and what has one all the same spoils no list", async () => {
  const labels = { "millrace/batch": "true" };
  const refused = { status: 400, body: { detail: expect.stringContaining("begin with millrace/") } };
  expect(await api.post("/v1/workflow", { definition, labels })).toMatchObject(refused);
  expect(await api.post("/v1/workflow", definition)).toMatchObject({ status: 201 });
  expect(await api.post("/v1/workflows/labelled/executions", { labels })).toMatchObject(refused);
  expect(await api.post("/v1/batches", { workflow: "labelled", items: [1], labels })).toMatchObject(refused);
  const defined = { ...definition, name: "own-labels", labels: { ...labels, team: "own" } };
  const id = await api.run(defined);
  expect((await api.get(`/v1/executions/${id}`)).body.labels).toEqual({ team: "own" });
  expect(await found("label=millrace/batch=true")).toEqual([]);
});
