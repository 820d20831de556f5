import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { LIST_QUERIES } from "../../src/drivers/postgres/queries.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import {
  deadLetter,
  ENTITY,
  header,
  lease,
  listing,
  message,
  OTHER,
  QUEUE,
  read,
  readRequest,
  record,
  reply,
  settlement,
  snapshot,
  task,
} from "../../src/store/conformance/things.ts";
import type { LeasedTask, Store } from "../../src/store/contract.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
let client: Client;
let schema: string;
beforeAll(async () => {
  service = await postgresService();
});
beforeEach(async () => {
  schema = `test_${nodeHost.id()}`;
  client = new Client({ connectionString: service.url, options: `-c search_path=${schema}` });
  await client.connect();
  return () => client.end();
});
afterAll(() => service.stop());

function open(): Promise<Store> {
  // By its name its sessions are told from those of other tests.
  const url = `${service.url}?application_name=${schema}`;
  return openPostgres({ url, schema, host: nodeHost, partitions: 4 });
}

async function rows<Row extends object>(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  return (await client.query<Row>(sql, [...values])).rows;
}

async function count(table: string): Promise<number> {
  return (await rows<{ count: number }>(`select count(*)::integer as count from ${table}`))[0]!.count;
}

describe("indexes", () => {
  const many = 20_000;
  const newest = [Number.MAX_SAFE_INTEGER, ""];
  const classes = ["open", "endedWell", "endedBadly"];
  const lists: readonly [name: keyof typeof LIST_QUERIES, index: string, values: readonly Value[]][] = [
    ["headersByClass", "headers_by_class", [["endedBadly"], ...newest, 0, 50]],
    ["headersByClass", "headers_by_class", [classes, ...newest, 0, 50]],
    ["headersByWorkflow", "headers_by_workflow", [classes, ...newest, 0, 50, "w7"]],
    ["headersByWorkflow", "headers_by_workflow", [["open"], ...newest, 0, 50, "w7"]],
    ["lettersByClass", "dead_letters_by_class", [["poison", "exhausted"], ...newest, 50]],
    ["lettersByQueue", "dead_letters_by_queue", [["poison"], ...newest, 50, "q7"]],
    ["lettersByEntity", "dead_letters_by_entity", [["poison", "exhausted"], ...newest, 50, "e/7", null]],
  ];

  test("give a page of any list, filtered or not, without looking at the others, by any plan of Postgres", async () => {
    await (await open()).close();
    await client.query(`
      insert into headers (entity, class, status, workflow, tenant, created_at_ms, version)
        select 'e/' || n, case when n % 100 = 0 then 'open' when n % 77 = 0 then 'endedBadly' else 'endedWell' end,
          's', 'w' || n % 50, 't', n, 1
        from generate_series(1, ${many}) as n;
      insert into dead_letters (id, class, queue, entity, at_ms, text)
        select 'l/' || n, case when n % 9 = 0 then 'poison' else 'exhausted' end, 'q' || n % 50, 'e/' || n % 5000, n, '{}'
        from generate_series(1, ${many}) as n;
      analyze`);
    for (const [name, index, values] of lists) {
      for (const mode of ["force_generic_plan", "force_custom_plan"]) {
        await client.query(`set plan_cache_mode = ${mode}`);
        await client.query(`prepare list as ${LIST_QUERIES[name]}`);
        const literals = values.map(literal);
        const plan = await rows<{ "QUERY PLAN": string }>(
          `explain (analyze, timing off) execute list (${literals.join(", ")})`,
        );
        const text = plan.map((row) => row["QUERY PLAN"]).join("\n");
        expect(text).toContain(index);
        expect(text).not.toContain("Seq Scan on");
        // Read from the end of the index: no row is looked at only to be thrown away.
        expect(text).not.toContain("Rows Removed by Filter");
        await client.query("deallocate list");
      }
    }
  });

  test("serve every statement of every role", async () => {
    // What made the indexes has read all tables.
    await (await open()).close();
    const made = await scansOfTables();
    const store = await open();
    await useEverything(store);
    await store.close();
    // These have a row, or one for each process, or are read by whoever opens the store.
    const few = ["clock", "registrations", "migrations", "store"];
    const used = await scansOfTables();
    expect([...used].filter(([table, scans]) => scans > made.get(table)! && !few.includes(table))).toEqual([]);
    expect(used.get("clock")).toBeGreaterThan(made.get("clock")!);
  });
});

