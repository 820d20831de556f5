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

/** Starts a workflow of nodes that all have the same handler and limit. */
async function run(handler: string, ids: readonly string[], limit: object, spec: object): Promise<string> {
  const nodes = ids.map((id) => ({ id, handler, ...limit }));
  const definition = { name: handler, nodes, limits: spec, on_error: "fail_branch" };
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", definition);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function lease(handler: string, waitMs = 5_000): Promise<{ node_id: string; token: string }[]> {
  const asked = { worker_id: "w1", handlers: [handler], max: 10, wait_ms: waitMs };
  return (await api.post("/v1/tasks/lease", asked)).body.tasks;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await nodeHost.sleep(10);
}

/** Waits until the nodes read as they should. */
async function reads(id: string, expected: Readonly<Record<string, string>>): Promise<void> {
  await until(async () => {
    const { nodes } = (await api.get(`/v1/executions/${id}`)).body;
    const shown = Object.fromEntries(
      Object.entries<{ status: string; reason: string | null }>(nodes).map(([name, { status, reason }]) => [
        name,
        reason === null ? status : `${status} ${reason}`,
      ]),
    );
    return JSON.stringify(shown) === JSON.stringify(expected);
  });
}

const shown = async (name: string) =>
  (await api.get("/v1/limits")).body.items.filter((item: { name: string }) => item.name === name);

describe("a limit of places", () => {
  test("holds the second back, says so, and lets it go when the first is done", async () => {
    const handler = unique("step");
    const name = unique("few");
    const id = await run(handler, ["a", "b"], { limit: name }, { [name]: { concurrency: 1 } });
    const [first, ...more] = await lease(handler);
    expect([first!.node_id, more]).toEqual(["a", []]);
    await reads(id, { a: "QUEUED", b: "WAITING concurrency" });
    expect(await shown(name)).toMatchObject([
      { kind: "concurrency", id: `concurrency:default:${name}`, limit: 1, in_use: 1, waiting: 1, tripped: false },
    ]);
    const explained = (await api.get(`/v1/executions/${id}/explain?node=b`)).body.items;
    expect(explained).toMatchObject([
      { node_id: "b", reason: "concurrency", details: { limit: name, before: 0, in_use: 1, waiting: 1 } },
    ]);
    expect(explained[0].sentence).toBe(`b waits for one of 1 places at "${name}", 1 of which are taken; it is next`);
    await api.post("/v1/tasks/complete", { token: first!.token, output: 1 });
    const [second] = await lease(handler);
    expect(second!.node_id).toBe("b");
    await api.post("/v1/tasks/complete", { token: second!.token, output: 2 });
    await reads(id, { a: "COMPLETED", b: "COMPLETED" });
    await until(async () => (await shown(name))[0].in_use === 0);
  });

  test("can be overridden, and is again what the definition says", async () => {
    const handler = unique("step");
    const name = unique("few");
    const id = await run(handler, ["a", "b", "c"], { limit: name }, { [name]: { concurrency: 1 } });
    expect((await lease(handler)).length).toBe(1);
    const more = await api.post(`/v1/limits/${name}/override`, { concurrency: 2 });
    expect(more).toMatchObject({ status: 200, body: { items: [{ limit: 2, overridden: true }] } });
    expect((await lease(handler)).length).toBe(1);
    const back = await api.post(`/v1/limits/${name}/override`, {});
    expect(back.body.items).toMatchObject([{ limit: 1, overridden: false, waiting: 1 }]);
    await api.post(`/v1/executions/${id}/cancel`, {});
    await until(async () => {
      const [limit] = await shown(name);
      return limit.in_use === 0 && limit.waiting === 0;
    });
  });

  test("fails a node that is not to wait", async () => {
    const handler = unique("step");
    const concurrency = { limit: 1, on_conflict: "reject" };
    const node = { id: "a", handler, concurrency };
    const start = () =>
      api.post("/v1/workflow?start=true&allow_missing_handlers=true", { name: handler, nodes: [node] });
    const first = (await start()).body.execution_id as string;
    expect((await lease(handler)).length).toBe(1);
    const second = (await start()).body.execution_id as string;
    await reads(second, { a: "FAILED" });
    expect((await api.get(`/v1/executions/${second}`)).body.error).toMatchObject({ code: "CONCURRENCY_LIMIT" });
    await api.post(`/v1/executions/${first}/cancel`, {});
  });
});

