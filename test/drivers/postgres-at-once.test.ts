import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
let database: Database;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  const schema = `test_${nodeHost.id()}`;
  // One connection: whatever a call leaves behind the next one meets.
  const options = { url: service.url, schema, maxConnections: 1, connectMs: 10_000, statementMs: 10_000 };
  database = new Database(nodeHost, options);
  await database.run(`create schema ${schema}`);
  await database.run(`create table numbers (n integer primary key, said text)`);
});
afterEach(() => database.close());

const INSERT = `insert into numbers (n, said) values ($1, $2)`;
const DOUBLED = `insert into numbers (n) values ($1) returning n * 2 as doubled, n::bigint as wide`;
const ALL = `select n, said from numbers order by n`;

const insert = (n: number, said: string | null = null): { sql: string; values: unknown[] } => ({
  sql: INSERT,
  values: [n, said],
});

async function all(): Promise<readonly unknown[]> {
  return (await database.run(ALL)).rows;
}

test("each statement has its answer, also those without rows", async () => {
  const answers = await database.atOnce([
    insert(1, "one"),
    { sql: DOUBLED, values: [2] },
    insert(3),
    { sql: ALL, values: [] },
  ]);
  expect(answers.map(({ rows }) => rows as unknown[])).toEqual([
    [],
    [{ doubled: 4, wide: 2 }],
    [],
    [
      { n: 1, said: "one" },
      { n: 2, said: null },
      { n: 3, said: null },
    ],
  ]);
});

test("one statement alone has an answer too", async () => {
  const [answer] = await database.atOnce([{ sql: DOUBLED, values: [21] }]);
  expect(answer!.rows).toEqual([{ doubled: 42, wide: 21 }]);
});

test("if the last one fails nothing was written, and the reason is its own", async () => {
  await database.atOnce([insert(1)]);
  const failing = database.atOnce([insert(2), insert(3), insert(1), insert(4)]);
  await expect(failing).rejects.toThrow(/numbers_pkey/);
  expect(await all()).toEqual([{ n: 1, said: null }]);
});

test("what fails when it is committed has failed, although every statement had its answer", async () => {
  await database.run(`alter table numbers add constraint said_once unique (said) deferrable initially deferred`);
  await expect(database.atOnce([insert(1, "same"), insert(2, "same"), insert(3)])).rejects.toThrow("said_once");
  expect(await all()).toEqual([]);
});

test("a statement that the server knows already need not be told again, and is the same everywhere", async () => {
  await database.run(INSERT, [1, "by itself"]);
  await database.atOnce([insert(2), insert(3)]);
  await database.atOnce([insert(4)]);
  await database.run(INSERT, [5, null]);
  expect(await all()).toHaveLength(5);
});

test("all of it is one transaction", async () => {
  const same = `insert into numbers (n) values ($1) returning txid_current() as id`;
  const [first, second] = await database.atOnce([1, 2].map((n) => ({ sql: same, values: [n] })));
  expect(first!.rows).toEqual(second!.rows);
});

test("what goes behind a statement or a transaction may fail, and that is nobody's failure", async () => {
  await database.run(INSERT, [1, null]);
  expect((await database.run(DOUBLED, [2], insert(1))).rows).toMatchObject([{ doubled: 4 }]);
  expect((await database.atOnce([{ sql: DOUBLED, values: [3] }], insert(1)))[0]!.rows).toMatchObject([{ doubled: 6 }]);
  expect(await all()).toHaveLength(3);
});

test("what goes behind a transaction sees what that has written", async () => {
  const count = { sql: `insert into numbers (n) select count(*) + 10 from numbers`, values: [] };
  await database.atOnce([insert(1), insert(2)], count);
  await vi.waitFor(async () => expect(await all()).toMatchObject([{ n: 1 }, { n: 2 }, { n: 12 }]));
});
