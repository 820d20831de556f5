import { setTimeout as sleep } from "node:timers/promises";
import { Client, DatabaseError } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { inboxTexts, lease, read, settlement, task } from "../../src/store/conformance/things.ts";
import type { LeasedTask, Store, Task } from "../../src/store/contract.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
let client: Client;
let schema: string;
const open: Store[] = [];
beforeAll(async () => {
  service = await postgresService();
});
beforeEach(async () => {
  schema = `test_${nodeHost.id()}`;
  client = new Client({ connectionString: service.url, options: `-c search_path=${schema}` });
  await client.connect();
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of open.splice(0)) await store.close();
  await client.end();
});
afterAll(() => service.stop());

const LONG_MS = 60_000;
const tasks = (count: number, parts: Partial<Task> = {}): readonly Task[] =>
  Array.from({ length: count }, (_, i) => task(`t${String(i).padStart(2, "0")}`, parts));
const tokensOf = (leased: readonly LeasedTask[]): readonly string[] => leased.map(({ token }) => token);

/** In which nobody looks once a second: who is left waiting by mistake waits for good. */
const patient: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms >= 100 ? LONG_MS : ms, signal) };

async function openStore(host: Host = nodeHost): Promise<Store> {
  const store = await openPostgres({ url: service.url, schema, host, partitions: 4 });
  open.push(store);
  return store;
}

/** Rows of packs, of tasks and of the inbox. */
async function counts(): Promise<readonly number[]> {
  const of = async (table: string): Promise<number> => {
    const { rows } = await client.query<{ count: number }>(`select count(*)::integer as count from ${table}`);
    return rows[0]!.count;
  };
  return [await of("packs"), await of("tasks"), await of("inbox")];
}

/** As a process of the release before says that it is alive. */
async function oldRelease(process: string, untilMs: number): Promise<void> {
  await client.query(`
    insert into registrations (process, role, text, until_ms) values ('${process}', 'engine', '{}', lease_ms() + ${untilMs})
    on conflict (process) do update set until_ms = excluded.until_ms`);
}