describe("an override keeps what it does not say", () => {
  test("what becomes of those for whom there is no room", async () => {
    const handler = unique("step");
    const nodes = [{ id: "a", handler, concurrency: { limit: 1, on_conflict: "reject" } }];
    const start = async (): Promise<string> => {
      const path = "/v1/workflow?start=true&allow_missing_handlers=true";
      return (await api.post(path, { name: handler, nodes })).body.execution_id as string;
    };
    const ids = [await start()];
    expect((await lease(handler)).length).toBe(1);
    const { items } = (await api.get("/v1/limits?limit=500")).body as { items: { id: string; name: string }[] };
    const { id } = items.find(({ name }) => name.includes(handler))!;
    const more = await api.post(`/v1/limits/${encodeURIComponent(id)}/override`, { concurrency: 2 });
    expect(more.body.items).toMatchObject([{ limit: 2, overridden: true }]);
    ids.push(await start());
    expect((await lease(handler)).length).toBe(1);
    const third = await start();
    await reads(third, { a: "FAILED" });
    for (const open of ids) await api.post(`/v1/executions/${open}/cancel`, {});
  });

  test("the rate, where only the burst is said", async () => {
    const handler = unique("step");
    const name = unique("burst");
    const limit = { rate: 6, per: "minute", burst: 2, tokens_per_minute: 6000 };
    const id = await run(handler, ["a"], { limit: name }, { [name]: limit });
    await until(async () => (await shown(name)).length === 2);
    const override = (body: object) => api.post(`/v1/limits/${name}/override`, body);
    const both = (await override({ burst: 7, tokens_burst: 8 })).body.items as { kind: string }[];
    const of = (kind: string) => both.find((item) => item.kind === kind);
    expect(of("rate")).toMatchObject({ limit: 6, window_seconds: 60, burst: 7, overridden: true });
    expect(of("tokens")).toMatchObject({ limit: 6000, window_seconds: 60, burst: 8, overridden: true });
    expect(await override({ per: "hour" })).toMatchObject({ status: 400 });
    const back = (await override({})).body.items as object[];
    expect(back.map((item) => "overridden" in item && item.overridden)).toEqual([false, false]);
    await api.post(`/v1/executions/${id}/cancel`, {});
  });
});

describe("a rate", () => {
  const spec = (name: string) => ({ [name]: { rate: 1, per: "second", burst: 1 } });

  test("lets nobody through beside those who have not begun, and says so", async () => {
    const handler = unique("step");
    const name = unique("thin");
    const id = await run(handler, ["a", "b"], { limit: name }, spec(name));
    await reads(id, { a: "QUEUED", b: "WAITING rate_limit" });
    const { items } = (await api.get(`/v1/executions/${id}/explain?node=b`)).body;
    expect(items[0].sentence).toBe(
      `b is held by rate limit "${name}" (1/s); it is next; 1 task that it has let through has not begun: ` +
        "no worker has taken it yet",
    );
    // A worker over HTTP says nothing until its first heartbeat; it counts as having begun with its lease.
    expect((await lease(handler)).map(({ node_id: node }) => node)).toEqual(["a"]);
    expect((await lease(handler)).map(({ node_id: node }) => node)).toEqual(["b"]);
    await api.post(`/v1/executions/${id}/cancel`, {});
  });
});

test("a breaker that has opened says to everybody in line when it lets one try", async () => {
  const handler = unique("step");
  const name = unique("fragile");
  const breaker = { failure_rate: 0.5, window: 2, min_calls: 1, open_seconds: 600 };
  const retry = { max_attempts: 3, base_delay_seconds: 0 };
  const id = await run(handler, ["a", "b", "c"], { limit: name, retry }, { [name]: { breaker, concurrency: 1 } });
  const [first] = await lease(handler);
  const error = { code: "BROKEN", message: "no", retryable: true };
  await api.post("/v1/tasks/fail", { token: first!.token, error });
  await until(async () => {
    const { items } = (await api.get(`/v1/executions/${id}/explain`)).body;
    const sentences = (items as { sentence: string }[]).map(({ sentence }) => sentence);
    const held = sentences.filter((one) =>
      / and lets one try in (10|9) min( \d+ s)?; (it is next|1 task before it)$/.test(one),
    );
    return held.length > 0 && held.length === sentences.filter((one) => one.includes("is held by breaker")).length;
  });
  await api.post(`/v1/executions/${id}/cancel`, {});
});

test("a limit that somebody has tripped lets nothing through until it is reset", async () => {
  const handler = unique("step");
  const name = unique("thin");
  const spec = { [name]: { rate: 1000, concurrency: 5 } };
  const first = await run(handler, ["a"], { limit: name }, spec);
  expect((await lease(handler)).length).toBe(1);
  const tripped = await api.post(`/v1/limits/${name}/trip`, {});
  expect(
    tripped.body.items.map(({ kind, tripped: is }: { kind: string; tripped: boolean }) => [kind, is]).sort(),
  ).toEqual([
    ["concurrency", true],
    ["rate", true],
  ]);
  const second = await run(handler, ["b"], { limit: name }, spec);
  await reads(second, { b: "WAITING concurrency" });
  const [{ sentence }] = (await api.get(`/v1/executions/${second}/explain`)).body.items;
  expect(sentence).toContain("somebody has closed it");
  expect((await api.post(`/v1/limits/concurrency:default:${name}/reset`, {})).body.items.length).toBe(1);
  await reads(second, { b: "WAITING rate_limit" });
  await api.post(`/v1/limits/${name}/reset`, {});
  expect((await lease(handler)).map(({ node_id: id }) => id)).toEqual(["b"]);
  for (const id of [first, second]) await api.post(`/v1/executions/${id}/cancel`, {});
});