type Value = string | number | null | readonly string[];

function literal(value: Value): string {
  if (value === null || typeof value === "number") return String(value);
  return typeof value === "string" ? `'${value}'` : `'{${value.join(",")}}'`;
}

/** How often each table was read from beginning to end, by sessions that have ended: that is when they tell. */
async function scansOfTables(): Promise<ReadonlyMap<string, number>> {
  const open = `select from pg_stat_activity where application_name = $1`;
  while ((await rows(open, [schema])).length > 0) await sleep(20);
  const found = await rows<{ name: string; scans: number }>(
    `select relname as name, seq_scan::integer as scans from pg_stat_user_tables where schemaname = $1`,
    [schema],
  );
  return new Map(found.map(({ name, scans }) => [name, scans]));
}

async function useEverything(store: Store): Promise<void> {
  const owner = await acquire(store);
  await store.inbox.append([message('"a"', { start: true }), message('"b"', { partition: 1 })]);
  const { position } = await read(store);
  await store.records.put([{ scope: ENTITY, hash: "h", text: "1" }]);
  await owner.commit({
    consumed: position,
    records: [record(ENTITY, 1), record(OTHER, 1)],
    snapshots: [snapshot(ENTITY, 1)],
    headers: [header(ENTITY), header(OTHER)],
    wakes: [
      { entity: ENTITY, atMs: 1 },
      { entity: OTHER, atMs: 2 },
    ],
    tasks: [task("a"), task("b"), task("c"), task("d")],
    mail: [message('"c"')],
    replies: [reply("r")],
    deadLetters: [deadLetter("l", 1)],
    listings: [listing("l", "i")],
  });
  await owner.commit({ wakes: [{ entity: OTHER, atMs: null }], revoke: ["d"], discard: ["x"] });
  await owner.commit({ listings: [{ ...listing("l", "j"), text: null }], headers: [header(ENTITY, { version: 2 })] });
  await store.partitions.renew([owner.fence], 60_000);
  const leased = await lease(store, { max: 3 });
  const { ref, token, partition } = leased[0]!;
  await store.tasks.heartbeat([{ ref, token, started: { partition, text: '"s"' } }], 1);
  await store.tasks.settle([settlement(leased[1]!, "completed")]);
  await store.tasks.lapse(10);
  await store.journal.load([{ partition: 0, entity: ENTITY }]);
  await store.journal.load([{ partition: 0, entity: OTHER, aboveVersion: 0 }]);
  await store.journal.due(0, 10, 10);
  await store.journal.watch(0, ENTITY, 0, 0);
  await store.inbox.replies("process", 0);
  await store.records.get([{ scope: ENTITY, hash: "h" }]);
  await store.records.publish("n", "h");
  await store.records.published("n");
  await store.records.published("n", 1);
  await store.records.published("n", "h");
  await store.records.versions("n");
  await store.records.unpublish("n");
  await store.records.register({ process: "p", role: "worker", text: "{}" }, 60_000);
  await store.queries.headers({ limit: 1 });
  await store.queries.headers({ limit: 1, workflow: "w", class: "open" });
  await store.queries.header(0, ENTITY);
  await store.queries.deadLetters({ limit: 1 });
  await store.queries.deadLetters({ limit: 1, queue: QUEUE });
  await store.queries.deadLetters({ limit: 1, entity: ENTITY });
  await store.queries.deadLetter("l");
  await store.queries.listing({ list: "l", limit: 1 });
  await store.queries.listed("l", "i");
  await store.queries.workflows({ limit: 1 });
  await store.queries.workflows({ limit: 1, cursor: "a" });
  await store.queries.counts();
  await owner.commit({ purge: [ENTITY] });
  await store.partitions.reacquire(owner.fence, 60_000);
  await store.partitions.release(owner.fence);
}

