import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Contender } from "../contender.ts";
import type { Probe } from "../probe.ts";
import { type RecordedCommit, recordRows } from "./recorded-rows.ts";

/** Executions whose rows go into one transaction. */
export const GROUP = 250;

/**
 * The rows of Millrace's own commits, written to SQLite in one loop: as many executions to a transaction as a full batch of
 * the engine has, one transaction for each commit that an execution needs. No engine, no worker, no thread, no guard.
 */
export async function startBareSqlite(probe: Probe, folder: string): Promise<Contender> {
  const commits = await recordRows(probe.shape);
  const db = new DatabaseSync(join(folder, "bare.db"));
  db.exec(`
    pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -32768;
    pragma wal_autocheckpoint = 2000;
    create table journal (id integer primary key, prev integer, entity text, version integer, count integer,
      format integer, text text) strict;
    create table entities (entity text primary key, last integer, next_version integer, class text, status text,
      workflow text, tenant text, created_at_ms integer, ended_at_ms integer, header_version integer,
      wake_at_ms integer) strict, without rowid;
    create index entities_by_creation on entities (created_at_ms, entity) where created_at_ms is not null;
    create index entities_by_wake on entities (wake_at_ms, entity) where wake_at_ms is not null;
  `);
  const append = db.prepare("insert into journal values (?, ?, ?, ?, ?, ?, ?)");
  const moveEnd = db.prepare(`
    insert into entities (entity, last, next_version) values (?, ?, ?)
    on conflict (entity) do update set last = excluded.last, next_version = excluded.next_version`);
  const begin = db.prepare("insert into entities values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const end = db.prepare(`
    update entities set last = ?, next_version = ?, class = ?, status = ?, ended_at_ms = ?, header_version = ?,
      wake_at_ms = ? where entity = ?`);
  let made = 0;

  const writeGroup = (count: number): void => {
    const entities = Array.from({ length: count }, () => `execution/${String(++made).padStart(32, "0")}`);
    for (const commit of commits) {
      db.exec("begin immediate");
      for (const entity of entities) write(entity, commit);
      db.exec("commit");
    }
    probe.skip(count);
  };
  let id = 0;
  const write = (entity: string, { records, headers: [header], wakes }: RecordedCommit): void => {
    let next = 0;
    for (const { version, count, format, text } of records) {
      append.run(++id, version === 1 ? null : id - 1, entity, version, count, format, text);
      next = version + count;
    }
    if (header === undefined) return void moveEnd.run(entity, id, next);
    const { status, workflow, tenant, createdAtMs, endedAtMs, version } = header;
    const wakeAtMs = wakes[0]?.atMs ?? null;
    if (endedAtMs !== null) end.run(id, next, header.class, status, endedAtMs, version, wakeAtMs, entity);
    else begin.run(entity, id, next, header.class, status, workflow, tenant, createdAtMs, null, version, wakeAtMs);
  };
  const submit = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= GROUP) writeGroup(Math.min(GROUP, left));
    // Others of this process have their turn, as in any event loop.
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { servers: {}, submit, runOne: () => submit(1), settled: async () => {}, close: async () => db.close() };
}