test("a server that wants to be left alone closes the rate for all", async () => {
  const handler = unique("step");
  const name = unique("thin");
  const first = await run(handler, ["a"], { limit: name, retry: { max_attempts: 1 } }, { [name]: { rate: 1000 } });
  const [task] = await lease(handler);
  const error = { code: "HTTP_429", message: "slow down", retryable: true, retry_after_seconds: 3_000 };
  await api.post("/v1/tasks/fail", { token: task!.token, error });
  await reads(first, { a: "FAILED" });
  await until(async () => (await shown(name))[0].until !== null);
  const second = await run(handler, ["b"], { limit: name }, { [name]: { rate: 1000 } });
  await reads(second, { b: "WAITING rate_limit" });
  const [why] = (await api.get(`/v1/executions/${second}/explain`)).body.items;
  expect(Date.parse(why.until)).toBeGreaterThan(Date.now() + 2_000_000);
  await api.post(`/v1/limits/${name}/reset`, {});
  expect((await lease(handler)).length).toBe(1);
  await api.post(`/v1/executions/${second}/cancel`, {});
});

test("a result that says there is no more for a while closes the rate for all", async () => {
  const handler = unique("step");
  const name = unique("thin");
  const first = await run(handler, ["a"], { limit: name }, { [name]: { rate: 1000 } });
  const [task] = await lease(handler);
  await api.post("/v1/tasks/complete", { token: task!.token, output: 1, close_limit_seconds: 3_000 });
  await reads(first, { a: "COMPLETED" });
  await until(async () => (await shown(name))[0].until !== null);
  const second = await run(handler, ["b"], { limit: name }, { [name]: { rate: 1000 } });
  await reads(second, { b: "WAITING rate_limit" });
  await api.post(`/v1/limits/${name}/reset`, {});
  expect((await lease(handler)).length).toBe(1);
  await api.post(`/v1/executions/${second}/cancel`, {});
});

test("a command with a key is one, and another one with the same key is refused", async () => {
  const handler = unique("step");
  const name = unique("few");
  const id = await run(handler, ["a"], { limit: name }, { [name]: { concurrency: 1 } });
  await until(async () => (await shown(name)).length === 1);
  const override = (body: object) => api.post(`/v1/limits/${name}/override`, body, { "idempotency-key": name });
  expect((await override({ concurrency: 2 })).body).toMatchObject({ items: [{ limit: 2 }] });
  expect((await override({ concurrency: 2 })).body).toMatchObject({ items: [{ limit: 2 }] });
  expect(await override({ concurrency: 3 })).toMatchObject({ status: 422, body: { code: "IDEMPOTENCY_KEY_REUSED" } });
  expect(await shown(name)).toMatchObject([{ limit: 2 }]);
  // What it does not have is not taken for done.
  expect(await api.post(`/v1/limits/${name}/override`, { usd: 5 })).toMatchObject({
    status: 400,
    body: { code: "INVALID_TYPE", detail: expect.stringContaining("usd") },
  });
  expect(await shown(name)).toMatchObject([{ limit: 2, overridden: true }]);
  await api.post(`/v1/executions/${id}/cancel`, {});
});

test("an unknown limit is not found, and a rule that is none is refused", async () => {
  for (const action of ["trip", "reset", "override"]) {
    expect(await api.post(`/v1/limits/nobody/${action}`, {})).toMatchObject({
      status: 404,
      body: { code: "NOT_FOUND" },
    });
  }
  expect((await api.post("/v1/limits/nobody/override", { rate: -1 })).status).toBe(400);
});

test("what all share is measured, however many budgets of executions there are", async () => {
  const name = unique("shared");
  const open = await run(unique("step"), ["a"], { limit: name }, { [name]: { concurrency: 1 } });
  await until(async () => (await shown(name)).length === 1);
  const spending = unique("spending");
  const definition = { name: spending, budget: { calls: 5 }, nodes: [{ id: "a", handler: spending }] };
  expect((await api.post("/v1/workflow?allow_missing_handlers=true", definition)).status).toBe(201);
  const inputs = Array.from({ length: 501 }, () => ({}));
  expect((await api.post(`/v1/workflows/${spending}/executions`, { inputs })).status).toBe(201);
  const first = async (): Promise<{ name: string }[]> => (await api.get("/v1/limits?limit=500")).body.items;
  await until(async () => (await first()).every((limit) => limit.name !== name));
  const text = await (await fetch(`${api.url}/metrics`)).text();
  expect(text).toContain(`millrace_limit_in_use{limit="${name}",kind="concurrency"} 1`);
  expect(text).toContain(`millrace_limit_in_use{limit="${spending}",kind="budget"}`);
  await api.post(`/v1/executions/${open}/cancel`, {});
}, 60_000);
