import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Contender } from "../contender.ts";
import type { Probe } from "../probe.ts";
import { recordRows } from "./recorded-rows.ts";

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
    pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -32768; pragma wal_autocheckpoint = 4000;
    create table journal (entity text, version integer, count integer, format integer, text text,
      primary key (entity, version)) strict, without rowid;
    create table headers (entity text primary key, class text, status text, workflow text, tenant text,
      created_at_ms integer, ended_at_ms integer, version integer) strict, without rowid;
    create index headers_by_creation on headers (created_at_ms, entity);
    create table wakes (entity text primary key, at_ms integer) strict, without rowid;
    create index wakes_by_time on wakes (at_ms, entity);
  `);
  const append = db.prepare("insert into journal values (?, ?, ?, ?, ?)");
  const putHeader = db.prepare("insert or replace into headers values (?, ?, ?, ?, ?, ?, ?, ?)");
  const putWake = db.prepare("insert or replace into wakes values (?, ?)");
  const clearWake = db.prepare("delete from wakes where entity = ?");
  let made = 0;

  const writeGroup = (count: number): void => {
    const entities = Array.from({ length: count }, () => `execution/${String(++made).padStart(32, "0")}`);
    for (const { records, headers, wakes } of commits) {
      db.exec("begin immediate");
      for (const entity of entities) {
        for (const { version, count, format, text } of records) append.run(entity, version, count, format, text);
        for (const one of headers) {
          const { status, workflow, tenant, createdAtMs, endedAtMs, version } = one;
          putHeader.run(entity, one.class, status, workflow, tenant, createdAtMs, endedAtMs, version);
        }
        for (const { atMs } of wakes) {
          if (atMs === null) clearWake.run(entity);
          else putWake.run(entity, atMs);
        }
      }
      db.exec("commit");
    }
    probe.skip(count);
  };
  const submit = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= GROUP) writeGroup(Math.min(GROUP, left));
    // Others of this process have their turn, as in any event loop.
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { servers: {}, submit, runOne: () => submit(1), settled: async () => {}, close: async () => db.close() };
}
