import { createClient } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import { message, task } from "../../src/store/conformance/things.ts";
import type { LeasedTask, Store } from "../../src/store/contract.ts";

describe("what a process does on Redis itself it need not hear of from the server", () => {
  let server: OwnRedis;
  let client: ReturnType<typeof createClient>;
  let store: Store;
  let other: Store;
  let owner: Owner;
  let monitor: typeof client;
  const monitored: string[] = [];

  beforeAll(async () => {
    server = await startOwnRedis({ appendfsync: "no" });
    client = createClient({ url: server.url });
    await client.connect();
    monitor = client.duplicate();
    await monitor.connect();
    await monitor.monitor((line) => monitored.push(line));
  });
  afterAll(async () => {
    monitor.destroy();
    client.destroy();
    await server.stop();
  });
  beforeEach(async () => {
    const prefix = nodeHost.id();
    const open = (): Promise<Store> => openRedis({ url: server.url, host: nodeHost, prefix, partitions: 4 });
    store = await open();
    other = await open();
    owner = await acquire(store);
    // From here on there is the queue, and the server knows the scripts.
    await owner.commit({ tasks: [task("first")] });
    await lease(store, 1, 0);
  });
  afterEach(async () => {
    await store.close();
    await other.close();
  });

  function lease(from: Store, max: number, waitMs: number): Promise<readonly LeasedTask[]> {
    return from.tasks.lease({ worker: "w", queues: [task("first").queue], max, leaseMs: 60_000, waitMs });
  }

  /** Commands that wait at the server. */
  async function blocked(): Promise<number> {
    const [, count] = /blocked_clients:(\d+)/.exec(await client.info("clients"))!;
    return Number(count);
  }

  /** Until now: the monitor tells of what was done before the echo. */
  async function rings(): Promise<number> {
    const mark = nodeHost.id();
    await client.echo(mark);
    await expect.poll(() => monitored.some((line) => line.includes(mark))).toBe(true);
    return monitored.filter((line) => /"RPUSH" "[^"]*:bell:/i.test(line)).length;
  }

  test("a task goes to who waits for it here, and rings for nobody", async () => {
    const leasing = lease(store, 5, 20_000);
    await expect.poll(blocked).toBe(1);
    const before = await rings();
    await owner.commit({ tasks: [task("second")] });
    expect((await leasing).map(({ token }) => token)).toEqual([task("second").token]);
    const again = lease(store, 5, 20_000);
    await owner.commit({ tasks: [task("third")] });
    expect(await again).toHaveLength(1);
    expect(await rings()).toBe(before);
  });

  test("a task that comes while a lease is under way rings: the lease may have been before it", async () => {
    await owner.commit({ tasks: [task("before")] });
    const before = await rings();
    const leasing = lease(store, 5, 20_000);
    await owner.commit({ tasks: [task("meanwhile")] });
    expect((await leasing).map(({ token }) => token)).toEqual(["before"]);
    expect((await rings()) - before).toBe(1);
    expect((await lease(store, 5, 20_000)).map(({ token }) => token)).toEqual(["meanwhile"]);
  });

  test("what is more than those who wait here take rings for others", async () => {
    const leasing = lease(store, 2, 20_000);
    await expect.poll(blocked).toBe(1);
    const elsewhere = lease(other, 5, 20_000);
    await expect.poll(blocked).toBe(2);
    await owner.commit({ tasks: [task("a"), task("b"), task("c")] });
    expect(await leasing).toHaveLength(2);
    expect(await elsewhere).toHaveLength(1);
  });

  test("a bell for somebody who waits here no more goes back to those who wait elsewhere", async () => {
    const leasing = lease(store, 1, 20_000);
    await expect.poll(blocked).toBe(1);
    await owner.commit({ tasks: [task("a")] });
    await leasing;
    // The command it had waited by is still there, and the server serves it before the other.
    const elsewhere = lease(other, 5, 20_000);
    await expect.poll(blocked).toBe(2);
    const before = await rings();
    await owner.commit({ tasks: [task("b")] });
    expect(await elsewhere).toHaveLength(1);
    expect((await rings()) - before).toBe(2);
  });

  test("messages are read right behind what brings them, and who reads after that waits as long as it is told", async () => {
    const request = { partition: 2, after: null, limit: 10, maxChars: 1000 };
    const reading = store.inbox.read([request], 20_000);
    await expect.poll(blocked).toBe(1);
    await store.inbox.append([message('"a"', { partition: 2 })]);
    const [read] = await reading;
    expect(read?.messages).toEqual(['"a"']);
    const startedMs = performance.now();
    expect(await store.inbox.read([{ ...request, after: read!.position }], 50)).toMatchObject([{ messages: [] }]);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(45);
  });
});