describe("tasks of one commit", () => {
  test("are one row, leased and settled as one, and their results are one row", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(20) });
    expect(await counts()).toEqual([1, 0, 0]);
    const leased = await lease(store);
    expect(tokensOf(leased)).toEqual(tasks(20).map(({ token }) => token));
    await store.tasks.settle(leased.map((one) => settlement(one, "completed")));
    expect(await counts()).toEqual([0, 0, 1]);
    const { messages, position } = await read(store);
    expect(messages).toHaveLength(20);
    await owner.commit({ consumed: position });
    expect(await counts()).toEqual([0, 0, 0]);
  });

  test("go together by queue and priority, and as many as fit into a page", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({
      tasks: [...tasks(4), ...tasks(4, { queue: "b" }).map((one) => ({ ...one, token: `b${one.token}` }))],
    });
    await owner.commit({ tasks: tasks(3, { queue: "few" }).map((one) => ({ ...one, token: `few ${one.token}` })) });
    expect(await counts()).toEqual([2, 3, 0]);
    const long = tasks(8, { queue: "long", text: JSON.stringify("x".repeat(1_500)) });
    await owner.commit({ tasks: long.map((one) => ({ ...one, token: `long ${one.token}` })) });
    expect(await counts()).toEqual([4, 3, 0]);
    const huge = tasks(8, { queue: "huge", text: JSON.stringify("ä".repeat(3_000)) });
    await owner.commit({ tasks: huge.map((one) => ({ ...one, token: `huge ${one.token}` })) });
    expect(await counts()).toEqual([4, 11, 0]);
    // Longer as bytes than as characters.
    const wide = tasks(4, { queue: "wide", text: JSON.stringify("語".repeat(1_000)) });
    await owner.commit({ tasks: wide.map((one) => ({ ...one, token: `wide ${one.token}` })) });
    expect(await counts()).toEqual([4, 15, 0]);
  });

  test("that hold what separates them go by themselves", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    const separator = `\u001d${"\u001c".repeat(15)}`;
    await owner.commit({ tasks: tasks(6, { text: `"${separator}"` }) });
    expect(await counts()).toEqual([0, 6, 0]);
    const leased = await lease(store);
    await owner.commit({ tasks: tasks(6, { queue: "b" }).map((one) => ({ ...one, token: `b${one.token}` })) });
    const packed = await lease(store, { queues: ["b"] });
    const results = [...leased, ...packed].map((one) => settlement(one, "completed", `"${separator}${one.token}"`));
    await store.tasks.settle(results);
    expect(await inboxTexts(store)).toEqual(results.map(({ text }) => text));
  });

  test("of another process are found by whoever waits, also while somebody with less room takes them apart", async () => {
    const [engine, one, other] = [await openStore(patient), await openStore(patient), await openStore(patient)];
    const owner = await acquire(engine);
    const leasing = [one, other].map((store) => lease(store, { max: 2, waitMs: LONG_MS }));
    await sleep(100);
    await owner.commit({ tasks: tasks(8) });
    const found = (await Promise.all(leasing)).flat();
    found.push(...(await lease(one, { max: 4, waitMs: LONG_MS })));
    while (found.length < 8) found.push(...(await lease(other, { max: 4, waitMs: LONG_MS })));
    expect(tokensOf(found).toSorted()).toEqual(tasks(8).map(({ token }) => token));
  });

  test("are leased as they are written to a worker of the same process that waits", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    const leasing = lease(store, { waitMs: LONG_MS });
    await sleep(100);
    await owner.commit({ tasks: tasks(10) });
    const leased = await leasing;
    expect(tokensOf(leased)).toEqual(tasks(10).map(({ token }) => token));
    expect((await client.query("select from packs where lease_until_ms is not null")).rowCount).toBe(1);
    expect(await store.tasks.settle(leased.map((one) => settlement(one, "failed")))).toEqual(
      leased.map(() => "settled"),
    );
    expect(await counts()).toEqual([0, 0, 1]);
  });

  test("that were leased to a worker by a commit of which nobody heard are free again when it is sent once more", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    const leasing = lease(store, { waitMs: 1_000 });
    await sleep(100);
    const original = Database.prototype["atOnce"] as (this: Database, ...args: unknown[]) => Promise<never>;
    vi.spyOn(Database.prototype, "atOnce").mockImplementationOnce(async function (this: Database, ...args) {
      await original.apply(this, args);
      throw new Error("the connection is gone");
    });
    const batch = owner.batch({ tasks: tasks(10) });
    await expect(owner.send(batch)).rejects.toThrow("the connection is gone");
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    const leased = await leasing;
    expect(tokensOf(leased.length > 0 ? leased : await lease(store))).toEqual(tasks(10).map(({ token }) => token));
  });

  test("that a careful commit of which nobody heard has leased one by one are free again when it is sent once more", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    const leasing = lease(store, { waitMs: 1_000 });
    await sleep(100);
    // What its guard says makes it look closer, and of that nobody hears.
    const guard = Object.assign(new DatabaseError("division by zero", 0, "error"), { code: "22012" });
    vi.spyOn(Database.prototype, "atOnce").mockRejectedValueOnce(guard);
    const original = Database.prototype["transaction"] as (this: Database, ...args: unknown[]) => Promise<never>;
    vi.spyOn(Database.prototype, "transaction").mockImplementationOnce(async function (this: Database, ...args) {
      await original.apply(this, args);
      throw new Error("the connection is gone");
    });
    const batch = owner.batch({ tasks: tasks(10) });
    await expect(owner.send(batch)).rejects.toThrow("the connection is gone");
    expect((await counts()).slice(0, 2)).toEqual([0, 10]);
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    const leased = await leasing;
    expect(tokensOf(leased.length > 0 ? leased : await lease(store))).toEqual(tasks(10).map(({ token }) => token));
  });

  test("that were locked by a look and left are found by others at once", async () => {
    const [engine, one, other] = [await openStore(patient), await openStore(patient), await openStore(patient)];
    const owner = await acquire(engine);
    for (let i = 0; i < 4; i++) {
      await owner.commit({ tasks: tasks(20).map((given) => ({ ...given, token: `${i} ${given.token}` })) });
    }
    // The first look locks all four packs and takes one of them; it is held up where it has them.
    const lock = 7_031_558_299;
    await client.query(`
      create function hold_up() returns trigger language plpgsql
        as 'begin perform pg_advisory_xact_lock(${lock}); return new; end';
      create trigger hold_up before update on packs for each row execute function hold_up()`);
    await client.query(`select pg_advisory_lock(${lock})`);
    const first = lease(one, { max: 32 });
    await sleep(100);
    const second = lease(other, { max: 32, waitMs: LONG_MS });
    await sleep(100);
    await client.query(`select pg_advisory_unlock(${lock})`);
    expect([(await first).length, (await second).length]).toEqual([20, 20]);
  });

  test("are settled by those alone who name them as they are", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(10) });
    const leased = await lease(store);
    const results = leased.map((one) => settlement(one, "failed"));
    const forged = results.map((one) => ({ ...one, token: `forged ${one.token}` }));
    expect(new Set(await store.tasks.settle(forged))).toEqual(new Set(["stale"]));
    expect(await store.tasks.settle(results)).toEqual(results.map(() => "settled"));
    expect(await inboxTexts(store)).toHaveLength(10);
    await owner.commit({ tasks: tasks(10) });
    // As if there were fewer of them.
    const again = (await lease(store)).map((one) => settlement(one, "failed"));
    const few = again.slice(0, 4).map((one) => ({ ...one, ref: one.ref.replace(/^(\d+\/\d+)\/10\//, "$1/4/") }));
    expect(await store.tasks.settle(few)).toEqual(few.map(() => "settled"));
    expect(await store.tasks.settle(again)).toEqual(again.map((_, i) => (i < 4 ? "stale" : "settled")));
    expect(await inboxTexts(store)).toHaveLength(20);
    const hostile = leased.map(({ token, partition }, i) => ({ ref: `1/${i}/10/\0`, token, partition }));
    const answers = await store.tasks.settle(hostile.map((one) => ({ ...one, outcome: "failed" as const, text: "1" })));
    expect(new Set(answers)).toEqual(new Set(["stale"]));
  });

  test("that are there by themselves already, by a mistake of ours, harm nobody", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(4) });
    await owner.commit({ tasks: tasks(4) });
    const leased: string[] = [];
    for (let i = 0; i < 8; i++) leased.push(...tokensOf(await lease(store, { max: 1 })));
    expect(new Set(leased)).toEqual(new Set(tasks(4).map(({ token }) => token)));
    await owner.commit({ revoke: ["t01"] });
  });

  test("are taken apart by a settlement of some, and the others keep the lease that they had", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(10) });
    const leased = await lease(store, { leaseMs: LONG_MS });
    const { rows: before } = await client.query<{ at: string }>("select lease_until_ms as at from packs");
    await store.tasks.settle(leased.slice(0, 5).map((one) => settlement(one, "completed")));
    expect(await counts()).toEqual([0, 5, 5]);
    const { rows: after } = await client.query<{ at: string }>("select distinct lease_until_ms as at from tasks");
    expect(after).toEqual(before);
  });

  test("that are free again are nobody's to fail", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(10) });
    const leased = await lease(store);
    await client.query("update packs set lease_until_ms = null");
    const outcomes = await store.tasks.settle(leased.map((one) => settlement(one, "failed")));
    expect(new Set(outcomes)).toEqual(new Set(["stale"]));
    expect(tokensOf(await lease(store))).toEqual(tasks(10).map(({ token }) => token));
  });

  test("may be settled whole while they are taken apart by somebody else: every result is there once", async () => {
    const [store, other] = [await openStore(), await openStore()];
    const owner = await acquire(store);
    for (let round = 0; round < 20; round++) {
      const queue = `q${round}`;
      await owner.commit({ tasks: tasks(10, { queue }).map((one) => ({ ...one, token: `${queue} ${one.token}` })) });
      const leased = await lease(store, { queues: [queue] });
      const results = leased.map((one) => settlement(one, round % 2 === 0 ? "completed" : "failed", `"${one.token}"`));
      const [outcomes] = await Promise.all([
        store.tasks.settle(results),
        other.tasks.heartbeat([{ ref: leased[3]!.ref, token: leased[3]!.token }], LONG_MS),
      ]);
      expect(outcomes).toEqual(results.map(() => "settled"));
      const { messages, position } = await read(store);
      expect([...messages].sort()).toEqual(results.map(({ text }) => text).sort());
      await owner.commit({ consumed: position });
      expect(await counts()).toEqual([0, 0, 0]);
    }
  });
});

