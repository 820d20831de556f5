import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { entityKey } from "../../src/core/entity.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import { TestApi } from "../support/api.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-batches-"));
const file = join(folder, "store.db");
let store: Store;
let api: TestApi;

const broken = new Set<number>();
let running = 0;
let most = 0;
let gate: Promise<unknown> = Promise.resolve();
const handlers = {
  work: async ({ config }: { readonly config: unknown }) => {
    const { n } = config as { readonly n: number };
    most = Math.max(most, ++running);
    await nodeHost.sleep(1);
    await gate;
    running--;
    if (broken.has(n)) throw new HandlerError("BROKEN", `no ${n}`, { retryable: false });
    return n * 2;
  },
};

/** Executions that the API no longer finds, as if their time were over. */
const removed = new Set<string>();

function withoutRemoved(whole: Store): Store {
  const seen: Store = Object.create(whole) as Store;
  const journal: Store["journal"] = Object.create(whole.journal) as Store["journal"];
  journal.load = (requests) => whole.journal.load(requests);
  journal.watch = async (partition, entity, ...rest) =>
    removed.has(entity) ? 0 : whole.journal.watch(partition, entity, ...rest);
  return Object.defineProperty(seen, "journal", { value: journal });
}

async function start(): Promise<void> {
  store = await openSqlite({ file, host: nodeHost });
  api = await TestApi.start({ store, handlers, wrap: withoutRemoved });
}