test("a batch has as many rows as it likes, whatever a statement's number of parameters may be", async () => {
  const store = await open();
  const owner = await acquire(store);
  const many = Array.from({ length: 70_000 }, (_, i) => i);
  await store.inbox.append(many.map((i) => message(`${i}`)));
  const { position, messages } = await read(store, { limit: 70_000 });
  expect(messages).toEqual(many.map(String));
  await owner.commit({ consumed: position, records: many.map((i) => ({ ...record(`e/${i}`, 1), text: "[]" })) });
  expect([await count("inbox"), await count("journal")]).toEqual([0, 70_000]);
  await store.close();
});

test("thousands of commits leave tables no larger than hundreds do", async () => {
  // In a database of its own: Postgres keeps every row that any transaction in the same database may still see, and other tests
  // have theirs open for as long as they like.
  const database = `sizes_${schema}`;
  await client.query(`create database ${database}`);
  const url = service.url.replace(/\/[^/?]*(?=$|\?)/, `/${database}`);
  const own = new Client({ connectionString: url });
  await own.connect();
  const store = await openPostgres({ url, schema, host: nodeHost, partitions: 4 });
  // Nor may the server come by on its own account: while it counts one table it keeps the dead rows of all others.
  const tables = await own.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'`,
    [schema],
  );
  for (const { name } of tables.rows) await own.query(`alter table ${name} set (autovacuum_enabled = false)`);
  const owners = await Promise.all([0, 1, 2, 3].map((partition) => acquire(store, partition)));
  const tasks = 4;
  let commits = 0;
  const commitSome = async (owner: Owner): Promise<void> => {
    const { partition } = owner.tenure;
    const queue = `${QUEUE}/${partition}`;
    for (let i = 0; i < 150; i++) {
      const leased = await lease(store, { max: tasks, queues: [queue] });
      await store.tasks.settle(leased.map((one) => settlement(one, "completed")));
      const { position } = await read(store, { partition });
      commits += 1;
      const tokens = Array.from({ length: tasks }, (_, n) => `${String(commits).padStart(9, "0")}/${n}`);
      await owner.commit({
        consumed: position,
        headers: [header(`e/${partition}`, { version: commits })],
        wakes: [{ entity: `e/${partition}`, atMs: commits }],
        tasks: tokens.map((token) => task(token, { partition, queue })),
      });
    }
  };
  const commitMany = async (): Promise<Readonly<Record<string, number>>> => {
    await Promise.all(owners.map(commitSome));
    await store.partitions.renew(
      owners.map(({ fence }) => fence),
      60_000,
    );
    // As autovacuum does it, which comes by once a minute.
    await own.query("vacuum");
    const found = await own.query<{ name: string; bytes: number }>(
      `select relname as name, pg_total_relation_size(oid)::integer as bytes from pg_class
       where relnamespace = $1::regnamespace and relkind = 'r'`,
      [schema],
    );
    return Object.fromEntries(found.rows.map(({ name, bytes }) => [name, bytes]));
  };
  const first = await commitMany();
  await commitMany();
  await commitMany();
  const last = await commitMany();
  const page = 8192;
  for (const [table, bytes] of Object.entries(last)) {
    expect(bytes, `${table}, ${first[table]} bytes before`).toBeLessThanOrEqual(first[table]! * 1.5 + 8 * page);
  }
  // Nothing of ours keeps what is dead from being removed. Postgres itself may for a moment, while it counts a table.
  await expect.poll(async () => Object.values(await keptDead(own)).every((count) => count === 0)).toBe(true);
  await store.close();
  await own.end();
  await client.query(`drop database ${database} with (force)`);
});