describe("while a process of the release before is alive", () => {
  test("under a name that one of this release had, nothing is packed; what else is kept among them counts for nothing", async () => {
    const store = await openStore();
    await store.records.register({ process: "worker", role: "worker", text: "{}" }, LONG_MS);
    await oldRelease("answer:1", LONG_MS);
    const owner = await acquire(await openStore());
    await owner.commit({ tasks: tasks(4) });
    expect(await counts()).toEqual([1, 0, 0]);
    await oldRelease("worker", 2 * LONG_MS);
    const late = await openStore();
    await owner.commit({ tasks: tasks(4, { queue: "b" }).map((one) => ({ ...one, token: `b${one.token}` })) });
    await sleep(1_100);
    await owner.commit({ tasks: tasks(4, { queue: "c" }).map((one) => ({ ...one, token: `c${one.token}` })) });
    await sleep(100);
    const before = (await counts())[0];
    await owner.commit({ tasks: tasks(4, { queue: "d" }).map((one) => ({ ...one, token: `d${one.token}` })) });
    expect((await counts())[0]).toBe(before);
    expect(late).toBeDefined();
  });

  test("nothing is packed, and what is packed already is settled one by one", async () => {
    const store = await openStore();
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(10) });
    await oldRelease("old", LONG_MS);
    const late = await openStore();
    await owner.commit({ tasks: [] });
    // Whoever is there already looks once a second.
    await sleep(1_100);
    await owner.commit({ tasks: tasks(4, { queue: "look" }).map((one) => ({ ...one, token: `look ${one.token}` })) });
    await sleep(100);
    await owner.commit({ tasks: tasks(10, { queue: "b" }).map((one) => ({ ...one, token: `b${one.token}` })) });
    expect((await counts()).slice(0, 2)).toEqual([2, 10]);
    const leased = await lease(late);
    await late.tasks.settle(leased.map((one) => settlement(one, "completed")));
    expect(await counts()).toEqual([1, 10, 10]);
  });

  test("and packed again once it is gone", async () => {
    const store = await openStore();
    await oldRelease("old", LONG_MS);
    const owner = await acquire(store);
    await owner.commit({ tasks: tasks(4) });
    await sleep(1_100);
    await owner.commit({ tasks: tasks(4, { queue: "b" }).map((one) => ({ ...one, token: `b${one.token}` })) });
    await sleep(1_100);
    const before = await counts();
    await oldRelease("old", -1);
    await owner.commit({ tasks: tasks(4, { queue: "c" }).map((one) => ({ ...one, token: `c${one.token}` })) });
    await sleep(100);
    await owner.commit({ tasks: tasks(4, { queue: "d" }).map((one) => ({ ...one, token: `d${one.token}` })) });
    expect(before[1]).toBeGreaterThanOrEqual(4);
    expect((await counts())[0]).toBe(before[0]! + 1);
  });
});

test("a read that waits is woken by the results of a pack", async () => {
  const [store, worker] = [await openStore(), await openStore()];
  const owner = await acquire(store);
  await owner.commit({ tasks: tasks(30) });
  const leased = await lease(worker);
  const reading = store.inbox.read([{ partition: 0, after: null, limit: 1_000, maxChars: 1_000_000 }], LONG_MS);
  await sleep(100);
  await worker.tasks.settle(leased.map((one) => settlement(one, "completed")));
  expect((await reading)[0]!.messages).toHaveLength(30);
});
