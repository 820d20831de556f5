import { afterAll, beforeAll, expect, test } from "vitest";
import { gate } from "../../src/engine/test-engine.ts";
import type { Counts, Store } from "../../src/store/contract.ts";
import { TestApi } from "../support/api.ts";

const held = gate();
let more: Partial<Counts> = {};
let used = 0;
let noRoom = false;
let api: TestApi;
beforeAll(async () => {
  const wrap = (store: Store): Store => {
    const queries = new Proxy(store.queries, {
      get: (target, name) =>
        name === "counts"
          ? async () => ({ ...(await target.counts()), ...more })
          : (Reflect.get(target, name) as (...args: unknown[]) => unknown).bind(target),
    });
    const append: Store["inbox"]["append"] = async (messages) =>
      noRoom ? messages.map(({ start }) => (start ? "full" : "appended")) : store.inbox.append(messages);
    const inbox = new Proxy(store.inbox, {
      get: (target, name) =>
        name === "append" ? append : (Reflect.get(target, name) as (...args: unknown[]) => unknown).bind(target),
    });
    return { ...store, ...rolesOf(store), queries, inbox };
  };
  api = await TestApi.start({ handlers: { gate: held.handler }, wrap, memoryUsed: () => used });
});
afterAll(() => api.close());

function rolesOf({ capabilities, partitions, inbox, journal, tasks, records, queries }: Store) {
  return { capabilities, partitions, inbox, journal, tasks, records, queries, close: async () => undefined };
}

const definition = { name: "admission", nodes: [{ id: "a", handler: "gate" }] };
const start = () => api.post("/v1/workflow?start=true", definition);

/** A look at the store is good for a second. */
const eventually = { interval: 100 };

test("new work gets 503 while there is too much, what was accepted goes on, and everybody is told why", async () => {
  const running = (await start()).body.execution_id as string;
  const waiting = (await api.post("/v1/workflow", definition)).body.execution_id as string;

  more = { fill: 0.9 };
  await expect.poll(async () => (await start()).status, eventually).toBe(503);
  const full = await start();
  expect(full).toMatchObject({ status: 503, body: { code: "STORE_FULL" } });
  expect(full.body.detail).toContain("the store is 90 % full");
  expect(full.headers.get("retry-after")).toBe("5");
  expect((await api.post(`/v1/workflow/trigger/${waiting}`)).status).toBe(503);
  expect(await api.get("/health/ready")).toMatchObject({
    status: 200,
    body: { parts: { admission: "the store is 90 % full", engines: "ok" } },
  });
  expect((await api.get("/metrics")).body).toContain('millrace_admission_closed{by="store"} 1');

  expect((await api.get(`/v1/executions/${running}`)).status).toBe(200);
  expect((await api.post(`/v1/executions/${running}/signal`, { name: "s" })).status).toBe(202);
  held.open("a");
  expect((await api.ended(running)).status).toBe("COMPLETED");

  more = {};
  await expect.poll(async () => (await start()).status, eventually).toBe(201);
  used = 0.95;
  expect(await start()).toMatchObject({ status: 503, body: { code: "OVERLOADED" } });
  used = 0;
  expect((await start()).status).toBe(201);
});

test("a store that is full says so, to a start that came before anybody had looked and in health", async () => {
  noRoom = true;
  expect(await start()).toMatchObject({ status: 503, body: { code: "STORE_FULL" } });
  noRoom = false;
  more = { isFull: true };
  const admission = async (): Promise<string> => (await api.get("/health/ready")).body.parts.admission as string;
  await expect.poll(admission, eventually).toBe("the store has no room left");
  expect(await start()).toMatchObject({ status: 503, body: { code: "STORE_FULL" } });
  more = {};
});
