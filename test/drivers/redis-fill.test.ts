import { createClient, type RedisClientType } from "@redis/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";

describe("how full a Redis is", () => {
  let service: Service;
  let client: RedisClientType;
  let store: Store;
  beforeAll(async () => {
    service = await startRedis({ shared: false });
    client = createClient({ url: service.url });
    await client.connect();
    store = await openRedis({ url: service.url, host: nodeHost });
  });
  afterAll(async () => {
    await store.close();
    client.destroy();
    await service.stop();
  });

  test("is the part of maxmemory that is used", async () => {
    await client.configSet("maxmemory", String(64 * 1024 * 1024));
    const before = (await store.queries.counts()).fill!;
    for (let i = 0; i < 256; i++) await client.set(`filler:${i}`, "x".repeat(64 * 1024));
    const after = (await store.queries.counts()).fill!;
    expect(after - before).toBeGreaterThan(0.2);
    expect(after - before).toBeLessThan(0.6);
  });

  test("is left out where there is no limit", async () => {
    await client.configSet("maxmemory", "0");
    expect(await store.queries.counts()).not.toHaveProperty("fill");
  });
});
