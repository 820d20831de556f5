import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { SQL } from "../../src/drivers/postgres/tasks.ts";
import { WakeUps } from "../../src/drivers/postgres/wake-ups.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { inboxTexts, lease, readRequest, record, settlement, task } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
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
const QUERY = Reflect.get(Client.prototype, "query") as (...given: unknown[]) => unknown;

/** In which nobody looks once a second: who is left waiting by mistake waits for good. */
const isSecond = (ms: number): boolean => ms >= 900 && ms <= 1_100;
const patient: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(isSecond(ms) ? LONG_MS : ms, signal) };

/** As if each were a process of its own. */
async function openTwo(): Promise<readonly [engine: Store, worker: Store]> {
  const schema = `test_${nodeHost.id()}`;
  const options = { url: service.url, schema, host: patient, partitions: 4 };
  const stores = [await openPostgres(options), await openPostgres(options)] as const;
  open.push(...stores);
  return stores;
}

/** An owner, and a worker elsewhere that has leased its first task and waits for more. */
async function begin() {
  const [engine, worker] = await openTwo();
  const owner = await acquire(engine);
  const waiting = lease(worker, { waitMs: LONG_MS });
  await sleep(200);
  await owner.commit({ tasks: [task("first")], records: [record("e/1", 1)] });
  const [first] = await waiting;
  return { engine, worker, owner, first: first! };
}

describe("a result of a worker in another process", () => {
  test("goes into the commit of an owner that waits, and the tasks of that come back with the answer", async () => {
    const { engine, worker, owner, first } = await begin();
    const next = lease(worker, { waitMs: LONG_MS });
    const reading = engine.inbox.read([readRequest()], LONG_MS);
    await sleep(200);
    const run = vi.spyOn(Database.prototype, "run");
    let settled: readonly string[] | undefined;
    const settling = worker.tasks.settle([settlement(first, "completed")]).then((outcomes) => (settled = outcomes));
    const [read] = await reading;
    expect(read!.messages).toEqual(['"completed"']);
    // It is said to nobody before the commit.
    await sleep(50);
    expect(settled).toBeUndefined();
    await owner.commit({ consumed: read!.position, tasks: [task("second")], records: [record("e/1", 2)] });
    expect(await settling).toEqual(["settled"]);
    expect(await next).toMatchObject([{ token: "second" }]);
    const statements = run.mock.calls.map(([sql]) => sql);
    expect(statements.filter((sql) => sql === SQL.settle || sql === SQL.lease)).toEqual([]);
    vi.restoreAllMocks();
    // The lease is in the table, and the worker has the name that it needs.
    expect(await lease(engine, { waitMs: 0 })).toEqual([]);
    const [second] = await next;
    expect(await worker.tasks.heartbeat([second!], 1000)).toEqual({ lost: [], cancelled: [] });
    expect(await inboxTexts(engine)).toEqual([]);
  });

  test("is posted for it where no owner waits", async () => {
    const { engine, worker, first } = await begin();
    expect(await worker.tasks.settle([settlement(first, "completed")])).toEqual(["settled"]);
    expect(await inboxTexts(engine)).toEqual(['"completed"']);
  });

  test("is posted by the worker itself, if the owner's process has gone", async () => {
    const { engine, worker, first } = await begin();
    await engine.close();
    expect(await worker.tasks.settle([settlement(first, "completed")])).toEqual(["settled"]);
    expect(await inboxTexts(worker)).toEqual(['"completed"']);
  });

  test("waits once for an owner that does not hear, and not with every result", async () => {
    const query = vi.spyOn(Client.prototype, "query");
    // As behind a pooler, which gives the connection to somebody else.
    query.mockImplementation(function (this: Client, ...given: unknown[]): unknown {
      const isListen = typeof given[0] === "string" && given[0].startsWith("listen");
      return Reflect.apply(QUERY, this, isListen ? ["select 1"] : given);
    });
    const schema = `test_${nodeHost.id()}`;
    const options = { url: service.url, schema, host: nodeHost, partitions: 1 };
    const engine = await openPostgres(options);
    query.mockRestore();
    const worker = await openPostgres(options);
    open.push(engine, worker);
    const owner = await acquire(engine);
    const hurried = vi.spyOn(WakeUps.prototype, "hurry");
    for (let i = 0; i < 4; i++) {
      const waiting = lease(worker, { waitMs: LONG_MS });
      await sleep(100);
      await owner.commit({ tasks: [task(`t${i}`)], records: [record("e/1", i + 1)] });
      const [one] = await waiting;
      expect(await worker.tasks.settle([settlement(one!, "completed")])).toEqual(["settled"]);
    }
    expect(hurried.mock.results.filter(({ value }) => value === true)).toHaveLength(1);
  });

  test("that is a failure goes to the store, which knows whether it counts", async () => {
    const { engine, worker, first } = await begin();
    const reading = engine.inbox.read([readRequest()], LONG_MS);
    await sleep(100);
    expect(await worker.tasks.settle([settlement(first, "failed")])).toEqual(["settled"]);
    expect(await worker.tasks.settle([settlement(first, "failed")])).toEqual(["stale"]);
    expect((await reading)[0]!.messages).toEqual(['"failed"']);
  });
});

describe("a hint that travels behind a commit", () => {
  test("is no news to the process that sends it", async () => {
    const [engine] = await openTwo();
    const owner = await acquire(engine);
    const watching = engine.journal.watch(0, "e/2", 0, 600);
    await sleep(200);
    const run = vi.spyOn(Database.prototype, "run");
    await owner.commit({ tasks: [task("t")], records: [record("e/1", 1)] });
    await sleep(200);
    // Who watches another entity here was told by the commit that it is not meant.
    expect(run).not.toHaveBeenCalled();
    expect(await watching).toBe(0);
  });
});
