import assert from "node:assert/strict";
import type { CommitBatch, EntityKey, JournalRecord } from "../../store/contract.ts";
import { idsOf, post } from "./inbox.ts";
import { columns, type Connection } from "./postgres.ts";

const SQL = {
  consume: `
    delete from inbox using unnest($1::integer[], $2::bigint[]) as gone (partition, id)
    where inbox.partition = gone.partition and inbox.id = gone.id`,
  // Guard: the first new version of an entity has to be the next one; the driver has looked at those that follow it.
  appendRecords: `
    insert into journal (entity, version, count, format, text)
    select entity, version, count, format, text
    from unnest($1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::integer[], $6::text[])
      as record (entity, first, version, count, format, text)
    where record.first = coalesce((
      select last.version + last.count from journal as last
      where last.entity = record.entity order by last.version desc limit 1
    ), 1)`,
  putSnapshots: `
    insert into snapshots (entity, version, format, text)
    select * from unnest($1::text[], $2::bigint[], $3::integer[], $4::text[])
    on conflict (entity) do update set version = excluded.version, format = excluded.format, text = excluded.text
    where snapshots.version <= excluded.version`,
  putHeaders: `
    insert into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
    on conflict (entity) do update set class = excluded.class, status = excluded.status, workflow = excluded.workflow,
      tenant = excluded.tenant, created_at_ms = excluded.created_at_ms, ended_at_ms = excluded.ended_at_ms,
      version = excluded.version`,
  setWakes: `
    insert into wakes (entity, partition, at_ms) select * from unnest($1::text[], $2::integer[], $3::bigint[])
    on conflict (entity) do update set at_ms = excluded.at_ms`,
  clearWakes: `delete from wakes where entity = any ($1)`,
  addTasks: `
    insert into tasks (token, entity, partition, queue, priority, text)
    select token, entity, partition, queue, priority, text
    from unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::integer[], $6::text[])
      with ordinality as task (token, entity, partition, queue, priority, text, place)
    order by place
    on conflict (token) do nothing`,
  revokeTasks: `
    with revoked as materialized (
      select id, lease_until_ms from tasks where token = any ($1) order by id for update
    ), removed as (
      delete from tasks using revoked where tasks.id = revoked.id and revoked.lease_until_ms is null
    )
    update tasks set is_revoked = true from revoked where tasks.id = revoked.id and revoked.lease_until_ms is not null`,
  putReplies: `insert into replies (process, request, text) select * from unnest($1::text[], $2::text[], $3::text[])`,
  deleteDeadLetters: `delete from dead_letters where id = any ($1)`,
  putDeadLetters: `
    insert into dead_letters (id, class, queue, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
    on conflict (id) do update set class = excluded.class, queue = excluded.queue, entity = excluded.entity,
      at_ms = excluded.at_ms, text = excluded.text`,
  putListings: `
    insert into listings (list, id, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    on conflict (list, id) do update set entity = excluded.entity, at_ms = excluded.at_ms, text = excluded.text`,
  deleteListings: `
    delete from listings using unnest($1::text[], $2::text[]) as gone (list, id)
    where listings.list = gone.list and listings.id = gone.id`,
  purgeJournal: `delete from journal where entity = any ($1)`,
  purgeSnapshots: `delete from snapshots where entity = any ($1)`,
  purgeHeaders: `delete from headers where entity = any ($1)`,
  purgeRecords: `delete from records where scope = any ($1)`,
  purgeListings: `delete from listings where entity = any ($1)`,
};

const PURGES = [
  SQL.purgeJournal,
  SQL.purgeSnapshots,
  SQL.purgeHeaders,
  SQL.purgeRecords,
  SQL.purgeListings,
  SQL.clearWakes,
];

