import { StoreError } from "../../../store/store-error.ts";
import type { Database } from "./database.ts";

/** In order; one that was ever released never changes. The number of those applied is the file's format. */
export const MIGRATIONS: readonly string[] = [
  /* 001-create */ `
  create table store (incarnation text not null) strict;

  create table partitions (
    id integer primary key,
    epoch integer not null,
    nonce text,
    owner text not null,
    lease_until_ms integer not null,
    seq integer not null,
    last_batch text,
    last_time_ms integer not null,
    strikes integer not null,
    suspect text,
    is_clean integer not null
  ) strict;

  create table mail (id integer primary key, text text not null) strict;

  create table journal (
    entity text not null,
    version integer not null,
    count integer not null,
    format integer not null,
    text text not null,
    primary key (entity, version)
  ) strict, without rowid;

  create table snapshots (
    entity text primary key,
    version integer not null,
    format integer not null,
    text text not null
  ) strict;

  create table wakes (entity text primary key, at_ms integer not null) strict, without rowid;
  create index wakes_by_time on wakes (at_ms, entity);

  create table headers (
    entity text primary key,
    class text not null,
    status text not null,
    workflow text not null,
    tenant text not null,
    created_at_ms integer not null,
    ended_at_ms integer,
    version integer not null
  ) strict, without rowid;
  create index headers_by_creation on headers (created_at_ms, entity);

  create table dead_letters (
    id text primary key,
    class text not null,
    queue text not null,
    entity text not null,
    at_ms integer not null,
    text text not null
  ) strict;
  create index dead_letters_by_time on dead_letters (at_ms, id);

  create table records (
    scope text not null,
    hash text not null,
    text text not null,
    primary key (scope, hash)
  ) strict;

  create table published (
    name text not null,
    hash text not null,
    version integer not null,
    primary key (name, hash)
  ) strict, without rowid;

  create table registrations (
    process text primary key,
    role text not null,
    text text not null,
    until_ms integer not null
  ) strict;
  `,
  /* 002-add-lists */ `
  create table listings (
    list text not null,
    id text not null,
    entity text not null,
    at_ms integer not null,
    text text not null,
    primary key (list, id)
  ) strict;
  create index listings_by_time on listings (list, at_ms, id);
  create index listings_by_entity on listings (entity);

  alter table published add column is_gone integer not null default 0;
  create unique index published_by_version on published (name, version);
  `,
  /* 003-add-purges */ `
  -- What has been purged and is not yet removed row by row.
  create table purges (entity text primary key) strict, without rowid;

  -- Who holds the partition is a matter of the process that has the file: it ends with the lock.
  alter table partitions drop column lease_until_ms;
  `,
  /* 004-append-to-journal */ `
  -- In the order of writing instead of by entity: the steps of a thousand executions that run side by side lay on as many
  -- pages, and each commit wrote all of those it touched. Of the index a page holds fifty.
  create table appended (
    id integer primary key,
    entity text not null,
    version integer not null,
    count integer not null,
    format integer not null,
    text text not null
  ) strict;
  insert into appended (entity, version, count, format, text)
    select entity, version, count, format, text from journal order by entity, version;
  drop table journal;
  alter table appended rename to journal;
  create unique index journal_by_entity on journal (entity, version);
  `,
  /* 005-one-row-an-entity */ `
  -- Header, wake and the end of the journal of an entity in one row: a step that wrote to five trees, most of them at a place
  -- of its own in each, writes to two. A record names the one before it, so that no index leads to it.
  create table entities (
    entity text primary key,
    last integer,
    next_version integer not null default 1,
    class text,
    status text,
    workflow text,
    tenant text,
    created_at_ms integer,
    ended_at_ms integer,
    header_version integer,
    wake_at_ms integer
  ) strict, without rowid;
  insert into entities (entity, last, next_version)
    select entity, max(id), max(version + count) from journal
    where entity not in (select entity from purges) group by entity;
  insert into entities
    (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, header_version)
    select entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version from headers where true
    on conflict (entity) do update set
      class = excluded.class,
      status = excluded.status,
      workflow = excluded.workflow,
      tenant = excluded.tenant,
      created_at_ms = excluded.created_at_ms,
      ended_at_ms = excluded.ended_at_ms,
      header_version = excluded.header_version;
  insert into entities (entity, wake_at_ms) select entity, at_ms from wakes where true
    on conflict (entity) do update set wake_at_ms = excluded.wake_at_ms;
  create index entities_by_creation on entities (created_at_ms, entity) where created_at_ms is not null;
  create index entities_by_wake on entities (wake_at_ms, entity) where wake_at_ms is not null;

  alter table purges add column last integer;
  update purges set last = (select max(id) from journal where journal.entity = purges.entity);

  create table linked (
    id integer primary key,
    prev integer,
    entity text not null,
    version integer not null,
    count integer not null,
    format integer not null,
    text text not null
  ) strict;
  insert into linked (id, prev, entity, version, count, format, text)
    select id, lag(id) over (partition by entity order by version), entity, version, count, format, text
    from journal order by id;
  drop table journal;
  alter table linked rename to journal;
  drop table headers;
  drop table wakes;
  `,
];

/** Says that a database is ours, in place of the zero that others have: "mill". */
const APPLICATION_ID = 0x6d696c6c;

const SQL = {
  tables: `select count(*) as count from sqlite_schema where type = 'table'`,
  createStore: `insert into store (incarnation) select ? where not exists (select 1 from store)`,
  createPartition: `
    insert into partitions (id, epoch, owner, seq, last_time_ms, strikes, is_clean)
    values (0, 0, '', 0, 0, 0, 1) on conflict do nothing`,
  incarnation: `select incarnation from store`,
};

/** Brings the file up to date and answers its incarnation, which is drawn when it is created. */
export function migrate(db: Database, newIncarnation: string): string {
  return db.transaction(() => {
    const format = Number(db.pragma("user_version"));
    for (const migration of MIGRATIONS.slice(format)) db.script(migration);
    // A pragma takes no parameters, and the numbers are ours.
    db.script(`pragma user_version = ${MIGRATIONS.length}; pragma application_id = ${APPLICATION_ID}`);
    db.run(SQL.createStore, newIncarnation);
    db.run(SQL.createPartition);
    return db.get<{ incarnation: string }>(SQL.incarnation)!.incarnation;
  });
}

/** Refuses what is not a store of ours, and what a later release has written. */
export function checkFormat(db: Database, file: string): void {
  const format = Number(db.pragma("user_version"));
  const { count } = db.get<{ count: number }>(SQL.tables)!;
  // The first formats had no application id.
  const owner = Number(db.pragma("application_id"));
  const isOurs = format === 0 ? count === 0 : owner === APPLICATION_ID || (owner === 0 && format < 3);
  if (!isOurs) throw new StoreError("STORE_INVALID", `${file} is a database of another program.`);
  if (format <= MIGRATIONS.length) return;
  throw new StoreError(
    "STORE_TOO_NEW",
    `${file} has format ${format}, and this release knows formats up to ${MIGRATIONS.length}: a later release has ` +
      "written it. Use that one, or name another file.",
  );
}
