import { escapeIdentifier, type Pool } from "pg";
import { rows, transaction } from "./postgres.ts";

/** In order; one that was ever released never changes. The table `migrations` has a row for each that was applied. */
const MIGRATIONS: readonly string[] = [
  /* 001-create */ `
  create table store (incarnation text not null, partition_count integer not null);

  -- A clock for leases that does not go back: the wall clock, plus what it was ever set back.
  create table clock (wall_ms bigint not null, offset_ms bigint not null);
  create function wall_ms() returns bigint language sql volatile
    as 'select (extract(epoch from clock_timestamp()) * 1000)::bigint';
  create function lease_ms() returns bigint language sql volatile
    as 'select greatest(wall_ms(), clock.wall_ms) + clock.offset_ms from clock';
  insert into clock (wall_ms, offset_ms) values (wall_ms(), 0);

  create table partitions (
    id integer primary key,
    epoch bigint not null default 0,
    nonce text,
    owner text not null default '',
    lease_until_ms bigint not null default 0,
    seq bigint not null default 0,
    last_batch text,
    last_time_ms bigint not null default 0,
    strikes integer not null default 0,
    suspect text,
    is_clean boolean not null default true
  ) with (fillfactor = 50);

  create table inbox (
    id bigint generated always as identity,
    partition integer not null,
    text text not null,
    primary key (partition, id)
  );

  create table replies (
    id bigint generated always as identity primary key,
    process text not null,
    request text not null,
    text text not null,
    at_ms bigint not null default wall_ms()
  );
  create index replies_by_process on replies (process, id);

  create table journal (
    entity text collate "C" not null,
    version bigint not null,
    count integer not null,
    format integer not null,
    text text not null,
    primary key (entity, version)
  );

  create table snapshots (
    entity text collate "C" primary key,
    version bigint not null,
    format integer not null,
    text text not null
  );

  create table wakes (
    entity text collate "C" primary key,
    partition integer not null,
    at_ms bigint not null
  );
  create index wakes_by_time on wakes (partition, at_ms, entity);

  create table headers (
    entity text collate "C" primary key,
    class text not null,
    status text not null,
    workflow text not null,
    tenant text not null,
    created_at_ms bigint not null,
    ended_at_ms bigint,
    version bigint not null
  );
  create index headers_by_creation on headers (created_at_ms, entity);

  create table tasks (
    id bigint generated always as identity primary key,
    token text collate "C" not null unique,
    entity text not null,
    partition integer not null,
    queue text collate "C" not null,
    priority integer not null,
    text text not null,
    lease_until_ms bigint,
    is_revoked boolean not null default false
  ) with (fillfactor = 50);
  create index tasks_queued on tasks (queue, priority desc, id) where lease_until_ms is null;
  create index tasks_leased on tasks (lease_until_ms) where lease_until_ms is not null;

  create table dead_letters (
    id text collate "C" primary key,
    class text not null,
    queue text not null,
    entity text not null,
    at_ms bigint not null,
    text text not null
  );
  create index dead_letters_by_time on dead_letters (at_ms, id);

  create table records (
    scope text collate "C" not null,
    hash text collate "C" not null,
    text text not null,
    primary key (scope, hash)
  );

  create table published (
    name text collate "C" not null,
    hash text collate "C" not null,
    version integer not null,
    primary key (name, hash),
    unique (name, version)
  );

  create table registrations (
    process text collate "C" primary key,
    role text not null,
    text text not null,
    until_ms bigint not null
  );
  `,
  /* 002-add-lists */ `
  create table listings (
    list text collate "C" not null,
    id text collate "C" not null,
    entity text collate "C" not null,
    at_ms bigint not null,
    text text not null,
    primary key (list, id)
  );
  create index listings_by_time on listings (list, at_ms, id);
  create index listings_by_entity on listings (entity);

  alter table published add column is_gone boolean not null default false;
  `,
];

const SQL = {
  // One migration at a time, whoever starts: the number is any that nobody else uses.
  lock: `select pg_advisory_xact_lock(7031558201)`,
  createTable: `create table if not exists migrations (number integer primary key)`,
  count: `select count(*)::integer as count from migrations`,
  add: `insert into migrations (number) values ($1)`,
  createStore: `insert into store (incarnation, partition_count) select $1, $2 where not exists (select from store)`,
  createPartitions: `insert into partitions (id) select generate_series(0, $1 - 1) on conflict do nothing`,
  store: `select incarnation, partition_count as "partitionCount" from store`,
};

/** Brings the schema up to date and answers its incarnation, which is drawn when it is created. */
export async function migrate(
  pool: Pool,
  schema: string,
  partitionCount: number,
  newIncarnation: string,
): Promise<string> {
  return transaction(pool, async (connection) => {
    await connection.query(SQL.lock);
    await connection.query(`create schema if not exists ${escapeIdentifier(schema)}`);
    await connection.query(SQL.createTable);
    const [applied] = await rows<{ count: number }>(connection, SQL.count);
    for (let number = applied!.count; number < MIGRATIONS.length; number++) {
      await connection.query(MIGRATIONS[number]!);
      await connection.query(SQL.add, [number + 1]);
    }
    await connection.query(SQL.createStore, [newIncarnation, partitionCount]);
    await connection.query(SQL.createPartitions, [partitionCount]);
    const [store] = await rows<{ incarnation: string; partitionCount: number }>(connection, SQL.store);
    if (store!.partitionCount !== partitionCount) {
      throw new Error(`the store was created with ${store!.partitionCount} partitions, not ${partitionCount}`);
    }
    return store!.incarnation;
  });
}
