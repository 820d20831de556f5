import { createClient, type RedisClientType } from "@redis/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { messageText } from "../../src/core/message.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Store } from "../../src/store/contract.ts";
import { Worker } from "../../src/worker/worker.ts";
import { node, workflow } from "../support/workflows.ts";

const PARTITIONS = 4;
const DAY_MS = 86_400_000;
const STEPS = workflow([node("a"), node("b", ["a"]), node("c", ["b"])]);

/** Real engine and worker on a Redis that a test fills: what counts is that it goes on. */
describe("a Redis without room", () => {
  let server: OwnRedis;
  let client: RedisClientType;
  let store: Store;
  let running: readonly { stop(): Promise<void> }[] = [];
  beforeEach(async () => {
    server = await startOwnRedis();
    client = createClient({ url: server.url });
    await client.connect();
    store = await openRedis({ url: server.url, host: nodeHost, partitions: PARTITIONS });
  });
  afterEach(async () => {
    for (const part of running) await part.stop();
    await store.close();
    client.destroy();
    await server.stop();
  });

  function run(retentionMs: number, handler: () => Promise<number>): void {
    const settings = { renewMs: 50, idleMs: 50, retentionMs };
    const engine = new Engine({ store, host: nodeHost, machines: [executionMachine], settings });
    const handlers = new Map([["step", handler]]);
    const worker = new Worker({ store, host: nodeHost, handlers, queues: ["step"], settings: { slots: 50 } });
    engine.start();
    worker.start();
    running = [worker, engine];
  }

  async function start(id: string): Promise<string> {
    const text = JSON.stringify(STEPS);
    const definition = contentHash(text);
    const put = await store.records.put([{ scope: "definition", hash: definition, text }], { refusable: true });
    const to = entityKey("execution", id);
    const body = { kind: "start" as const, workflow: "w", definition, input: { json: null }, bodyHash: "b" };
    const message = messageText({ id: nodeHost.id(), to, by: "test", trace: "", tenant: "default", body });
    const place = { partition: partitionOf(to, PARTITIONS), start: true, text: message };
    const [outcome] = await store.inbox.append([place]);
    return put === "refused" ? "refused" : outcome!;
  }

  async function classes(): Promise<Readonly<Record<string, number>>> {
    const names = ["open", "endedWell", "endedBadly"] as const;
    const sizes = await Promise.all(names.map((name) => client.zCard(`millrace:headers:${name}`)));
    return Object.fromEntries(names.map((name, i) => [name, sizes[i]!]));
  }

  test("ends what it has, removes it, and is as small as it was", async () => {
    const MANY = 40;
    const gate = Promise.withResolvers<void>();
    run(1000, async () => {
      await gate.promise;
      return 1;
    });
    const before = await client.dbSize();
    for (let i = 0; i < MANY; i++) expect(await start(`e${i}`)).toBe("appended");
    await expect.poll(classes).toEqual({ open: MANY, endedWell: 0, endedBadly: 0 });
    await expect.poll(async () => (await store.queries.counts()).leased).toBe(MANY);
    const crowded = await client.dbSize();
    await client.configSet("maxmemory", "1");
    expect(await start("refused")).toBe("refused");
    gate.resolve();
    await expect.poll(classes, { timeout: 30_000 }).toEqual({ open: 0, endedWell: 0, endedBadly: 0 });
    expect(crowded).toBeGreaterThan(before + MANY);
    // What is left is of the store, not of an execution: inboxes, partitions, the queue with its one line, processes.
    expect(await client.dbSize()).toBeLessThan(before + 2 * PARTITIONS + 15);
    expect(await client.keys("millrace:*execution*")).toEqual([]);
    expect((await store.queries.counts()).inbox).toBe(0);
  });

  test("makes room for new work by removing what has ended, and takes it again", async () => {
    run(DAY_MS, async () => 1);
    for (let i = 0; i < 40; i++) await start(`e${i}`);
    await expect.poll(classes).toEqual({ open: 0, endedWell: 40, endedBadly: 0 });
    const memory = await client.info("memory");
    const used = Number(/^used_memory:(\d+)/m.exec(memory)![1]);
    await client.configSet("maxmemory", String(Math.ceil(used / 0.9)));
    await expect.poll(classes).toEqual({ open: 0, endedWell: 0, endedBadly: 0 });
  });
});