beforeAll(async () => {
  await start();
  const input = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
  const double = { id: "double", handler: "work", config: { n: "{{ input.n }}" } };
  await api.post("/v1/workflows", { name: "double", input_schema: input, nodes: [double] });
  const echo = { id: "echo", handler: "output", config: { is: "{{ input }}" } };
  await api.post("/v1/workflows", { name: "echo", nodes: [echo] });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

interface Item {
  readonly index: number;
  readonly status: string;
  readonly execution_id: string | null;
  readonly output: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
}

const batch = async (id: string) => (await api.get(`/v1/batches/${id}`)).body;
const isOver = async (id: string): Promise<boolean> => (await batch(id)).finished_at !== null;

async function items(id: string, query = ""): Promise<Item[]> {
  const found: Item[] = [];
  let cursor = "";
  do {
    const { body } = await api.get(`/v1/batches/${id}/items?limit=500${query}${cursor}`);
    found.push(...(body.items as Item[]));
    cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`;
  } while (cursor !== "");
  return found;
}

test("runs one workflow over items, so many at a time, and tells what became of each", async () => {
  broken.add(4).add(9);
  most = 0;
  const list = [...Array.from({ length: 20 }, (_, n) => ({ n })), { n: "no number" }];
  const body = { workflow: "double", items: list, concurrency: 3, labels: { run: "first" } };
  const answer = await api.post("/v1/batches", body, { "idempotency-key": "b1" });
  expect(answer).toMatchObject({ status: 201, body: { status: "RUNNING", total: 21 } });
  const id = answer.body.batch_id as string;
  expect((await api.post("/v1/batches", body, { "idempotency-key": "b1" })).body).toEqual(answer.body);
  expect((await api.post("/v1/batches", { ...body, items: [1] }, { "idempotency-key": "b1" })).body.code).toBe(
    "IDEMPOTENCY_KEY_REUSED",
  );
  await api.eventually(() => isOver(id));
  expect(await batch(id)).toMatchObject({
    workflow: "double",
    status: "PARTIAL",
    generation: 1,
    concurrency: 3,
    total: 21,
    completed: 18,
    failed: 3,
    running: 0,
    pending: 0,
    cancelled: 0,
    labels: { run: "first" },
  });
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(3);
  const all = await items(id);
  expect(all.map(({ index }) => index)).toEqual(list.map((_, i) => i));
  expect(all[3]).toMatchObject({ status: "COMPLETED", output: { double: 6 }, error: null });
  expect(all[4]).toMatchObject({ status: "FAILED", output: null, error: { code: "CHILD_FAILED" } });
  expect(all[4]!.error!.message).toContain("no 4");
  const error = { code: "INPUT_INVALID", message: expect.stringContaining('"/n" must be') };
  expect(all[20]).toMatchObject({ index: 20, status: "FAILED", execution_id: null, error });
  expect((await api.get(`/v1/executions/${all[3]!.execution_id}`)).body).toMatchObject({
    workflow: "double",
    input: { n: 3 },
    parent: { execution_id: id },
  });
  expect((await items(id, "&status=FAILED")).map(({ index }) => index)).toEqual([4, 9, 20]);
  // A list says the same of it.
  const listed = async (): Promise<unknown> => (await api.get("/v1/batches")).body.items;
  expect(await listed()).toContainEqual(expect.objectContaining({ batch_id: id, status: "PARTIAL" }));
  // As an execution it has completed; what it came to stands beside that, there and among executions.
  const both = { execution_id: id, status: "COMPLETED", batch_status: "PARTIAL" };
  expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject(both);
  const found = async (): Promise<unknown> => (await api.get("/v1/executions?limit=500&status=COMPLETED")).body.items;
  expect(await found()).toContainEqual(expect.objectContaining(both));

  // Only those that failed are tried again, as the executions they were.
  broken.delete(4);
  const tried = await api.post(`/v1/executions/${id}/retry?dry_run=true`);
  expect(tried).toMatchObject({ status: 200, body: { rerun: ["items"], kept: [] } });
  expect((await api.post(`/v1/batches/${id}/retry`)).status).toBe(202);
  await api.eventually(() => isOver(id));
  expect(await batch(id)).toMatchObject({ generation: 2, completed: 19, failed: 2 });
  const again = await items(id);
  expect(again[4]).toMatchObject({ status: "COMPLETED", output: { double: 8 }, execution_id: all[4]!.execution_id });
  expect(again[3]).toEqual(all[3]);
  expect((await api.get(`/v1/executions/${all[3]!.execution_id}`)).body.generation).toBe(1);
});

test("more items than a map keeps by itself are counted and listed all the same", async () => {
  const list = Array.from({ length: 1_200 }, (_, i) => (i === 1_100 ? "{{ secrets.X }}" : i));
  const { body } = await api.post("/v1/batches", { workflow: "echo", items: list, concurrency: 100 });
  await api.eventually(() => isOver(body.batch_id));
  expect(await batch(body.batch_id)).toMatchObject({ status: "COMPLETED", total: 1_200, completed: 1_200, failed: 0 });
  const all = await items(body.batch_id);
  expect(all.map(({ index }) => index)).toEqual(list.map((_, i) => i));
  // Text that looks like a template is only text.
  expect(all[1_100]).toMatchObject({ status: "COMPLETED", output: { is: "{{ secrets.X }}" } });
  expect((await api.post(`/v1/batches/${body.batch_id}/retry`)).body.code).toBe("NOT_RETRYABLE");
});

test("goes on after a restart, and what is cancelled can be tried again", async () => {
  const opened = Promise.withResolvers<undefined>();
  gate = opened.promise;
  const list = Array.from({ length: 30 }, (_, n) => ({ n: 100 + n }));
  const { body } = await api.post("/v1/batches", { workflow: "double", items: list, concurrency: 5 });
  const id = body.batch_id as string;
  await api.eventually(async () => (await batch(id)).running === 5);
  expect((await items(id)).map(({ status }) => status).slice(4, 6)).toEqual(["RUNNING", "PENDING"]);
  await api.close();
  await store.close();
  await start();
  opened.resolve(undefined);
  await api.eventually(() => isOver(id));
  expect(await batch(id)).toMatchObject({ status: "COMPLETED", completed: 30 });

  const closed = Promise.withResolvers<undefined>();
  gate = closed.promise;
  const second = (await api.post("/v1/batches", { workflow: "double", items: list, concurrency: 5 })).body.batch_id;
  await api.eventually(async () => (await batch(second)).running === 5);
  expect(await api.post(`/v1/batches/${second}/cancel`)).toMatchObject({
    status: 202,
    body: { batch_id: second, status: "CANCELLED", generation: 1 },
  });
  expect(await batch(second)).toMatchObject({ status: "CANCELLED", completed: 0, cancelled: 30 });
  closed.resolve(undefined);
  expect(await api.post(`/v1/batches/${second}/retry`)).toMatchObject({
    status: 202,
    body: { batch_id: second, status: "RUNNING", generation: 2 },
  });
  await api.eventually(() => isOver(second));
  expect(await batch(second)).toMatchObject({ status: "COMPLETED", generation: 2, completed: 30 });
});

/** How many items stand how. */
async function standing(id: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { status } of await items(id)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test("items of parts that were never begun are cancelled with their batch, and pending once it is tried again", async () => {
  const opened = Promise.withResolvers<undefined>();
  gate = opened.promise;
  const list = Array.from({ length: 2_500 }, (_, n) => ({ n: 1_000 + n }));
  const { body } = await api.post("/v1/batches", { workflow: "double", items: list, concurrency: 5 });
  const id = body.batch_id as string;
  await api.eventually(async () => (await batch(id)).running > 0);
  await api.post(`/v1/batches/${id}/cancel`);
  expect(await batch(id)).toMatchObject({ status: "CANCELLED", cancelled: 2_500, running: 0, pending: 0 });
  expect(await standing(id)).toEqual({ CANCELLED: 2_500 });
  await api.post(`/v1/batches/${id}/retry`);
  await api.eventually(async () => (await batch(id)).running === 5);
  expect(await standing(id)).toEqual({ RUNNING: 5, PENDING: 2_495 });
  await api.post(`/v1/batches/${id}/cancel`);
  opened.resolve(undefined);
});

test("of items whose part is removed is told what the batch has counted", async () => {
  for (let n = 5_000; n < 5_010; n++) broken.add(n);
  for (let n = 7_000; n < 7_200; n++) broken.add(n);
  // The first part has some that fail, the second none, and of the third all fail.
  const list = Array.from({ length: 2_200 }, (_, i) => ({ n: 5_000 + i }));
  const { body } = await api.post("/v1/batches", { workflow: "double", items: list, concurrency: 200 });
  const id = body.batch_id as string;
  await api.eventually(() => isOver(id));
  expect(await batch(id)).toMatchObject({ status: "PARTIAL", completed: 1_990, failed: 210 });
  expect(await standing(id)).toEqual({ COMPLETED: 1_990, FAILED: 210 });
  const all = await items(id);
  for (const index of [0, 1_000, 2_000]) {
    const { parent } = (await api.get(`/v1/executions/${all[index]!.execution_id}`)).body;
    removed.add(entityKey("execution", parent.execution_id as string));
  }
  expect(await batch(id)).toMatchObject({ status: "PARTIAL", completed: 1_990, failed: 210 });
  expect(await standing(id)).toEqual({ UNKNOWN: 1_000, COMPLETED: 1_000, FAILED: 200 });
  const [first] = await items(id, "&status=COMPLETED");
  expect(first).toEqual({ index: 1_000, status: "COMPLETED", execution_id: null, output: null, error: null });
});

test("what is no batch, or too much for one, is refused", async () => {
  const id = await api.run({ name: "alone", nodes: [{ id: "a", handler: "output" }] });
  for (const path of [`/v1/batches/${id}`, `/v1/batches/${id}/items`, "/v1/batches/nobody"]) {
    const { body } = await api.get(path);
    expect([body.code, body.detail]).toEqual(["NOT_FOUND", expect.stringContaining("There is no batch ")]);
  }
  expect((await api.post(`/v1/batches/${id}/cancel`)).body.code).toBe("NOT_FOUND");
  const send = async (body: object) => (await api.post("/v1/batches", { workflow: "echo", ...body })).body.code;
  expect(await send({ items: [] })).toBe("INVALID_TYPE");
  expect(await send({ items: Array.from({ length: 10_001 }, () => 1) })).toBe("INVALID_TYPE");
  expect(await send({ items: [1], concurrency: 0 })).toBe("INVALID_TYPE");
  expect(await send({ items: [1], workflow: "nobody" })).toBe("NOT_FOUND");
  expect(await send({ items: ["x".repeat(3 * 1_048_576)] })).toBe("PAYLOAD_TOO_LARGE");
});

test("an item may be as large as any other input, and not larger", async () => {
  const large = (bytes: number): { readonly s: string } => ({ s: "x".repeat(bytes - '{"s":""}'.length) });
  const list = [{}, large(1_048_577)];
  const refused = await api.post("/v1/batches", { workflow: "echo", items: list });
  const detail = expect.stringContaining("/items/1 is larger than 1 MiB") as string;
  expect(refused).toMatchObject({ status: 413, body: { code: "PAYLOAD_TOO_LARGE", detail } });
  expect((await api.post("/v1/batches", { workflow: "echo", items: [{}, large(1_048_576)] })).status).toBe(201);
});
