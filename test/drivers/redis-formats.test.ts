import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient, type RedisClientType } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import {
  ENTITY,
  header,
  inboxTexts,
  lease,
  listing,
  OTHER,
  record,
  settlement,
  snapshot,
} from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { redisService } from "../support/services.ts";

/** A store as format 1 was written by the release that had it: the commands of its scripts, one on a line. */
const FORMAT_1 = readFileSync(join(import.meta.dirname, "redis/formats/format-1.jsonl"), "utf8");
const COMMANDS = FORMAT_1.trim()
  .split("\n")
  .map((line) => JSON.parse(line) as readonly string[]);
/** By how much the end of a lease stood before its time in format 1. */
const AGE_MS = 2 ** 36;
const ODD_QUEUE = "o]dd \n";

describe("a store of format 1 on Redis", () => {
  let service: Service;
  let client: RedisClientType;
  let prefix: string;
  let stores: Store[] = [];
  beforeAll(async () => {
    service = await redisService();
    client = createClient({ url: service.url });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await service.stop();
  });
  beforeEach(async () => {
    prefix = `test-${nodeHost.id()}`;
    for (const command of COMMANDS)
      await client.sendCommand(command.map((word) => word.replace(/^old:/, `${prefix}:`)));
    // Whoever held it then holds nothing now.
    await client.hSet(`${prefix}:partition:0`, "until", 0);
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
    stores = [];
    for (const key of await client.keys(`${prefix}:*`)) await client.unlink(key);
  });

  async function open(incarnation?: string): Promise<Store> {
    const named = incarnation === undefined ? {} : { incarnation };
    const store = await openRedis({ url: service.url, host: nodeHost, prefix, partitions: 4, ...named });
    stores.push(store);
    return store;
  }

  test("is opened with all that is in it, under its own incarnation", async () => {
    const before = (await client.hGet(`${prefix}:store`, "incarnation"))!;
    const store = await open(before);
    expect(store.capabilities.incarnation).toBe(before);
    const loaded = await store.journal.load([ENTITY, OTHER].map((entity) => ({ partition: 0, entity })));
    expect(loaded).toEqual([
      { entity: ENTITY, snapshot: snapshot(ENTITY, 3), records: [record(ENTITY, 4)], wakeAtMs: 5000 },
      { entity: OTHER, snapshot: null, records: [record(OTHER, 1)], wakeAtMs: null },
    ]);
    expect(await store.journal.watch(0, ENTITY, 0, 0)).toBe(4);
    const { items } = await store.queries.headers({ limit: 5 });
    expect(items.map(({ entity }) => entity).sort()).toEqual([ENTITY, OTHER]);
    expect(await store.queries.header(0, ENTITY)).toEqual(header(ENTITY));
    expect((await store.queries.listing({ list: "reviews", limit: 5 })).items).toEqual([listing("reviews", "1")]);
    expect(await inboxTexts(store)).toEqual(['"waiting"']);
    expect(await client.keys(`${prefix}:entity:*`)).toEqual([]);
  });

  test("goes on where it was: versions, places in the lists, tasks that wait and tasks that are leased", async () => {
    const store = await open();
    const { queued, leased, oldestAtMs } = await store.queries.counts();
    expect([queued, leased]).toEqual([{ queue: 1, [ODD_QUEUE]: 1 }, 2]);
    expect(oldestAtMs![ODD_QUEUE]).toBe(
      Number(COMMANDS.find(([name]) => name === "XADD")![2]!.slice(0, 10)) * 1000 + 907,
    );
    const claimed = COMMANDS.find(([name]) => name === "XCLAIM")!;
    const untilMs = Number(claimed[claimed.indexOf("TIME") + 1]) + AGE_MS;
    const until = (await client.zScore(`${prefix}:leases:0:queue`, "leased"))!;
    expect(Math.abs(until - untilMs)).toBeLessThan(1000);
    expect((await lease(store, { queues: ["queue", ODD_QUEUE], max: 5 })).map(({ token }) => token)).toEqual([
      "queued",
      "urgent",
    ]);
    const named = (token: string): { ref: string; token: string } => ({ ref: `${token} 0:queue`, token });
    const beats = await store.tasks.heartbeat([named("leased"), named("revoked")], 60_000);
    expect(beats).toEqual({ lost: [], cancelled: ["revoked"] });
    // A worker over HTTP knows it by the name that it had before.
    const before = [{ ref: "consumer 1794886061907-0 0:queue", token: "leased" }];
    expect(await store.tasks.heartbeat(before, 60_000)).toEqual({ lost: [], cancelled: [] });
    const results = [{ ...settlement({ ...named("leased"), partition: 0 } as never, "failed") }];
    expect(await store.tasks.settle(results)).toEqual(["settled"]);
    const owner = await acquire(store);
    await expect(owner.commit({ records: [record(ENTITY, 4)] })).rejects.toThrow(/VERSION/);
    await owner.commit({ records: [record(ENTITY, 5)], headers: [header(ENTITY, { class: "endedBadly" })] });
    expect((await store.queries.headers({ class: "open", limit: 5 })).items).toEqual([]);
    await owner.commit({ purge: [ENTITY, OTHER] });
    expect(await client.keys(`${prefix}:*execution*`)).toEqual([]);
  });

  test("is brought up to date by whoever comes next, if the first died over it, and by several at once", async () => {
    const before = await client.hGet(`${prefix}:store`, "incarnation");
    await client.hSet(`${prefix}:store`, { upgrading: before!, incarnation: "see id", format: "2" });
    const [one, other] = await Promise.all([open(), open()]);
    for (const store of [one, other]) {
      expect(store.capabilities.incarnation).toBe(before);
      expect((await store.queries.counts()).leased).toBe(2);
    }
  });

  test("fits nobody any more who knows no other format", async () => {
    const before = await client.hGet(`${prefix}:store`, "incarnation");
    await open();
    // What the scripts of that release compare, and what a start of it looks at.
    expect(await client.hGet(`${prefix}:store`, "incarnation")).not.toBe(before);
    expect(await client.hGet(`${prefix}:store`, "format")).toBe("2");
  });
});
