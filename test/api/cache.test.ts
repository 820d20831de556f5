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

async function run(handler: string, cache: unknown, input: object = {}): Promise<string> {
  const nodes = [{ id: "a", handler, config: { word: "{{ input.word | default('none') }}" }, cache }];
  const body = { definition: { name: handler, nodes }, input_params: input };
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", body);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function lease(handler: string): Promise<{ token: string; execution_id: string }[]> {
  const asked = { worker_id: "w1", handlers: [handler], max: 10, wait_ms: 5_000 };
  return (await api.post("/v1/tasks/lease", asked)).body.tasks;
}

async function completes(handler: string, output: unknown): Promise<string> {
  const [task] = await lease(handler);
  await api.post("/v1/tasks/complete", { token: task!.token, output });
  return task!.execution_id;
}

async function ended(id: string) {
  for (;;) {
    const { body } = await api.get(`/v1/executions/${id}`);
    if (body.status !== "RUNNING") return body;
    await nodeHost.sleep(10);
  }
}

const keys = (): string[] => [...api.memory.data.entities.keys()].filter((entity) => entity.startsWith("cache/"));

describe("a node with a cache", () => {
  test("is done without a task when the same work was done before, and says by whom", async () => {
    const handler = unique("work");
    const first = await run(handler, { ttl: 600 }, { word: "hello" });
    await completes(handler, { n: 1 });
    await ended(first);
    const second = await run(handler, { ttl: 600 }, { word: "hello" });
    const shown = await ended(second);
    expect(shown.nodes.a).toMatchObject({
      status: "COMPLETED",
      reason: "cached",
      cached_from: first,
      attempt: 0,
      output: { n: 1 },
    });
    const events = (await api.get(`/v1/executions/${second}/events`)).body.items;
    expect(events.find(({ type }: { type: string }) => type === "node_completed").data).toMatchObject({
      reason: "cached",
      from: first,
    });
  });

  test("waits for somebody who does the same work, and explain says who that is", async () => {
    const handler = unique("work");
    const ids = [await run(handler, true), await run(handler, true)];
    const tasks = await lease(handler);
    expect(tasks).toHaveLength(1);
    const doing = tasks[0]!.execution_id;
    const waiting = ids.find((id) => id !== doing)!;
    const explained = async () => (await api.get(`/v1/executions/${waiting}/explain?node=a`)).body.items[0];
    await expect.poll(async () => (await explained()).details.execution_id, { timeout: 5_000 }).toBe(doing);
    expect(await explained()).toMatchObject({
      reason: "concurrency",
      sentence: `a waits for the result of node a of execution ${doing}, which does the same work`,
    });
    await api.post("/v1/tasks/complete", { token: tasks[0]!.token, output: "x".repeat(100_000) });
    expect((await ended(waiting)).nodes.a).toMatchObject({ status: "COMPLETED", cached_from: doing });
    const whole = (await api.get(`/v1/executions/${waiting}/nodes/a`)).body;
    expect(whole.output).toBe("x".repeat(100_000));
  });

  test("is done anew when somebody asks for that, and others get what came of it", async () => {
    const handler = unique("work");
    const cache = { key: "one", ttl_seconds: 600 };
    const first = await run(handler, cache);
    await completes(handler, "old");
    await ended(first);
    const again = await api.post(`/v1/executions/${first}/retry`, { from: "a" });
    expect(again.status).toBe(202);
    await completes(handler, "new");
    await ended(first);
    const second = await ended(await run(handler, cache, { word: "another" }));
    expect(second.nodes.a).toMatchObject({ output: "new", cached_from: first });
  });

  test("forgets in time: nothing of it is left in the store", async () => {
    const handler = unique("work");
    const before = new Set(keys());
    const first = await run(handler, { ttl: 0.1 });
    await completes(handler, "x".repeat(100_000));
    await ended(first);
    const own = (): string[] => keys().filter((key) => !before.has(key));
    await expect.poll(own, { timeout: 5_000 }).toEqual([]);
    const second = await run(handler, { ttl: 0.1 });
    expect(await completes(handler, 2)).toBe(second);
    expect((await ended(second)).nodes.a).toMatchObject({ reason: null, output: 2 });
  });
});

describe("a cache that cannot be", () => {
  const cases = [
    ["on a node of the engine", { id: "a", handler: "delay", config: { seconds: 1 }, cache: true }, "CONFIG_INVALID"],
    [
      "beside repeat",
      { id: "a", handler: "http", config: { url: "https://x.test" }, repeat: { until: "a.done" }, cache: true },
      "CONFIG_INVALID",
    ],
    [
      "that is no object",
      { id: "a", handler: "http", config: { url: "https://x.test" }, cache: "yes" },
      "INVALID_TYPE",
    ],
    [
      "without time",
      { id: "a", handler: "http", config: { url: "https://x.test" }, cache: { ttl: 0 } },
      "INVALID_TIMEOUT",
    ],
    [
      "with a word that nobody knows",
      { id: "a", handler: "http", config: { url: "https://x.test" }, cache: { tll: 1 } },
      "UNKNOWN_FIELD",
    ],
    [
      "whose key refers to nobody",
      { id: "a", handler: "http", config: { url: "https://x.test" }, cache: { key: "{{ b.x }}" } },
      "TEMPLATE_UNKNOWN_NODE",
    ],
  ] as const;
  test.each(cases)("%s is refused", async (_, node, code) => {
    const { status, body } = await api.post("/v1/workflow", { name: "bad", nodes: [node] });
    expect([status, body.errors?.map((error: { code: string }) => error.code)]).toEqual([422, [code]]);
  });
});