/** Everything the batches say, which have all passed the guard: one statement for each kind of row. */
export async function writeBatches(connection: Connection, batches: readonly CommitBatch[]): Promise<void> {
  const consumed = batches.flatMap(({ fence, consumed }) =>
    (consumed === null ? [] : idsOf(consumed)).map((id) => ({ partition: fence.partition, id })),
  );
  await write(connection, SQL.consume, consumed, "partition", "id");
  await writeEntities(connection, batches);
  const tasks = batches.flatMap((batch) => batch.tasks);
  await write(connection, SQL.addTasks, tasks, "token", "entity", "partition", "queue", "priority", "text");
  // After the tasks: what one batch both sends out and withdraws has to be gone.
  const revoked = batches.flatMap(({ revoke }) => revoke);
  if (revoked.length > 0) await connection.query(SQL.revokeTasks, [revoked]);
  const mail = batches.flatMap((batch) => batch.mail);
  await post(connection, mail);
  const replies = batches.flatMap((batch) => batch.replies);
  await write(connection, SQL.putReplies, replies, "process", "request", "text");
  const discarded = batches.flatMap(({ discard }) => discard);
  if (discarded.length > 0) await connection.query(SQL.deleteDeadLetters, [discarded]);
  const letters = lastOf(
    "id",
    batches.flatMap(({ deadLetters }) => deadLetters),
  );
  await write(connection, SQL.putDeadLetters, letters, "id", "class", "queue", "entity", "atMs", "text");
  await writeListings(connection, batches);
  // Last: whatever else a batch says of an entity it purges, nothing of it is left.
  const purged = batches.flatMap(({ purge }) => purge);
  if (purged.length === 0) return;
  for (const sql of PURGES) await connection.query(sql, [purged]);
}

async function writeListings(connection: Connection, batches: readonly CommitBatch[]): Promise<void> {
  const all = batches.flatMap(({ listings = [] }) => listings);
  const last = [...new Map(all.map((one) => [JSON.stringify([one.list, one.id]), one])).values()];
  const on = last.filter(({ text }) => text !== null);
  await write(connection, SQL.putListings, on, "list", "id", "entity", "atMs", "text");
  const off = last.filter(({ text }) => text === null);
  await write(connection, SQL.deleteListings, off, "list", "id");
}

async function writeEntities(connection: Connection, batches: readonly CommitBatch[]): Promise<void> {
  const records = withFirstVersions(batches.flatMap(({ records }) => records));
  const fields = ["entity", "first", "version", "count", "format", "text"] as const;
  const written = await write(connection, SQL.appendRecords, records, ...fields);
  assert.equal(written, records.length, "some record has not the number of its entity's next event");

  const byVersion = batches.flatMap(({ snapshots }) => snapshots).toSorted((a, b) => a.version - b.version);
  await write(connection, SQL.putSnapshots, lastOf("entity", byVersion), "entity", "version", "format", "text");
  const headers = lastOf(
    "entity",
    batches.flatMap(({ headers }) => headers),
  );
  const times = ["createdAtMs", "endedAtMs"] as const;
  await write(
    connection,
    SQL.putHeaders,
    headers,
    "entity",
    "class",
    "status",
    "workflow",
    "tenant",
    ...times,
    "version",
  );

  const all = batches.flatMap(({ fence, wakes }) => wakes.map((wake) => ({ ...wake, partition: fence.partition })));
  const wakes = Map.groupBy(lastOf("entity", all), ({ atMs }) => (atMs === null ? "clear" : "set"));
  await write(connection, SQL.setWakes, wakes.get("set") ?? [], "entity", "partition", "atMs");
  await write(connection, SQL.clearWakes, wakes.get("clear") ?? [], "entity");
}

/** Answers how many rows it wrote. */
async function write<Item>(
  connection: Connection,
  sql: string,
  items: readonly Item[],
  ...fields: readonly (keyof Item)[]
): Promise<number> {
  if (items.length === 0) return 0;
  return (await connection.query(sql, [...columns(items, ...fields)])).rowCount ?? 0;
}

interface PlacedRecord extends JournalRecord {
  /** The version of the first record of this entity in the call. */
  readonly first: number;
}

/** Makes sure that each entity's records follow each other without a gap; so only the first is left to be compared. */
function withFirstVersions(records: readonly JournalRecord[]): readonly PlacedRecord[] {
  const first = new Map<EntityKey, number>();
  const next = new Map<EntityKey, number>();
  for (const { entity, version, count } of records) {
    assert(count > 0, `a record of ${entity} without events`);
    assert.equal(version, next.get(entity) ?? version, `the next event of ${entity} has this number`);
    if (!first.has(entity)) first.set(entity, version);
    next.set(entity, version + count);
  }
  return records.map((record) => ({ ...record, first: first.get(record.entity)! }));
}

/** The last one for each key: one statement cannot write a row twice. */
function lastOf<Item>(key: keyof Item, items: readonly Item[]): readonly Item[] {
  return [...new Map(items.map((item) => [item[key], item])).values()];
}