test("many tasks of one commit are leased in the order in which it has them", async () => {
  const store = await open();
  const owner = await acquire(store);
  // In the order of their tokens they would come otherwise.
  const tokens = Array.from({ length: 3_000 }, (_, i) => `${(i * 7) % 3_000}`);
  await owner.commit({ tasks: tokens.map((token) => task(token)) });
  const leased: LeasedTask[] = [];
  for (let found = await lease(store, { max: 1_000 }); found.length > 0; found = await lease(store, { max: 1_000 }))
    leased.push(...found);
  expect(leased.map(({ token }) => token)).toEqual(tokens);
  await store.close();
});

test("tasks and answers have the time at which they were written", async () => {
  const store = await open();
  const owner = await acquire(store);
  const now = `select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`;
  const [before] = await rows<{ now: string }>(now);
  await owner.commit({ tasks: [task("a"), task("b")], replies: [reply("r")] });
  const [after] = await rows<{ now: string }>(now);
  const times = await rows<{ at: string }>("select queued_at_ms as at from tasks union all select at_ms from replies");
  expect(times).toHaveLength(3);
  for (const { at } of times) {
    expect(Number(at)).toBeGreaterThanOrEqual(Number(before!.now));
    expect(Number(at)).toBeLessThanOrEqual(Number(after!.now));
  }
  await store.close();
});

test("an entity that begins where a header and a wake of its name are left replaces both", async () => {
  const store = await open();
  const owner = await acquire(store);
  const left = header(ENTITY, { class: "endedBadly", version: 9 });
  await owner.commit({ headers: [left, header(OTHER)], wakes: [{ entity: ENTITY, atMs: 9 }] });
  const own = header(ENTITY);
  await owner.commit({ records: [record(ENTITY, 1)], headers: [own], wakes: [{ entity: ENTITY, atMs: 5 }] });
  expect(await store.queries.header(0, ENTITY)).toEqual(own);
  const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
  expect(loaded).toMatchObject({ records: [record(ENTITY, 1)], wakeAtMs: 5 });
  await store.close();
});
/**
 * Of each table, how many rows are dead that a vacuum could not remove. As it says itself: the statistics of a table are told
 * by each session when it likes, also of rows that were removed before.
 */
async function keptDead(own: Client): Promise<Readonly<Record<string, number>>> {
  const kept: Record<string, number> = {};
  const hear = ({ message = "", detail = "" }: { message: string | undefined; detail?: string | undefined }): void => {
    const table = new RegExp(`${schema}\\.(\\w+)"`).exec(message)?.[1];
    const count = /(\d+) (?:are dead but not yet removable|dead row versions cannot be removed)/.exec(message + detail);
    if (table !== undefined && count !== null) kept[table] = Number(count[1]);
  };
  own.on("notice", hear);
  await own.query("vacuum (verbose)");
  own.off("notice", hear);
  expect(kept).toHaveProperty("journal");
  return kept;
}

test("a commit of messages that the store has lost is fenced, and those beside it are not", async () => {
  const store = await open();
  const owners = [await acquire(store, 0), await acquire(store, 1)];
  await store.inbox.append([message('"a"'), message('"b"'), message('"c"', { partition: 1 })]);
  const requests = [readRequest(), readRequest({ partition: 1 })];
  const reads = await store.inbox.read(requests, 0);
  // As a standby is that was promoted too early.
  await client.query("delete from inbox where text = '\"b\"'");
  const batches = owners.map((owner, i) => {
    const entity = `e/${i}`;
    return owner.batch({ consumed: reads[i]!.position, records: [record(entity, 1)] });
  });
  expect(await store.journal.commit(batches)).toEqual([{ kind: "fenced" }, { kind: "committed" }]);
  expect([await count("inbox"), await count("journal")]).toEqual([1, 1]);
  await store.close();
});

