import { createClient } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { inboxTexts, message, record, task } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";

/** Longer than a busy machine keeps a server from answering. */
const COMMAND_MS = 1500;
/** Nothing here is about the disk, which may take its time; nor has a replica to wait for others. */
const SETTINGS = { appendfsync: "no", "repl-diskless-sync-delay": "0" };

describe("a connection to Redis that breaks", () => {
  let server: OwnRedis;
  let proxy: FaultProxy;
  let store: Store;
  beforeAll(async () => {
    server = await startOwnRedis(SETTINGS);
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    proxy = await startFaultProxy(server.port);
    const url = `redis://127.0.0.1:${proxy.port}`;
    store = await openRedis({
      url,
      host: nodeHost,
      prefix: nodeHost.id(),
      commandMs: COMMAND_MS,
      partitions: 4,
      transactionsFrom: 0,
    });
  });
  afterEach(async () => {
    await store.close();
    await proxy.close();
  });

  for (const fault of ["cut", "swallow"] as const) {
    test(`a message whose answer is lost (${fault}) is there once, and its sender hears that nobody knows`, async () => {
      await store.inbox.append([message('"first"')]);
      proxy.answers = fault;
      const appending = store.inbox.append([message('"second"')]);
      await expect(appending).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      proxy.answers = "pass";
      expect(await inboxTexts(store)).toEqual(['"first"', '"second"']);
    });

    test(`a commit whose answer is lost (${fault}) is found applied by its resend`, async () => {
      const owner = await acquire(store);
      // From here on the server knows the script: the answer that is lost is not that it does not.
      await owner.commit({});
      // And nothing else is under way that it would wait for.
      await inboxTexts(store);
      const batch = owner.batch({ records: [record("execution/e", 1)], tasks: [task("t")] });
      proxy.answers = fault;
      await expect(store.journal.commit([batch])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      proxy.answers = "pass";
      expect(await store.journal.commit([batch])).toEqual([{ kind: "alreadyApplied" }]);
      const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/e" }]);
      expect(loaded?.records).toHaveLength(1);
    });

    test(`a commit that is a transaction, and whose answer is lost (${fault}), is found applied by its resend`, async () => {
      const owner = await acquire(store);
      for (const version of [1, 2]) await owner.commit({ records: [record("execution/e", version)] });
      await inboxTexts(store);
      const batch = owner.batch({ records: [record("execution/e", 3)] });
      proxy.answers = fault;
      await expect(store.journal.commit([batch])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      proxy.answers = "pass";
      expect(await store.journal.commit([batch])).toEqual([{ kind: "alreadyApplied" }]);
      const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/e" }]);
      expect(loaded?.records).toHaveLength(3);
    });

    test(`nobody waits for ever on a connection for waiting (${fault})`, async () => {
      const reading = store.inbox.read([{ partition: 0, after: null, limit: 10, maxChars: 100 }], 30_000);
      const refused = expect(reading).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await expect.poll(() => proxy.connections).toBeGreaterThan(1);
      proxy.answers = fault;
      await refused;
      proxy.answers = "pass";
      expect(await inboxTexts(store)).toEqual([]);
    });
  }

  test("a commit that waits for what is under way before it is refused with it, and connects to nothing first", async () => {
    const owner = await acquire(store);
    for (const version of [1, 2]) await owner.commit({ records: [record("execution/e", version)] });
    proxy.answers = "swallow";
    const connections = proxy.connections;
    const first = expect(
      store.journal.commit([owner.batch({ records: [record("execution/e", 3)] })]),
    ).rejects.toThrow();
    const neighbour = { ...owner.batch(), fence: { ...owner.fence, partition: 1 } };
    await expect(store.journal.commit([neighbour])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(proxy.connections).toBeLessThanOrEqual(connections);
    await first;
  });

  test("what is asked while the server is away is refused, and not sent when it is back", async () => {
    await server.end("SIGKILL");
    await expect(store.inbox.append([message('"away"')])).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await server.begin();
    await expect.poll(() => inboxTexts(store).catch(() => null)).toEqual([]);
  });

  test("a server that was made a replica is left for its successor", async () => {
    const successor = await startOwnRedis(SETTINGS);
    onTestFinished(() => successor.stop());
    const [old, next] = await Promise.all(
      [server, successor].map(async ({ url }) => {
        const client = await createClient({ url }).connect();
        onTestFinished(() => client.close());
        return client;
      }),
    );
    try {
      await store.inbox.append([message('"before"')]);
      await next!.sendCommand(["REPLICAOF", "127.0.0.1", String(server.port)]);
      await expect.poll(() => next!.sendCommand(["INFO", "replication"])).toContain("master_link_status:up");
      await next!.sendCommand(["REPLICAOF", "NO", "ONE"]);
      // Nobody's connection is cut, as by a failover that no sentinel has ordered.
      proxy.targetPort = successor.port;
      await old!.sendCommand(["REPLICAOF", "127.0.0.1", String(successor.port)]);
      const append = (): Promise<unknown> => store.inbox.append([message('"after"')]);
      await expect
        .poll(
          () =>
            append().then(
              () => "taken",
              () => "refused",
            ),
          { timeout: 10_000 },
        )
        .toBe("taken");
      expect(await inboxTexts(store)).toEqual(['"before"', '"after"']);
    } finally {
      await old!.sendCommand(["REPLICAOF", "NO", "ONE"]);
    }
  });

  test("a connection for waiting that broke while nobody waited is nobody's trouble", async () => {
    const read = (waitMs: number): Promise<unknown> =>
      store.inbox.read([{ partition: 0, after: null, limit: 10, maxChars: 100 }], waitMs);
    await read(50);
    await server.end("SIGKILL");
    await server.begin();
    await expect.poll(() => inboxTexts(store).catch(() => null)).toEqual([]);
    await read(50);
  });

  test("a store that is closed while it waits for its server does not wait any longer", async () => {
    await server.end("SIGKILL");
    const appending = store.inbox.append([message('"away"')]).catch((error: unknown) => error);
    await store.close();
    expect(await appending).toMatchObject({ code: "STORE_UNAVAILABLE" });
    await server.begin();
  });

  test("a server that forgot the scripts is told them again", async () => {
    await store.inbox.append([message('"first"')]);
    const client = await createClient({ url: server.url }).connect();
    await client.scriptFlush();
    client.destroy();
    await store.inbox.append([message('"second"')]);
    expect(await inboxTexts(store)).toEqual(['"first"', '"second"']);
  });

  test("a server that takes the connection and says nothing is given up in time", async () => {
    proxy.answers = "swallow";
    const url = `redis://127.0.0.1:${proxy.port}`;
    const opening = openRedis({ url, host: nodeHost, connectMs: 300, commandMs: COMMAND_MS });
    await expect(opening).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  test("a worker without queues waits like any other, and is answered when the store is closed", async () => {
    const request = { worker: "w", queues: [], max: 1, leaseMs: 1000 };
    let answers = 0;
    const brief = store.tasks.lease({ ...request, waitMs: 200 }).then(() => answers++);
    const long = store.tasks.lease({ ...request, waitMs: 60_000 }).then((tasks) => tasks);
    await nodeHost.sleep(50);
    expect(answers).toBe(0);
    await brief;
    await store.close();
    expect(await long).toEqual([]);
  });
});
