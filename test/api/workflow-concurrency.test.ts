import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeHost } from "../../src/host/node-host.ts";
import { TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

let count = 0;
const unique = (name: string): string => `${name}-${++count}`;

async function run(name: string, concurrency: object, input: object = {}): Promise<string> {
  const nodes = [{ id: "a", handler: name }];
  const body = { definition: { name, nodes, concurrency }, input_params: input };
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", body);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function lease(handler: string, max = 10): Promise<{ token: string; execution_id: string }[]> {
  const asked = { worker_id: "w1", handlers: [handler], max, wait_ms: 5_000 };
  return (await api.post("/v1/tasks/lease", asked)).body.tasks;
}

const read = async (id: string) => (await api.get(`/v1/executions/${id}`)).body;

async function until(
  id: string,
  fits: (shown: { status: string; nodes: { a: { status: string; reason: string } } }) => boolean,
) {
  for (;;) {
    const shown = await read(id);
    if (fits(shown)) return shown;
    await nodeHost.sleep(10);
  }
}

const isWaiting = ({ nodes }: { nodes: { a: { status: string; reason: string } } }): boolean =>
  nodes.a.status === "WAITING" && nodes.a.reason === "concurrency";

describe("a limit of executions", () => {
  test("lets the next one run when the one before has ended, and says how many come before it", async () => {
    const name = unique("w");
    const first = await run(name, { limit: 1 });
    const [task] = await lease(name);
    expect(task!.execution_id).toBe(first);
    const second = await run(name, { limit: 1 });
    await until(second, isWaiting);
    const third = await run(name, { limit: 1 });
    await until(third, isWaiting);
    const explained = async () => (await api.get(`/v1/executions/${third}/explain`)).body.items[0];
    await expect.poll(async () => (await explained()).details.before, { timeout: 5_000 }).toBe(1);
    expect((await explained()).sentence).toBe(
      `a waits for one of 1 places at "workflow ${name}", 1 of which are taken; 1 task before it`,
    );
    const limits = (await api.get("/v1/limits")).body.items;
    expect(limits).toContainEqual(expect.objectContaining({ name: `workflow ${name}`, in_use: 1, waiting: 2 }));
    await api.post("/v1/tasks/complete", { token: task!.token, output: 1 });
    const [next] = await lease(name);
    expect(next!.execution_id).toBe(second);
    await api.post(`/v1/executions/${second}/cancel`, {});
    expect((await lease(name))[0]!.execution_id).toBe(third);
  });

  test("is counted by its key", async () => {
    const name = unique("w");
    const concurrency = { limit: 1, key: "{{ input.customer }}" };
    const ids = [await run(name, concurrency, { customer: "a" }), await run(name, concurrency, { customer: "b" })];
    const leased = new Set<string>();
    while (leased.size < 2) for (const { execution_id: id } of await lease(name)) leased.add(id);
    expect([...leased].toSorted()).toEqual(ids.toSorted());
  });

  test("cancels the older one for the newer, if that is wanted", async () => {
    const name = unique("w");
    const concurrency = { limit: 1, on_conflict: "cancel_old" };
    const old = await run(name, concurrency);
    await lease(name);
    const young = await run(name, concurrency);
    expect((await lease(name))[0]!.execution_id).toBe(young);
    expect(await read(old)).toMatchObject({ status: "CANCELLED", nodes: { a: { status: "CANCELLED" } } });
  });

  test("fails what finds no room and is not to wait", async () => {
    const name = unique("w");
    const concurrency = { limit: 1, on_conflict: "reject" };
    await run(name, concurrency);
    await lease(name);
    const refused = await run(name, concurrency);
    const shown = await until(refused, ({ status }) => status === "FAILED");
    expect(shown).toMatchObject({ error: { code: "CONCURRENCY_LIMIT", retryable: true }, retryable_from: ["a"] });
  });
});

test.each([
  ["no object", 3, "INVALID_TYPE"],
  ["no limit", { key: "{{ input.x }}" }, "INVALID_TYPE"],
  ["another word", { limit: 1, on_conflict: "wait" }, "INVALID_TYPE"],
  ["a key that reads a node", { limit: 1, key: "{{ a.x }}" }, "TEMPLATE_UNKNOWN_NODE"],
])("a concurrency with %s is refused", async (_, concurrency, code) => {
  const nodes = [{ id: "a", handler: "http", config: { url: "https://x.test" } }];
  const { status, body } = await api.post("/v1/workflow", { name: "bad", nodes, concurrency });
  expect([status, body.errors?.map((error: { code: string }) => error.code)]).toEqual([422, [code]]);
});
