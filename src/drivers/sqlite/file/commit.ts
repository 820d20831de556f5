import assert from "node:assert/strict";
import type { CommitOutcome, EntityKey, Fence } from "../../../store/contract.ts";
import type { Columns, Database, SqlValue } from "./database.ts";
import type { Purge } from "./purge.ts";

const SQL = {
  // Guard: only the holder of this nonce may write the next number. With a suspect the owner has yet to show that it
  // survives: vanishing now is a strike.
  advance: `
    update partitions set
      seq = seq + 1,
      last_batch = ?1,
      last_time_ms = max(last_time_ms, ?2),
      suspect = ?3,
      strikes = iif(?3 is null, 0, strikes),
      is_clean = ?3 is null
    where id = 0 and epoch = ?4 and nonce = ?5 and seq = ?6`,
  // No row changed means fenced, or our own resend.
  isResend: `
    select 1 from partitions where id = 0 and epoch = ? and nonce = ? and seq = ? + 1 and last_batch = ?`,
  // Guard: the version has to be the next one.
  appendRecord: `
    insert into journal (entity, version, count, format, text)
    select ?1, ?2, ?3, ?4, ?5
    where ?2 = coalesce((select version + count from journal where entity = ?1 order by version desc limit 1), 1)`,
  putSnapshot: `
    insert into snapshots (entity, version, format, text) values (?, ?, ?, ?)
    on conflict (entity) do update set version = excluded.version, format = excluded.format, text = excluded.text
    where snapshots.version <= excluded.version`,
  putHeader: `
    insert or replace into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    values (?, ?, ?, ?, ?, ?, ?, ?)`,
  setWake: `insert or replace into wakes (entity, at_ms) values (?, ?)`,
  clearWake: `delete from wakes where entity = ?`,
  putMail: `insert into mail (id, text) values (?, ?)`,
  deleteMail: `delete from mail where id = ?`,
  deleteDeadLetter: `delete from dead_letters where id = ?`,
  putDeadLetter: `
    insert or replace into dead_letters (id, class, queue, entity, at_ms, text) values (?, ?, ?, ?, ?, ?)`,
  putListing: `insert or replace into listings (list, id, entity, at_ms, text) values (?, ?, ?, ?, ?)`,
  deleteListing: `delete from listings where list = ? and id = ?`,
};

/** What of a batch goes into the file; the rest lives in the process. */
export interface FileBatch {
  readonly fence: Fence;
  readonly id: string;
  readonly timeMs: number;
  readonly suspect: string | null;
  readonly consumedMail: readonly number[];
  /** entity, version, count, format, text */
  readonly records: Columns;
  /** entity, version, format, text */
  readonly snapshots: Columns;
  /** entity, class, status, workflow, tenant, createdAtMs, endedAtMs, version */
  readonly headers: Columns;
  /** entity, atMs or null */
  readonly wakes: Columns;
  /** id, text */
  readonly mail: Columns;
  readonly discard: readonly string[];
  /** id, class, queue, entity, atMs, text */
  readonly deadLetters: Columns;
  /** list, id, entity, atMs, text or null */
  readonly listings: Columns;
  readonly purge: readonly EntityKey[];
}

export function commitBatch(db: Database, purge: Purge, incarnation: string, batch: FileBatch): CommitOutcome {
  const { epoch, nonce, seq } = batch.fence;
  if (batch.fence.incarnation !== incarnation) return { kind: "fenced" };
  if (db.run(SQL.advance, batch.id, batch.timeMs, batch.suspect, epoch, nonce, seq) === 0) {
    const isOurResend = db.get(SQL.isResend, epoch, nonce, seq, batch.id) !== undefined;
    return { kind: isOurResend ? "alreadyApplied" : "fenced" };
  }
  db.runAll(SQL.deleteMail, [batch.consumedMail]);
  appendRecords(db, purge, batch.records);
  db.runAll(SQL.putSnapshot, batch.snapshots);
  db.runAll(SQL.putHeader, batch.headers);
  for (const [entity, atMs] of rowsOf(batch.wakes)) {
    if (atMs === null) db.run(SQL.clearWake, entity!);
    else db.run(SQL.setWake, entity!, atMs!);
  }
  db.runAll(SQL.putMail, batch.mail);
  db.runAll(SQL.deleteDeadLetter, [batch.discard]);
  db.runAll(SQL.putDeadLetter, batch.deadLetters);
  for (const [list, id, entity, atMs, text] of rowsOf(batch.listings)) {
    if (text === null) db.run(SQL.deleteListing, list!, id!);
    else db.run(SQL.putListing, list!, id!, entity!, atMs!, text!);
  }
  // Last: whatever else the batch says of an entity it purges, nothing of it is left.
  purge.purge(batch.purge);
  return { kind: "committed" };
}

function appendRecords(db: Database, purge: Purge, records: Columns): void {
  const [entities = [], versions = [], counts = []] = records;
  for (const [i, entity] of entities.entries()) {
    purge.finish(String(entity));
    assert(Number(counts[i]) > 0, `a record of ${String(entity)} without events`);
    const changes = db.run(SQL.appendRecord, ...records.map((column) => column[i]!));
    assert(changes === 1, `${String(versions[i])} is not the number of the next event of ${String(entity)}`);
  }
}

function* rowsOf(columns: Columns): Generator<readonly SqlValue[], void> {
  for (let row = 0; row < (columns[0]?.length ?? 0); row++) yield columns.map((column) => column[row]!);
}