describe("a purge of an execution with many rows", () => {
  const recordRows = 2_500;
  const blobs = 1_500;

  async function purgeLarge(): Promise<{ store: Store; owner: Awaited<ReturnType<typeof acquire>> }> {
    const store = await open();
    const owner = await acquire(store);
    const records = Array.from({ length: recordRows }, (_, i) => record(ENTITY, i + 1));
    await owner.commit({ records, headers: [header(ENTITY)], snapshots: [snapshot(ENTITY, 5)] });
    await store.records.put(Array.from({ length: blobs }, (_, i) => ({ scope: ENTITY, hash: `${i}`, text: "1" })));
    await owner.commit({ purge: [ENTITY] });
    return { store, owner };
  }

  test("removes them in steps, and hides them at once", async () => {
    const { store } = await purgeLarge();
    const left = await count("journal");
    expect([left > 0, left < recordRows]).toEqual([true, true]);
    const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
    expect(loaded).toEqual({ entity: ENTITY, snapshot: null, records: [], wakeAtMs: null });
    expect(await store.journal.watch(0, ENTITY, 0, 0)).toBe(0);
    expect(await store.records.get([{ scope: ENTITY, hash: `${blobs - 1}` }])).toEqual([null]);
    let steps = 0;
    for (let rowsLeft = left; rowsLeft > 0; steps++) {
      await store.tasks.lapse(1);
      const now = await count("journal");
      expect(rowsLeft - now).toBeLessThanOrEqual(1_000);
      rowsLeft = now;
    }
    await store.tasks.lapse(1);
    expect([steps > 1, await count("records"), await count("purges")]).toEqual([true, 0, 0]);
    await store.close();
  });

  test("is finished by one of the same name that begins meanwhile, which keeps what is its own", async () => {
    const { store, owner } = await purgeLarge();
    await store.records.put([{ scope: ENTITY, hash: "0", text: "new" }]);
    await owner.commit({ records: [record(ENTITY, 1)] });
    for (let i = 0; i < 4; i++) await store.tasks.lapse(1);
    const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
    expect(loaded?.records).toEqual([record(ENTITY, 1)]);
    const gone = { scope: ENTITY, hash: `${blobs - 1}` };
    expect(await store.records.get([{ scope: ENTITY, hash: "0" }, gone])).toEqual(["new", null]);
    await store.close();
  });

  test("is finished by the commit of one of the same name that brings no values", async () => {
    const { store, owner } = await purgeLarge();
    await owner.commit({ records: [record(ENTITY, 1)] });
    const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
    expect(loaded?.records).toEqual([record(ENTITY, 1)]);
    expect([await count("journal"), await count("records"), await count("purges")]).toEqual([1, 0, 0]);
    await store.close();
  });

  test("is finished by one of the same name that begins when only values are left, and stays", async () => {
    const store = await open();
    const owner = await acquire(store);
    await owner.commit({ records: [record(ENTITY, 1)], headers: [header(ENTITY)] });
    await store.records.put(Array.from({ length: blobs }, (_, i) => ({ scope: ENTITY, hash: `${i}`, text: "1" })));
    await store.records.put([{ scope: OTHER, hash: "0", text: "1" }]);
    await owner.commit({ purge: [ENTITY] });
    expect([await count("journal"), (await count("records")) > 1, await count("purges")]).toEqual([0, true, 1]);
    await owner.commit({ records: [record(ENTITY, 1)], headers: [header(ENTITY)] });
    for (let i = 0; i < 4; i++) await store.tasks.lapse(1);
    const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
    expect(loaded?.records).toEqual([record(ENTITY, 1)]);
    expect([await count("journal"), await count("records"), await count("purges")]).toEqual([1, 1, 0]);
    await store.close();
  });
});
