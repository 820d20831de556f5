import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { Seats } from "../../src/drivers/postgres/seats.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { appendTexts, lease, leaseRequest, read, readRequest, task } from "../../src/store/conformance/things.ts";
import type { LeasedTask, Store } from "../../src/store/contract.ts";

import { postgresService } from "../support/services.ts";

let service: Service;
const open: Store[] = [];
beforeAll(async () => {
  service = await postgresService();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of open.splice(0)) await store.close();
});
afterAll(() => service.stop());

const LONG_MS = 60_000;

/** In which nobody looks once a second: who is left waiting by mistake waits for good. */
const patient: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms >= 100 ? LONG_MS : ms, signal) };

async function openStore(host: Host = patient): Promise<Store> {
  const store = await openPostgres({ url: service.url, schema: `test_${nodeHost.id()}`, host, partitions: 4 });
  open.push(store);
  return store;
}

const tokensOf = (tasks: readonly LeasedTask[]): readonly string[] => tasks.map(({ token }) => token);

/** Lets the next call of the database be answered by an error, after it has done its work or instead. */
function failOnce(method: "atOnce" | "run", isDone: boolean): void {
  const original = Database.prototype[method] as (this: Database, ...args: unknown[]) => Promise<unknown>;
  vi.spyOn(Database.prototype, method as "run").mockImplementationOnce(async function (this: Database, ...args) {
    if (isDone) await original.apply(this, args);
    throw new Error("the connection is gone");
  });
}

describe("workers that wait beside the one who commits", () => {
  test("are not taken for fed by a look of another that has left something", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: ["a", "b", "c", "d"].map((token) => task(token)) });
    const leases = await Promise.all([1, 2, 3, 4].map(() => lease(store, { max: 1, waitMs: LONG_MS })));
    expect(leases.flatMap(tokensOf).toSorted()).toEqual(["a", "b", "c", "d"]);
  });

  test("look again after a look that has failed", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    expect(await lease(store, { waitMs: 0 })).toEqual([]);
    await owner.commit({ tasks: [task("t")] });
    failOnce("run", false);
    await expect(lease(store, { waitMs: LONG_MS })).rejects.toThrow("gone");
    expect(tokensOf(await lease(store, { waitMs: LONG_MS }))).toEqual(["t"]);
    expect((await read(store)).messages).toEqual([]);
    await appendTexts(store, ['"a"']);
    failOnce("run", false);
    await expect(store.inbox.read([readRequest()], LONG_MS)).rejects.toThrow("gone");
    expect((await store.inbox.read([readRequest()], LONG_MS))[0]!.messages).toEqual(['"a"']);
  });

  test("have the tasks of a commit whose answer was lost, once it is known that it is there", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    const waiting = lease(store, { waitMs: LONG_MS });
    await sleep(200);
    const batch = owner.batch({ tasks: [task("t")] });
    failOnce("atOnce", true);
    await expect(owner.send(batch)).rejects.toThrow("gone");
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    expect(tokensOf(await waiting)).toEqual(["t"]);
  });

  test("do not have what was withdrawn while the answer was lost", async () => {
    const schema = `test_${nodeHost.id()}`;
    const store = await openPostgres({ url: service.url, schema, host: nodeHost, partitions: 4 });
    open.push(store);
    const owner = await acquire(store);
    const waiting = lease(store, { waitMs: 1_500 });
    await sleep(200);
    const batch = owner.batch({ tasks: [task("t")] });
    failOnce("atOnce", true);
    await expect(owner.send(batch)).rejects.toThrow("gone");
    const client = new Client(service.url);
    await client.connect();
    const { rowCount } = await client.query(`update ${schema}.tasks set is_revoked = true`);
    await client.end();
    expect([rowCount, await owner.send(batch)]).toEqual([1, { kind: "alreadyApplied" }]);
    expect(await waiting).toEqual([]);
  });

  test("are given nothing when the store is closed", async () => {
    const store = await openStore();
    const waiting = lease(store, { waitMs: LONG_MS });
    await sleep(200);
    await store.close();
    expect(await waiting).toEqual([]);
  });
});

describe("a seat", () => {
  const seatOf = (parts: Parameters<typeof leaseRequest>[0] = {}) => {
    const seats = new Seats();
    const seat = seats.take(leaseRequest(parts), () => {});
    seat.wait();
    return { seats, seat };
  };

  test("is given tasks queue by queue as it asks, the more urgent first, and no more than it has room for", async () => {
    const { seats, seat } = seatOf({ queues: ["a", "b"], max: 3 });
    const tasks = [
      task("b9", { queue: "b", priority: 9 }),
      task("a0", { queue: "a" }),
      task("c", { queue: "c", priority: 10 }),
      task("b1", { queue: "b", priority: 1 }),
      task("a5", { queue: "a", priority: 5 }),
    ];
    for (const { task: one } of seats.reserve(tasks).values()) seat.give(one, "ref");
    expect(tokensOf(await seat.rise())).toEqual(["a5", "a0", "b9"]);
    expect(seats.reserve(tasks).size).toBe(0);
  });

  test("waits for a second commit that has reserved for it before it rose from the first", async () => {
    const { seats, seat } = seatOf({ max: 2 });
    const [first] = seats.reserve([task("first")]).values();
    seat.give(first!.task, "1");
    const [second] = seats.reserve([task("second")]).values();
    const rising = seat.rise();
    await sleep(10);
    seat.give(second!.task, "2");
    expect(tokensOf(await rising)).toEqual(["first", "second"]);
  });
});
