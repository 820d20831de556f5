import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { SQL as COMMITS } from "../../src/drivers/postgres/commit.ts";
import { connectionConfig } from "../../src/drivers/postgres/database.ts";
import { SQL as MESSAGES } from "../../src/drivers/postgres/inbox.ts";
import { SQL as JOURNALS } from "../../src/drivers/postgres/journal.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { SQL as PACKS } from "../../src/drivers/postgres/packs.ts";
import { SQL as PURGES } from "../../src/drivers/postgres/purge.ts";
import { SQL as RECORDS } from "../../src/drivers/postgres/records.ts";
import { SQL as TASKS } from "../../src/drivers/postgres/tasks.ts";
import { SQL as WRITES } from "../../src/drivers/postgres/write.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { postgresService } from "../support/services.ts";

/** A row each; of some of their columns nobody wants to know here. */
const FILL = `
  insert into tasks (token, entity, partition, queue, priority, text) select i::text, '', 0, 'q', 0, '' from i;
  insert into packs (name, partition, queue, priority, size, queued_at_ms, texts) select i::text, 0, 'q', 0, 4, 0, '' from i;
  insert into inbox (partition, text) select 0, '' from i;
  insert into replies (process, request, text) select 'p', i::text, '' from i;
  insert into wakes (entity, partition, at_ms) select i::text, 0, i from i;
  insert into headers (entity, class, status, workflow, tenant, created_at_ms, version)
    select i::text, 'open', '', '', '', i, 1 from i;
  insert into snapshots (entity, version, format, text) select i::text, 1, 1, '' from i;
  insert into listings (list, id, entity, at_ms, text) select 'l', i::text, i::text, i, '' from i;
  insert into dead_letters (id, class, queue, entity, at_ms, text) select i::text, 'poison', '', '', i, '' from i;
  insert into purges (entity) select i::text from i;
  insert into journal (entity, version, count, format, text) select i::text, 1, 1, 1, '' from i;
  insert into records (scope, hash, text) select i::text, '', '' from i;`;
const ROWS = "with i as (select i from generate_series(1, 1000) as i)";
const TABLES = [...FILL.matchAll(/insert into (\w+)/g)].map(([, table]) => table!);

let service: Service;
let client: Client;
beforeAll(async () => {
  service = await postgresService();
  const schema = `test_${nodeHost.id()}`;
  const store = await openPostgres({ url: service.url, host: nodeHost, schema });
  const settings = { url: service.url, schema, maxConnections: 1, connectMs: 10_000, statementMs: 10_000 };
  client = new Client(connectionConfig(settings));
  await client.connect();
  await client.query(FILL.replaceAll(/insert into/g, `${ROWS} insert into`));
  for (const table of TABLES) await client.query(`delete from ${table}`);
  // The server counts when all queues are empty, as it does in the night.
  await client.query("analyze");
  await store.close();
});
afterAll(async () => {
  await client.end();
  await service.stop();
});

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
  readonly "TID Cond"?: string;
  readonly "Sort Key"?: readonly string[];
  readonly Plans?: readonly Plan[];
}

function scansOf(plan: Plan): readonly Plan[] {
  const own = plan["Node Type"].endsWith("Scan") && TABLES.includes(plan["Relation Name"] ?? "") ? [plan] : [];
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)];
}

/** Begin at one end and stop after as many as they are told. */
const FROM_ONE_END: ReadonlySet<string> = new Set(["next", "forgetReplies"]);
const STATEMENTS = [COMMITS, JOURNALS, MESSAGES, PACKS, PURGES, RECORDS, TASKS, WRITES]
  .flatMap((sql): [string, string][] => Object.entries(sql))
  .filter(([name, sql]) => !FROM_ONE_END.has(name) && TABLES.some((table) => new RegExp(`\\b${table}\\b`).test(sql)));

async function planOf(name: string, sql: string): Promise<Plan> {
  const parameters = Math.max(0, ...[...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
  const given = parameters === 0 ? "" : `(${Array.from({ length: parameters }, () => "null").join(", ")})`;
  await client.query(`prepare ${name} as ${sql}`);
  const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: Plan }] }>(
    `explain (format json) execute ${name}${given}`,
  );
  await client.query(`deallocate ${name}`);
  return rows[0]!["QUERY PLAN"][0].Plan;
}

async function scansBy(name: string, sql: string): Promise<readonly Plan[]> {
  return scansOf(await planOf(name, sql));
}

function nodesOf(plan: Plan): readonly Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** What reads a queue from one end to the other for each that it looks for is a hundred times slower, in the morning. */
test.each(STATEMENTS)("%s looks its rows up, though the server believes that there are none", async (name, sql) => {
  const scans = await scansBy(name, sql);
  expect(scans.filter((scan) => !/=|</.test(scan["Index Cond"] ?? scan["TID Cond"] ?? ""))).toEqual([]);
});

test.each([
  ["consume", WRITES.consume, "inbox", "id"],
  ["consumePart", WRITES.consumePart, "inbox", "id"],
  ["present", COMMITS.present, "inbox", "id"],
  ["cutJournals", WRITES.cutJournals, "journal", "version"],
  ["someJournal", PURGES.someJournal, "journal", "version"],
  ["someRecords", PURGES.someRecords, "records", "hash"],
  ["get", RECORDS.get, "records", "hash"],
  ["deleteListings", WRITES.deleteListings, "listings", "id"],
])("%s does so by both columns: by the first it would find thousands", async (name, sql, table, second) => {
  const scans = (await scansBy(name, sql)).filter((scan) => scan["Relation Name"] === table);
  expect(scans.some((scan) => scan["Index Cond"]?.includes(`(${second} <= `))).toBe(true);
});

/** Two who settle the same tasks in another order would lock each other out. */
test("settle removes tasks in the order of their tokens: sorted first, and then looked up one by one", async () => {
  const nodes = nodesOf(await planOf("settle", TASKS.settle));
  const removal = nodes.find((node) => node["Node Type"] === "ModifyTable" && node["Relation Name"] === "tasks")!;
  const [join] = removal.Plans!;
  expect(join!["Node Type"]).toBe("Nested Loop");
  const [outer, inner] = join!.Plans!;
  expect(nodesOf(outer!).find((node) => node["Node Type"] === "Sort")?.["Sort Key"]).toEqual([
    expect.stringContaining("token"),
  ]);
  expect(inner!["Index Cond"]).toMatch(/^\(token = /);
});
