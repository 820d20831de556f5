import { rm } from "node:fs/promises";
import { createClient } from "@redis/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { message, record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";

/** Everything that writes or reads, and what an idle process does all the time. */
const calls: readonly [name: string, call: (store: Store) => Promise<unknown>][] = [
  ["acquire", (store) => store.partitions.acquire(0, "owner", 1000)],
  ["renew", (store) => store.partitions.renew([], 1000)],
  ["append", (store) => store.inbox.append([message('"m"')])],
  ["start", (store) => store.inbox.append([message('"m"', { start: true })])],
  ["replies", (store) => store.inbox.replies("process", 0)],
  ["load", (store) => store.journal.load([{ partition: 0, entity: "execution/e" }])],
  ["lease", (store) => store.tasks.lease({ worker: "w", queues: ["q"], max: 1, leaseMs: 1000, waitMs: 0 })],
  [
    "settle",
    (store) => store.tasks.settle([{ ref: "a b c", token: "t", partition: 0, outcome: "completed", text: "1" }]),
  ],
  ["heartbeat", (store) => store.tasks.heartbeat([{ ref: "a b c", token: "t" }], 1000)],
  ["lapse", (store) => store.tasks.lapse(10)],
  ["put", (store) => store.records.put([{ scope: "s", hash: "h", text: "1" }])],
  ["publish", (store) => store.records.publish("name", "hash")],
  ["register", (store) => store.records.register({ process: "p", role: "worker", text: "{}" }, 1000)],
  ["watch", (store) => store.journal.watch(0, "execution/e", 0, 0)],
  ["get", (store) => store.records.get([{ scope: "s", hash: "h" }])],
  ["published", (store) => store.records.published("name")],
  ["published by version", (store) => store.records.published("name", 1)],
  ["published by content", (store) => store.records.published("name", "hash")],
  ["versions", (store) => store.records.versions("name")],
  ["header", (store) => store.queries.header(0, "execution/e")],
  ["dead letter", (store) => store.queries.deadLetter("l")],
  ["listed", (store) => store.queries.listed("list", "id")],
  ["headers", (store) => store.queries.headers({ limit: 10 })],
  ["counts", (store) => store.queries.counts()],
];

describe("a Redis whose data is gone", () => {
  let server: OwnRedis;
  beforeAll(async () => {
    server = await startOwnRedis();
  });
  afterAll(() => server.stop());

  async function flush(): Promise<void> {
    const client = await createClient({ url: server.url }).connect();
    await client.flushAll();
    client.destroy();
  }

  async function keys(): Promise<readonly string[]> {
    const client = await createClient({ url: server.url }).connect();
    const all = await client.keys("*");
    client.destroy();
    return all;
  }

  test.each(calls)("is STORE_LOST for %s, and nothing is written into what is there now", async (_, call) => {
    const prefix = nodeHost.id();
    const store = await openRedis({ url: server.url, host: nodeHost, prefix });
    const client = await createClient({ url: server.url }).connect();
    await client.del(`${prefix}:store`);
    await expect(call(store)).rejects.toMatchObject({ code: "STORE_LOST" });
    expect(await store.lost).toMatchObject({ code: "STORE_LOST" });
    expect(await client.keys(`${prefix}:*`)).toEqual([]);
    client.destroy();
    await store.close();
  });

  test("is STORE_LOST for a commit of an owner that held it", async () => {
    const store = await openRedis({ url: server.url, host: nodeHost });
    const owner = await acquire(store);
    await owner.commit({ records: [record("execution/e", 1)] });
    await flush();
    const batch = owner.batch({ records: [record("execution/e", 2)] });
    await expect(store.journal.commit([batch])).rejects.toMatchObject({ code: "STORE_LOST" });
    expect(await keys()).toEqual([]);
    await store.close();
  });

  test("is STORE_LOST also where another store was made in its place", async () => {
    const store = await openRedis({ url: server.url, host: nodeHost });
    await flush();
    const other = await openRedis({ url: server.url, host: nodeHost });
    await expect(store.inbox.append([message('"m"')])).rejects.toMatchObject({ code: "STORE_LOST" });
    expect((await other.queries.counts()).inbox).toBe(0);
    await store.close();
    await other.close();
  });

  test("is STORE_LOST for one who opens that very store, and none is made", async () => {
    const prefix = nodeHost.id();
    const opening = openRedis({ url: server.url, host: nodeHost, prefix, incarnation: "another" });
    await expect(opening).rejects.toMatchObject({ code: "STORE_LOST" });
    expect((await keys()).filter((key) => key.startsWith(prefix))).toEqual([]);
  });

  test("stays lost: what comes back later is not trusted", async () => {
    const store = await openRedis({ url: server.url, host: nodeHost });
    await flush();
    await expect(store.tasks.lapse(1)).rejects.toMatchObject({ code: "STORE_LOST" });
    const other = await openRedis({ url: server.url, host: nodeHost });
    await expect(store.records.get([{ scope: "s", hash: "h" }])).rejects.toMatchObject({ code: "STORE_LOST" });
    await store.close();
    await other.close();
  });

  test("is noticed by an engine that has nothing to do, and by a server that comes back empty", async () => {
    await flush();
    const store = await openRedis({ url: server.url, host: nodeHost, partitions: 2 });
    const engine = new Engine({ store, host: nodeHost, machines: [], settings: { renewMs: 50 } });
    engine.start();
    await expect.poll(async () => (await keys()).some((key) => key.includes(":partition:"))).toBe(true);
    await server.end("SIGKILL");
    await rm(`${server.folder}/appendonlydir`, { recursive: true });
    await server.begin();
    expect(await store.lost).toMatchObject({ code: "STORE_LOST" });
    expect((await keys()).filter((key) => key !== "millrace:run")).toEqual([]);
    await engine.stop();
    await store.close();
  });
});
