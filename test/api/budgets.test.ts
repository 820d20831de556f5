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

async function run(name: string, nodes: readonly object[], more: object = {}): Promise<string> {
  const definition = {
    name,
    nodes: nodes.map((node) => ({ handler: name, ...node })),
    on_error: "fail_branch",
    ...more,
  };
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", definition);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function lease(handler: string): Promise<{ node_id: string; token: string; config: { model?: string } }> {
  const asked = { worker_id: "w1", handlers: [handler], max: 1, wait_ms: 5_000 };
  return until(async () => (await api.post("/v1/tasks/lease", asked)).body.tasks[0]);
}

async function until<T>(get: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await get();
    if (found !== undefined) return found;
    await nodeHost.sleep(10);
  }
}

/** Waits until a node reads so. */
const reads = (id: string, node: string, expected: string): Promise<object> =>
  until(async () => {
    const { nodes } = (await api.get(`/v1/executions/${id}`)).body;
    const { status, reason } = nodes[node];
    return `${status}${reason === null ? "" : ` ${reason}`}` === expected ? nodes[node] : undefined;
  });

const shown = async (name: string) =>
  (await api.get("/v1/limits")).body.items.filter((item: { name: string }) => item.name === name);

/** Two nodes, one after the other, with ten tokens for both; the first has used nine. */
async function nearlySpent(onLimit: object): Promise<{ readonly name: string; readonly id: string }> {
  const name = unique("spend");
  const nodes = [{ id: "a" }, { id: "b", dependencies: ["a"], config: { model: "large" } }];
  const budget = { tokens: 10, estimate: { tokens: 6 }, ...onLimit };
  const id = await run(name, nodes, { budget });
  const { token } = await lease(name);
  await api.post("/v1/tasks/complete", { token, output: 1, usage: { prompt_tokens: 4, completion_tokens: 5 } });
  return { name, id };
}

describe("a budget of a workflow", () => {
  test("fails what would go beyond it; once it is raised, a retry goes on", async () => {
    const { name, id } = await nearlySpent({});
    await reads(id, "b", "FAILED");
    const message = expect.stringContaining(
      "it allows 10 tokens in all, 9 tokens were used, the task may use 6 tokens.",
    );
    const error = { code: "BUDGET_EXCEEDED", node_id: "b", message };
    expect((await api.get(`/v1/executions/${id}`)).body.error).toMatchObject(error);
    expect(await shown(name)).toMatchObject([
      { kind: "budget", key: id, limit: null, in_use: 0, budget: { tokens: { limit: 10, spent: 9, reserved: 0 } } },
    ]);
    const raised = await api.post(`/v1/limits/${name}/override`, { tokens: 15 });
    expect(raised.body.items).toMatchObject([{ overridden: true, budget: { tokens: { limit: 15, spent: 9 } } }]);
    expect((await api.post(`/v1/executions/${id}/retry`, {})).status).toBe(202);
    const { node_id: node, token } = await lease(name);
    expect(node).toBe("b");
    await api.post("/v1/tasks/fail", { token, error: { code: "X", retryable: false }, usage: { tokens: 2 } });
    await reads(id, "b", "FAILED");
    await until(async () => ((await shown(name))[0].budget.tokens.spent === 11 ? true : undefined));
  });

  test("pauses as a review, which raises it: the execution goes on at the same node", async () => {
    const { name, id } = await nearlySpent({ on_limit: "pause" });
    const find = async () => {
      const { items } = (await api.get("/v1/reviews")).body;
      return items.find((item: { execution_id: string }) => item.execution_id === id) as { id: string } | undefined;
    };
    const review = await until(find);
    expect(review).toMatchObject({
      node_id: "b",
      due_at: null,
      values: { limits: { tokens: 10 }, spent: { tokens: 9 } },
    });
    await reads(id, "b", "WAITING budget");
    const [why] = (await api.get(`/v1/executions/${id}/explain?node=b`)).body.items;
    expect(why).toMatchObject({ reason: "budget", details: { review: review.id, limit: name } });
    expect(why.sentence).toContain("9 of 10 tokens spent");
    const path = `/v1/reviews/${encodeURIComponent(review.id)}`;
    expect((await api.post(path, { decision: "approve", data: { tokens: -1 } })).status).toBe(422);
    expect((await api.post(path, { decision: "approve", data: { tokens: 20 } })).status).toBe(200);
    expect((await lease(name)).node_id).toBe("b");
    expect(await find()).toBeUndefined();
    await api.post(`/v1/executions/${id}/cancel`, {});
    // It was out and nobody says what it has used: what was thought.
    await until(async () => ((await shown(name))[0].budget.tokens.spent === 15 ? true : undefined));
  });

  test("is raised by two at once to the most that they said, of each unit, and never lowered by it", async () => {
    const { name, id } = await nearlySpent({ on_limit: "pause", calls: 5 });
    await reads(id, "b", "WAITING budget");
    const raises = [{ tokens: 12 }, { calls: 9 }, { tokens: 14 }, { tokens: 11, calls: 7 }];
    const answers = await Promise.all(raises.map((amounts) => api.post(`/v1/limits/${name}/raise`, amounts)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await shown(name))[0].budget).toMatchObject({ tokens: { limit: 14 }, calls: { limit: 9 } });
    const set = await Promise.all(
      [{ tokens: 30 }, { calls: 3 }].map((spec) => api.post(`/v1/limits/${name}/override`, spec)),
    );
    expect(set.map(({ status }) => status)).toEqual([200, 200]);
    expect((await shown(name))[0].budget).toMatchObject({ tokens: { limit: 30 }, calls: { limit: 3 } });
    expect((await lease(name)).node_id).toBe("b");
    expect((await api.post(`/v1/limits/${name}/raise`, {})).status).toBe(400);
    expect((await api.post(`/v1/limits/${name}/raise`, { usd: -1 })).status).toBe(400);
    await api.post(`/v1/executions/${id}/cancel`, {});
  });

  test("falls back to another model", async () => {
    const { name, id } = await nearlySpent({ on_limit: "fallback", fallback: "small" });
    const { node_id: node, config, token } = await lease(name);
    expect([node, config.model]).toEqual(["b", "small"]);
    await api.post("/v1/tasks/complete", { token, output: 1, usage: { tokens: 500 } });
    await reads(id, "b", "COMPLETED");
    await until(async () => ((await shown(name))[0].in_use === 0 ? true : undefined));
    expect((await shown(name))[0].budget.tokens.spent).toBe(9);
  });
});

test("a budget of a key is one for all executions of that key", async () => {
  const name = unique("spend");
  const definition = {
    name,
    nodes: [{ id: "a", handler: name, budget: { calls: 1, key: "{{ input.who }}" } }],
  };
  const start = async (who: string): Promise<string> => {
    const body = { definition, input_params: { who } };
    return (await api.post("/v1/workflow?start=true&allow_missing_handlers=true", body)).body.execution_id as string;
  };
  await start("ann");
  await api.post("/v1/tasks/complete", { token: (await lease(name)).token, output: 1 });
  await until(async () => ((await shown(`${name}/a`))[0].budget.calls.spent === 1 ? true : undefined));
  await reads(await start("ann"), "a", "FAILED");
  await start("bob");
  await api.post("/v1/tasks/complete", { token: (await lease(name)).token, output: 1 });
});
