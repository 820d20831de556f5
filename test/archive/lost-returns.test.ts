import { afterAll, beforeAll, expect, test } from "vitest";
import { MACHINES } from "../../src/core/machines.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { recover } from "../../src/engine/recovery.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";
import type { TestApi } from "../support/api.ts";
import { ArchiveWorld } from "./world.ts";

let world: ArchiveWorld;
beforeAll(async () => {
  world = await ArchiveWorld.open();
});
afterAll(() => world.close());

const opened = Promise.withResolvers<void>();
const handlers = {
  work: async ({ config }: { readonly config: unknown }) => {
    if ((config as { readonly waits: boolean }).waits) await opened.promise;
    return "done";
  },
};
const limited = {
  name: "limited",
  limits: { few: { concurrency: 2 } },
  budget: { calls: 100, key: "all" },
  nodes: [{ id: "n", handler: "work", limit: "few", config: { waits: "{{ input.waits }}" } }],
};

async function startByKey(api: TestApi): Promise<string> {
  const body = { definition: limited, input_params: { waits: true } };
  const answer = await api.post("/v1/workflow?start=true", body, { "idempotency-key": "lost" });
  return (answer.body as { readonly execution_id: string }).execution_id;
}

interface ShownLimit {
  readonly kind: string;
  readonly in_use: number;
  readonly budget?: { readonly calls: { readonly spent: number } };
}

async function limitsOf(api: TestApi): Promise<Readonly<Record<string, ShownLimit>>> {
  const { items } = (await api.get("/v1/limits")).body as { readonly items: readonly ShownLimit[] };
  return Object.fromEntries(items.map((one) => [one.kind, one]));
}

async function unshipped({ queries }: Store): Promise<readonly string[]> {
  const lists = ["unshipped/0", "unshipped/1"];
  const pages = await Promise.all(lists.map((list) => queries.listing({ list, limit: 100 })));
  return pages.flatMap(({ items }) => items.map(({ id }) => id));
}

test("places whose return was lost with the store, and those of executions that nobody knows, are free again", async () => {
  const api = await world.api({ handlers });
  const lost = await startByKey(api);
  await api.eventually(async () => (await limitsOf(api))["concurrency"]?.in_use === 1);
  const over = await api.run(limited, { waits: false });
  await api.ended(over);
  await api.eventually(async () => (await limitsOf(api))["budget"]?.budget?.calls.spent === 1);
  await expect.poll(() => unshipped(world.store)).toEqual([]);
  await api.stopEngine();
  opened.resolve();
  await api.close();

  // As if both gates had been a moment behind, and what was said of the first execution a moment more.
  const isReturn = `entity like 'gate/%' and text like '%asksReturned%'`;
  expect(await world.sql(`select entity from journal where ${isReturn} and text like '%${over}%'`)).toHaveLength(2);
  await world.sql(`delete from journal where ${isReturn}`);
  for (const table of ["journal", "headers"]) {
    await world.sql(`delete from ${table} where entity = $1`, [`execution/${lost}`]);
  }

  const prefix = `${world.prefix}-again`;
  const rebuilt = await openRedis({ url: world.redis.url, prefix, host: nodeHost, partitions: 2 });
  await recover({ archive: world.archive, store: rebuilt, host: nodeHost, machines: MACHINES, force: false });
  const again = await world.api({ handlers, store: rebuilt });
  await again.eventually(async () => (await limitsOf(again))["concurrency"]?.in_use === 0);
  // What the one that is over has used is in its own journal; what the other has, nobody knows.
  await again.eventually(async () => (await limitsOf(again))["budget"]?.in_use === 0);
  expect((await limitsOf(again))["budget"]).toMatchObject({ budget: { calls: { spent: 1, reserved: 0 } } });
  // Who starts it again by the same key gets the same execution, as if it had never been: it asks by the same numbers.
  expect(await startByKey(again)).toBe(lost);
  expect(await again.ended(lost)).toMatchObject({ status: "COMPLETED" });
  await world.stopAll();
  await rebuilt.close();
});
