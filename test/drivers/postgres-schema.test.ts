import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { MIGRATIONS } from "../../src/drivers/postgres/migrations.ts";
import { openPostgres, type PostgresOptions } from "../../src/drivers/postgres/postgres-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { ENTITY, record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

const newSchema = (): string => `test_${nodeHost.id()}`;

function open(more: Partial<PostgresOptions> = {}): Promise<Store> {
  return openPostgres({ url: service.url, schema: newSchema(), host: nodeHost, partitions: 4, ...more });
}

async function openAndClose(more: Partial<PostgresOptions> = {}): Promise<void> {
  await (await open(more)).close();
}

async function sql<Row extends object>(text: string, url = service.url): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

function asUser(user: string): string {
  const url = new URL(service.url);
  url.username = user;
  return url.href;
}

/** All tables, columns, indexes and settings of a schema, without its name. */
async function shapeOf(schema: string): Promise<unknown> {
  const columns = await sql(
    `select table_name, column_name, data_type, is_nullable, column_default, collation_name from information_schema.columns
     where table_schema = '${schema}' order by 1, 2`,
  );
  const indexes = await sql<{ indexdef: string }>(
    `select indexdef from pg_indexes where schemaname = '${schema}' order by 1`,
  );
  const tables = await sql(
    `select relname, reloptions from pg_class where relnamespace = '${schema}'::regnamespace and relkind = 'r' order by 1`,
  );
  const shown = indexes.map(({ indexdef }) => indexdef.replaceAll(`${schema}.`, ""));
  return JSON.parse(JSON.stringify([columns, shown.toSorted(), tables]).replaceAll(`${schema}.`, ""));
}

