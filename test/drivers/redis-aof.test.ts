import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";

const KEPT = "execution/kept";
const CUT = "execution/cut";
const NEXT = "execution/next";

/** Within `EXEC`, the last word of what a script has written. */
const CUT_BYTES = 5;

describe("a Redis that was shot while it wrote the end of a commit", () => {
  let server: OwnRedis;
  const open = (): Promise<Store> => openRedis({ url: server.url, host: nodeHost });

  beforeEach(async () => {
    server = await startOwnRedis();
    const store = await open();
    const owner = await acquire(store);
    await owner.commit({ records: [record(KEPT, 1)] });
    await owner.commit({ records: [record(CUT, 1)] });
    await store.close();
    await server.end("SIGKILL");
    const folder = join(server.folder, "appendonlydir");
    const last = (await readdir(folder))
      .filter((name) => name.endsWith(".incr.aof"))
      .sort()
      .at(-1)!;
    await truncate(join(folder, last), (await stat(join(folder, last))).size - CUT_BYTES);
    await server.begin();
  });
  afterEach(() => server.stop());

  async function restart(): Promise<void> {
    await server.end("SIGKILL");
    await server.begin();
  }

  /** Which of them are there, seen from outside. */
  async function journals(): Promise<readonly string[]> {
    const client = await createClient({ url: server.url }).connect();
    const found = await client.keys("millrace:journal:*");
    client.destroy();
    return found.map((key) => key.slice("millrace:journal:".length)).sort();
  }

  test("has not the commit, but brings it back with the next write if nobody sees to its AOF", async () => {
    expect(await journals()).toEqual([KEPT]);
    const client = await createClient({ url: server.url }).connect();
    await client.eval("redis.call('SET', 'a', 1) redis.call('SET', 'b', 2)");
    client.destroy();
    await restart();
    expect(await journals()).toEqual([CUT, KEPT].sort());
  });

  test("goes on from what it has, and has just that after the next starts", async () => {
    const store = await open();
    const owner = await acquireAfterLease(store);
    await owner.commit({ records: [record(NEXT, 1)] });
    await store.close();
    for (let i = 0; i < 2; i++) {
      await restart();
      expect(await journals()).toEqual([KEPT, NEXT]);
    }
  });

  test("is made whole also under a store that was open all the while, before it writes", async () => {
    const store = await open();
    const owner = await acquireAfterLease(store);
    await owner.commit({ records: [record(NEXT, 1)] });
    await restart();
    await expect.poll(() => store.tasks.lapse(1).catch(() => -1)).toBe(0);
    await owner.commit({ records: [record(NEXT, 2)] });
    const client = await createClient({ url: server.url }).connect();
    // One for each start of the server that a store has met: the first of this one was before the restart.
    expect(await client.info("commandstats")).toMatch(/cmdstat_bgrewriteaof:calls=1,/);
    client.destroy();
    await store.close();
  });

  /** The one who held it is gone without a word. */
  async function acquireAfterLease(store: Store): ReturnType<typeof acquire> {
    const client = await createClient({ url: server.url }).connect();
    await client.hSet("millrace:partition:0", "until", "0");
    client.destroy();
    return acquire(store);
  }
});
