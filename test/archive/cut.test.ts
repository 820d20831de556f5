import { afterAll, beforeAll, expect, test } from "vitest";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { recover } from "../../src/engine/recovery.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Header } from "../../src/store/contract.ts";
import type { TestApi } from "../support/api.ts";
import { ArchiveWorld } from "./world.ts";

let world: ArchiveWorld;
beforeAll(async () => {
  world = await ArchiveWorld.open();
});
afterAll(() => world.close());

const handlers = {
  add: async ({ config }: { config: unknown }) => {
    await nodeHost.sleep(5);
    const { a, b } = config as { a: number; b: number };
    return a + b;
  },
};
const child = { name: "child", nodes: [{ id: "x", handler: "add", config: { a: "{{ input.n }}", b: 1 } }] };
const family = {
  name: "family",
  nodes: [
    { id: "a", handler: "add", config: { a: "{{ input.n }}", b: 1 } },
    { id: "c", handler: "workflow", dependencies: ["a"], config: { name: "child", input: { n: "{{ a.output }}" } } },
    {
      id: "m",
      handler: "map",
      dependencies: ["c"],
      config: { items: [1, 2, 3], handler: "add", config: { a: "{{ item }}", b: "{{ c.x }}" } },
    },
    { id: "z", handler: "output", dependencies: ["m"], config: { c: "{{ c.x }}", m: "{{ m.output }}" } },
  ],
};

const LANES = 6;

interface Event {
  readonly type: string;
  readonly node_id?: string;
  readonly attempt?: number;
  readonly data: { readonly delivery?: number; readonly generation?: number; readonly round?: number };
}

/** No attempt may stand in the history twice, however often the work itself was done. */
async function dispatches(api: TestApi, id: string): Promise<readonly string[]> {
  const { body } = await api.get(`/v1/executions/${id}/events?limit=500`);
  let generation = 1;
  return (body.items as Event[]).flatMap(({ type, node_id: node, attempt, data }) => {
    if (type === "generation_opened") generation = data.generation ?? generation;
    return type === "task_dispatched" ? [`${generation} ${node} ${attempt} ${data.delivery ?? 1}`] : [];
  });
}

test("a store that is lost in the middle of everything goes on from wherever each journal was cut", async () => {
  // It has had several owners before.
  for (const partition of [0, 1, 0, 1, 0, 1]) {
    const outcome = await world.store.partitions.acquire(partition, "test", 10);
    if (outcome.kind === "acquired") await world.store.partitions.release(outcome.tenure);
  }
  const first = await world.api({ handlers, known: ["add"] });
  expect((await first.post("/v1/workflow", child)).status).toBe(201);
  const started = new Map<string, number>();
  const isCut = new AbortController();
  const start = async (lane: number): Promise<void> => {
    for (let n = lane; !isCut.signal.aborted && n < 500; n += LANES) started.set(await first.run(family, { n }), n);
  };
  const starting = Promise.all(Array.from({ length: LANES }, (_, lane) => start(lane).catch(() => undefined)));
  // Somewhere in the middle: some have ended, some have begun, and of some nobody there has heard.
  const ended = async (): Promise<number> =>
    (await world.archive.queries.headers({ class: "endedWell", limit: 100 })).items.length;
  await expect.poll(ended, { timeout: 60_000, interval: 5 }).toBeGreaterThan(15);
  isCut.abort();
  // Without a word to the archive: the engine is gone, and with it the store.
  await Promise.all([starting, world.stopAll()]);
  const seen = await world.archive.progress();

  await world.store.close();
  world.store = await openRedis({
    url: world.redis.url,
    prefix: `${world.prefix}-again`,
    host: nodeHost,
    partitions: 2,
  });
  const parts = { archive: world.archive, store: world.store, host: nodeHost, machines: [executionMachine] };
  const recovery = await recover({ ...parts, force: false });
  // From now on the archive takes nothing from the store that was lost, not even what was still on its way.
  const before = await world.sql<{ entity: string }>(
    `select entity from headers where class = 'open' and exists (select from journal where entity = headers.entity)`,
  );
  expect(recovery).toMatchObject({ executions: before.length, unread: [], present: 0 });
  for (const { partition, epoch } of seen) {
    const outcome = await world.store.partitions.acquire(partition, "test", 10);
    expect(outcome.kind === "acquired" && outcome.tenure.epoch).toBeGreaterThan(epoch);
    if (outcome.kind === "acquired") await world.store.partitions.release(outcome.tenure);
  }

  const second = await world.api({ handlers, known: ["add"] });
  const all = (await world.sql<Pick<Header, "entity" | "workflow">>(`select entity, workflow from headers`)).map(
    ({ entity, workflow }) => ({ id: entity.slice("execution/".length), workflow }),
  );
  let checked = 0;
  for (const [id, n] of started) {
    if (!all.some((one) => one.id === id)) continue;
    const body = await second.ended(id);
    expect(body).toMatchObject({ status: "COMPLETED", output: { c: n + 2, m: [n + 3, n + 4, n + 5] } });
    checked++;
  }
  expect(checked).toBeGreaterThan(5);
  for (const { id } of all) {
    const found = await dispatches(second, id);
    expect(new Set(found).size).toBe(found.length);
  }
});
