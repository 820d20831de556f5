import type { EntityKey } from "../../store/contract.ts";
import { are, is } from "./by-index.ts";
import { type Connection, type Database, rows, type Statement } from "./database.ts";

/** Rows that one step removes: more would hold up whoever waits for the same transaction. */
const STEP_ROWS = 1000;

export const SQL = {
  // The rest of what is small; there is no limit because there is one row each, or as many as a person looks through.
  forget: `
    with gone as materialized (select unnest($1::text[]) as entity),
      snapshot as (delete from snapshots using gone where ${is("snapshots.entity", "gone.entity")}),
      header as (delete from headers using gone where ${is("headers.entity", "gone.entity")}),
      listing as (delete from listings using gone where ${is("listings.entity", "gone.entity")})
    delete from wakes using gone where ${is("wakes.entity", "gone.entity")}`,
  someJournal: `
    delete from journal using (
      select gone.entity, record.version from unnest($1::text[]) as gone (entity)
      cross join lateral (select version from journal where entity = gone.entity limit $2) as record limit $2
    ) as record
    where ${are(["journal.entity", "journal.version"], ["record.entity", "record.version"])}`,
  someRecords: `
    delete from records using (
      select gone.entity as scope, record.hash from unnest($1::text[]) as gone (entity)
      cross join lateral (select hash from records where scope = gone.entity limit $2) as record limit $2
    ) as record
    where ${are(["records.scope", "records.hash"], ["record.scope", "record.hash"])}`,
  // What still has rows is gone for every reader from now on.
  mark: `
    insert into purges (entity)
    select distinct entity from unnest($1::text[]) as gone (entity)
    where exists (select from journal where entity = gone.entity) or exists (select from records where scope = gone.entity)
    on conflict do nothing`,
  pending: `
    select purges.entity from unnest($1::text[]) as asked (entity)
    join purges on ${is("purges.entity", "asked.entity")} order by asked.entity collate "C" for update of purges`,
  next: `select entity from purges order by entity limit 1 for update skip locked`,
  allJournal: `delete from journal where entity = any ($1)`,
  allRecords: `delete from records where scope = any ($1)`,
  done: `delete from purges where entity = any ($1)`,
  doneIfEmpty: `
    delete from purges where entity = any ($1)
      and not exists (select from journal where ${is("entity", "purges.entity")})
      and not exists (select from records where ${is("scope", "purges.entity")})`,
};

/** What a commit does about entities it purges. The rest of the largest goes in steps. */
export function purging(entities: readonly EntityKey[]): readonly Statement[] {
  return [
    { sql: SQL.forget, values: [entities] },
    { sql: SQL.someJournal, values: [entities, STEP_ROWS] },
    { sql: SQL.someRecords, values: [entities, STEP_ROWS] },
    { sql: SQL.mark, values: [entities] },
  ];
}

/** One step for one entity; does nothing if there is none. */
export async function purgeSome(database: Database): Promise<void> {
  await database.transaction(async (connection) => {
    const found = await rows<{ entity: string }>(connection, SQL.next);
    if (found.length === 0) return;
    const entities = found.map(({ entity }) => entity);
    await connection.run(SQL.someJournal, [entities, STEP_ROWS]);
    await connection.run(SQL.someRecords, [entities, STEP_ROWS]);
    await connection.run(SQL.doneIfEmpty, [entities]);
  });
}

/** An entity that begins anew under the name of one whose rows are still being removed: nothing of it may be left. */
export async function finishPurges(connection: Connection, entities: readonly EntityKey[]): Promise<void> {
  if (entities.length === 0) return;
  const pending = (await rows<{ entity: string }>(connection, SQL.pending, [entities])).map(({ entity }) => entity);
  if (pending.length === 0) return;
  for (const sql of [SQL.allJournal, SQL.allRecords, SQL.done]) await connection.run(sql, [pending]);
}
