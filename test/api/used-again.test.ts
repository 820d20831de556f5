import { afterAll, beforeAll, expect, test } from "vitest";
import { TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ handlers: { step: ({ config }) => config }, retentionMs: 500 });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const header = (id: string) => api.memory.queries.header(0, `execution/${id}`);
// By what the store says: a look through the API would let it see that the first one is gone.
const isOver = async (id: string): Promise<boolean> => typeof (await header(id))?.endedAtMs === "number";
const isGone = async (id: string): Promise<boolean> => (await header(id)) === null;

test("an execution that was removed is not shown in place of the next that has its id", async () => {
  const made = (id: string): unknown => ({ id, handler: "step", config: { text: "{{ input.text }}" } });
  const reading = { id: "z", handler: "step", dependencies: ["a"], config: { size: "{{ size(a.text) }}" } };
  const definition = { name: "again", nodes: [...["a", "b", "c", "d", "e", "f"].map(made), reading] };
  const begin = async (text: string): Promise<string> => {
    const body = { definition, input_params: { text } };
    const { execution_id: id } = (await api.post("/v1/workflow?start=true", body, { "idempotency-key": "k" })).body;
    await api.eventually(() => isOver(id));
    return id;
  };
  const id = await begin("o".repeat(60_000));
  const get = async (path: string) => (await api.get(`/v1/executions/${id}${path}`)).body;
  const look = async () => ({
    at: (await get("")).created_at as string,
    past: (await get("/nodes/a")).output.text[0] as string,
    began: (await get("/events?limit=1")).items[0].at as string,
  });
  const first = await look();
  expect(first).toMatchObject({ past: "o", began: first.at });
  await api.eventually(() => isGone(id));
  expect(await begin("y".repeat(60_000))).toBe(id);
  const second = await look();
  expect(second).toMatchObject({ past: "y", began: second.at });
  expect(second.at).not.toBe(first.at);
});

test("nor is it when the first was open at the last look", async () => {
  const definition = { name: "held", nodes: [{ id: "a", handler: "step" }] };
  const submit = async (text: string): Promise<string> => {
    const body = { definition, input_params: { text } };
    return (await api.post("/v1/workflow", body, { "idempotency-key": "held" })).body.execution_id;
  };
  const id = await submit("old");
  const shown = async () => (await api.get(`/v1/executions/${id}`)).body;
  expect(await shown()).toMatchObject({ status: "PENDING", input: { text: "old" } });
  await api.eventually(() => isGone(id));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect(await submit("new")).toBe(id);
  expect(await shown()).toMatchObject({ status: "PENDING", input: { text: "new" } });
});