describe("a store", () => {
  test("that many open at once is made once", async () => {
    const schema = newSchema();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open({ schema })));
    const incarnations = await Promise.all(
      stores.map(async (store, partition) => {
        const outcome = await store.partitions.acquire(partition % 4, `owner ${partition}`, 1);
        return outcome.kind === "acquired" ? outcome.tenure.incarnation : undefined;
      }),
    );
    expect(new Set(incarnations.filter((one) => one !== undefined)).size).toBe(1);
    expect(await sql(`select number from ${schema}.migrations order by 1`)).toEqual(
      MIGRATIONS.map((_, i) => ({ number: i + 1 })),
    );
    for (const store of stores) await store.close();
  });

  test("of a later release is refused by name, and not changed", async () => {
    const schema = newSchema();
    await openAndClose({ schema });
    await sql(`insert into ${schema}.migrations (number) values (${MIGRATIONS.length + 1})`);
    const before = await shapeOf(schema);
    await expect(open({ schema })).rejects.toMatchObject({ name: "StoreError", code: "STORE_TOO_NEW" });
    expect(await shapeOf(schema)).toEqual(before);
  });

  test("of another number of partitions is refused", async () => {
    const schema = newSchema();
    await openAndClose({ schema });
    await expect(open({ schema, partitions: 8 })).rejects.toMatchObject({ code: "STORE_INVALID" });
  });

  for (const [i] of MIGRATIONS.entries()) {
    test(`of format ${i + 1} is opened with what is in it, and has the tables of a new one`, async () => {
      const schema = newSchema();
      await sql(`create schema ${schema}; set search_path = ${schema};
        create table migrations (number integer primary key);
        ${MIGRATIONS.slice(0, i + 1).join(";")};
        insert into migrations select generate_series(1, ${i + 1});
        insert into store (incarnation, partition_count) values ('old', 4);
        insert into partitions (id) select generate_series(0, 3);
        insert into journal (entity, version, count, format, text)
          values ('${ENTITY}', 1, 1, 1, '${record(ENTITY, 1).text}');
        insert into tasks (token, entity, partition, queue, priority, text) values ('t', '${ENTITY}', 0, 'q', 0, '1')`);
      const store = await open({ schema });
      const owner = await acquire(store);
      expect(owner.tenure.incarnation).toBe("old");
      await owner.commit({ records: [record(ENTITY, 2)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      expect(loaded?.records).toEqual([record(ENTITY, 1), record(ENTITY, 2)]);
      const request = { worker: "w", queues: ["q"], max: 1, leaseMs: 1000, waitMs: 0 };
      expect((await store.tasks.lease(request)).map(({ token }) => token)).toEqual(["t"]);
      await store.close();
      const fresh = newSchema();
      await openAndClose({ schema: fresh });
      expect(await shapeOf(schema)).toEqual(await shapeOf(fresh));
    });
  }
});

test("docs/postgres.md names every table with its columns and indexes", async () => {
  const schema = newSchema();
  await openAndClose({ schema });
  const page = readFileSync(join(import.meta.dirname, "../../docs/postgres.md"), "utf8");
  const columns = await sql<{ table: string; name: string }>(
    `select table_name as table, column_name as name from information_schema.columns where table_schema = '${schema}'`,
  );
  const indexes = await sql<{ table: string; name: string }>(
    `select tablename as table, indexname as name from pg_indexes where schemaname = '${schema}'`,
  );
  const undocumented = [...columns, ...indexes].filter(({ table, name }) => {
    const row = page.split("\n").find((line) => line.startsWith(`| \`${table}\` |`));
    return row === undefined || !row.includes(`\`${name}\``);
  });
  expect(undocumented).toEqual([]);
});

describe("a schema", () => {
  test("of another program with tables named like ours is refused and left alone", async () => {
    const schema = newSchema();
    await sql(`create schema ${schema}; create table ${schema}.migrations (name text); insert into ${schema}.migrations
      values ('theirs')`);
    await expect(open({ schema })).rejects.toMatchObject({ code: "STORE_INVALID" });
    expect(await sql(`select tablename from pg_tables where schemaname = '${schema}'`)).toEqual([
      { tablename: "migrations" },
    ]);
  });

  test("of another program with a table that is in our way is refused and left alone", async () => {
    const schema = newSchema();
    await sql(`create schema ${schema}; create table ${schema}.inbox (mail text)`);
    await expect(open({ schema })).rejects.toMatchObject({ code: "STORE_INVALID" });
    expect(await sql(`select tablename from pg_tables where schemaname = '${schema}'`)).toEqual([
      { tablename: "inbox" },
    ]);
  });

  test("of an application can have our tables beside its own, and two schemas are two stores", async () => {
    const [one, two] = [newSchema(), newSchema()];
    await sql(`create schema ${one}; create table ${one}.customers (name text)`);
    const stores = [await open({ schema: one }), await open({ schema: two })];
    const owners = await Promise.all(stores.map((store) => acquire(store)));
    expect(owners[0]!.tenure.incarnation).not.toBe(owners[1]!.tenure.incarnation);
    for (const store of stores) await store.close();
  });

  test.each(["", "Upper", "a b", 'a"b', "a-b", "x".repeat(64)])("cannot be named %j", async (schema) => {
    await expect(open({ schema })).rejects.toMatchObject({ code: "STORE_INVALID" });
  });
});

describe("a role", () => {
  test("that may only use a schema of its own is enough", async () => {
    const schema = newSchema();
    await sql(`create role ${schema} login; create schema ${schema} authorization ${schema}`);
    await openAndClose({ url: asUser(schema), schema });
  });

  test.each(["usage", "create"])("that has only the right %s in it is told so", async (right) => {
    const schema = newSchema();
    await sql(`create role ${schema} login; create schema ${schema}; grant ${right} on schema ${schema} to ${schema}`);
    await expect(open({ url: asUser(schema), schema })).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
  });
});

describe("an address", () => {
  test.each([
    ["of a database that is not there", (url: URL) => (url.pathname = "/nowhere"), "STORE_INVALID"],
    ["of a role that is not there", (url: URL) => (url.username = "nobody"), "STORE_FORBIDDEN"],
    ["where nobody listens", (url: URL) => (url.port = "1"), "STORE_UNAVAILABLE"],
  ])("%s is refused by name", async (_, change, code) => {
    const url = new URL(service.url);
    change(url);
    await expect(open({ url: url.href })).rejects.toMatchObject({ name: "StoreError", code });
  });

  test("may bring settings for its sessions, and ours are kept", async () => {
    const schema = newSchema();
    const url = `${service.url}?options=${encodeURIComponent("-c work_mem=5MB -c search_path=public")}&application_name=x`;
    await openAndClose({ url, schema });
    expect(await sql(`select from ${schema}.store`)).toHaveLength(1);
  });
});
