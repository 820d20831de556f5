import { escapeIdentifier } from "pg";
import { StoreError } from "../../store/store-error.ts";
import { type Connection, type Database, rows, type Transaction } from "./database.ts";

/** In order; one that was ever released never changes. The table `migrations` has a row for each that was applied. */
export const MIGRATIONS: readonly string[] = [
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
  /* 003-tune */ `
  -- A task is named by its token everywhere. A lease changes every index of its row, so each one less counts twice.
  alter table tasks drop constraint tasks_pkey, drop constraint tasks_token_key, add primary key (token);

  -- A page of a list is read from one end of an index, whatever it is filtered by.
  drop index headers_by_creation;
  create index headers_by_class on headers (class, created_at_ms, entity);
  create index headers_by_workflow on headers (workflow, class, created_at_ms, entity);
  drop index dead_letters_by_time;
  create index dead_letters_by_class on dead_letters (class, at_ms, id);
  create index dead_letters_by_queue on dead_letters (queue, class, at_ms, id);
  create index dead_letters_by_entity on dead_letters (entity, at_ms, id);
  create index published_by_version on published (name, version desc) where not is_gone;

  -- Entities that are gone for everybody, while their rows are removed in steps.
  create table purges (entity text collate "C" primary key);

  -- Rows of these live for a moment only: a share of the table says nothing about how many of them are dead.
  alter table inbox set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000);
  alter table tasks set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000);
  alter table replies set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000);
  alter table wakes set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
  alter table partitions set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
  alter table clock set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
  alter table registrations set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
  -- These are large, and a share of a large table is many rows.
  alter table journal set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
  alter table headers set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
  alter table records set (autovacuum_vacuum_scale_factor = 0.02);
  `,
  /* 004-age-of-tasks */ `
  alter table tasks add column queued_at_ms bigint not null default wall_ms();
  `,
  /* 005-packs */ `
  -- Tasks that went out together, in one row until somebody needs one of them. Such a row is never stored in pieces: to put it
  -- together again would cost more than the rows that it stands for. Between two ids are those of the tasks of a pack.
  alter table tasks alter column id set increment by 32;
  create table packs (
    name text collate "C" primary key,
    id bigint not null default nextval('tasks_id_seq'),
    partition integer not null,
    queue text collate "C" not null,
    priority integer not null,
    size integer not null,
    queued_at_ms bigint not null,
    lease_until_ms bigint,
    texts text not null
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
  alter table packs alter column texts set storage plain;
  create index packs_queued on packs (queue, priority desc, id) where lease_until_ms is null;
  create index packs_leased on packs (lease_until_ms) where lease_until_ms is not null;
  create index packs_by_partition on packs (partition);

  -- A row of an inbox is a message, or so many; of those the first may have been taken already.
  alter table inbox add column size integer not null default 1, add column taken integer not null default 0;
  create index inbox_packs on inbox (size, taken) where size > 1;

  -- One of the release before never says so: while it is alive nothing is packed.
  alter table registrations add column knows_packs_until_ms bigint;
  `,
];

/** The first that lets a table say when it is vacuumed after inserts. */
const OLDEST = 130_000;

const SQL = {
  // One migration at a time, whoever starts: the number is any that nobody else uses.
  lock: `select pg_advisory_xact_lock(7031558201)`,
  session: `
    select current_setting('search_path') as path, current_setting('server_version') as version,
      current_setting('server_version_num')::integer as number`,
  schema: `select has_schema_privilege(nspname, 'usage') as "mayUse" from pg_namespace where nspname = $1`,
  tables: `
    select relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relkind = 'r' and relname in ('migrations', 'store')`,
  createTable: `create table migrations (number integer primary key)`,
  newest: `select coalesce(max(number), 0) as number from migrations`,
  add: `insert into migrations (number) values ($1)`,
  createStore: `insert into store (incarnation, partition_count) select $1, $2 where not exists (select from store)`,
  createPartitions: `insert into partitions (id) select generate_series(0, $1 - 1) on conflict do nothing`,
  store: `select incarnation, partition_count as "partitionCount" from store`,
};

/**
 * Brings the schema up to date and answers its incarnation. Where there is none it is made with the new one, if that is
 * given.
 */
export async function migrate(
  database: Database,
  schema: string,
  partitionCount: number,
  newIncarnation: string | undefined,
): Promise<string> {
  return database.transaction(async (connection) => {
    await connection.run(SQL.lock);
    await checkSession(connection, schema);
    const applied = await appliedMigrations(connection, schema, newIncarnation !== undefined);
    if (applied > MIGRATIONS.length) {
      const message = `The store has format ${applied}, and this release knows formats up to ${MIGRATIONS.length}`;
      throw new StoreError("STORE_TOO_NEW", message);
    }
    for (let number = applied + 1; number <= MIGRATIONS.length; number++) {
      await connection.runScript(MIGRATIONS[number - 1]!);
      await connection.run(SQL.add, [number]);
    }
    await connection.run(SQL.createStore, [newIncarnation, partitionCount]);
    await connection.run(SQL.createPartitions, [partitionCount]);
    const [store] = await rows<{ incarnation: string; partitionCount: number }>(connection, SQL.store);
    if (store!.partitionCount !== partitionCount) {
      const message = `The store was created with ${store!.partitionCount} partitions, not ${partitionCount}`;
      throw new StoreError("STORE_INVALID", message);
    }
    return store!.incarnation;
  });
}

/** A pooler that drops the settings of a connection would have us write into whatever schema comes first. */
async function checkSession(connection: Connection, schema: string): Promise<void> {
  const [session] = await rows<{ path: string; version: string; number: number }>(connection, SQL.session);
  const { path, version, number } = session!;
  if (number < OLDEST) {
    throw new StoreError("STORE_INVALID", `Postgres ${version} is too old: ${OLDEST / 10_000} or later is needed`);
  }
  if (path === schema) return;
  const message = "The connection does not keep its settings: connect to Postgres itself, not through a pooler";
  throw new StoreError("STORE_INVALID", message);
}

/** Makes schema and table if they are not there and may be made. What is there and not ours is left alone. */
async function appliedMigrations(connection: Transaction, schema: string, mayMake: boolean): Promise<number> {
  const [found] = await rows<{ mayUse: boolean }>(connection, SQL.schema, [schema]);
  if (found === undefined && !mayMake) throw missing(schema);
  if (found === undefined) await connection.runScript(`create schema ${escapeIdentifier(schema)}`);
  if (found?.mayUse === false) throw new StoreError("STORE_FORBIDDEN", `We may not use the schema ${schema}`);
  const tables = new Set((await rows<{ name: string }>(connection, SQL.tables, [schema])).map(({ name }) => name));
  if (tables.size === 1) throw new StoreError("STORE_INVALID", `The schema ${schema} is another program's`);
  if (tables.size === 0 && !mayMake) throw missing(schema);
  if (tables.size === 0) await connection.run(SQL.createTable);
  const [newest] = await rows<{ number: number }>(connection, SQL.newest);
  return newest!.number;
}

function missing(schema: string): StoreError {
  return new StoreError("STORE_MISSING", `There is no store in the schema ${schema} of this database`);
}
