import assert from "node:assert/strict";
import type { CommitBatch, CommitOutcome, EntityKey, Outgoing } from "../../store/contract.ts";
import { versionKey } from "../memory/commit.ts";
import { consume, idsOf, postReply } from "../memory/inbox.ts";
import { addTask, revokeTask } from "../memory/tasks.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

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
  purgeJournal: `delete from journal where entity = ?`,
  purgeSnapshot: `delete from snapshots where entity = ?`,
  purgeHeader: `delete from headers where entity = ?`,
  purgeRecords: `delete from records where scope = ?`,
  purgeListings: `delete from listings where entity = ?`,
};

const READ_ONLY = 8;
const FULL = 13;

interface Mail {
  readonly id: number;
  readonly message: Outgoing;
}

/** All batches in one transaction; what lives in memory follows once it is on the disk. */
export function commitBatches(sqlite: Sqlite, batches: readonly CommitBatch[]): readonly CommitOutcome[] {
  const mail = new Map<CommitBatch, readonly Mail[]>();
  const outcomes: CommitOutcome[] = [];
  try {
    sqlite.db.transaction(() => {
      for (const batch of batches) outcomes.push(writeBatch(sqlite, batch, mail));
    });
  } catch (error) {
    const reason = whyRefused(error);
    if (reason === undefined) throw error;
    return batches.map((): CommitOutcome => ({ kind: "refused", reason }));
  }
  for (const [i, batch] of batches.entries()) {
    if (outcomes[i]!.kind === "committed") release(sqlite, batch, mail.get(batch)!);
  }
  return outcomes;
}

function writeBatch(sqlite: Sqlite, batch: CommitBatch, mail: Map<CommitBatch, readonly Mail[]>): CommitOutcome {
  const { db, incarnation } = sqlite;
  const { partition, epoch, nonce, seq } = batch.fence;
  checkPartition(partition);
  if (batch.fence.incarnation !== incarnation) return { kind: "fenced" };
  if (db.run(SQL.advance, batch.id, batch.timeMs, batch.suspect, epoch, nonce, seq) === 0) {
    const isOurResend = db.get(SQL.isResend, epoch, nonce, seq, batch.id) !== undefined;
    return { kind: isOurResend ? "alreadyApplied" : "fenced" };
  }
  for (const id of consumedIds(batch)) {
    if (sqlite.mailIds.has(id)) db.run(SQL.deleteMail, id);
  }
  writeEntities(sqlite, batch);
  mail.set(batch, writeMail(sqlite, batch));
  for (const entity of batch.purge) purge(sqlite, entity);
  return { kind: "committed" };
}

function consumedIds({ consumed }: CommitBatch): readonly number[] {
  return consumed === null ? [] : idsOf(consumed);
}

function writeEntities({ db }: Sqlite, batch: CommitBatch): void {
  for (const { entity, version, count, format, text } of batch.records) {
    assert(count > 0, `a record of ${entity} without events`);
    const changes = db.run(SQL.appendRecord, entity, version, count, format, text);
    assert.equal(changes, 1, `${version} is not the number of the next event of ${entity}`);
  }
  for (const { entity, version, format, text } of batch.snapshots)
    db.run(SQL.putSnapshot, entity, version, format, text);
  for (const header of batch.headers) {
    const { entity, status, workflow, tenant, createdAtMs, endedAtMs, version } = header;
    db.run(SQL.putHeader, entity, header.class, status, workflow, tenant, createdAtMs, endedAtMs, version);
  }
  for (const { entity, atMs } of batch.wakes) {
    if (atMs === null) db.run(SQL.clearWake, entity);
    else db.run(SQL.setWake, entity, atMs);
  }
  for (const id of batch.discard) db.run(SQL.deleteDeadLetter, id);
  for (const letter of batch.deadLetters) {
    const { id, queue, entity, atMs, text } = letter;
    db.run(SQL.putDeadLetter, id, letter.class, queue, entity, atMs, text);
  }
  for (const { list, id, entity, atMs, text } of batch.listings ?? []) {
    if (text === null) db.run(SQL.deleteListing, list, id);
    else db.run(SQL.putListing, list, id, entity, atMs, text);
  }
}

function writeMail({ db, inbox }: Sqlite, batch: CommitBatch): readonly Mail[] {
  return batch.mail.map(({ partition, text }) => {
    const id = inbox.reserve(partition);
    db.run(SQL.putMail, id, text);
    // Mail is never refused, not even a start.
    return { id, message: { partition, start: false, text } };
  });
}

function purge({ db }: Sqlite, entity: EntityKey): void {
  db.run(SQL.purgeJournal, entity);
  db.run(SQL.purgeSnapshot, entity);
  db.run(SQL.purgeHeader, entity);
  db.run(SQL.purgeRecords, entity);
  db.run(SQL.purgeListings, entity);
  db.run(SQL.clearWake, entity);
}

/** The commit is durable: now the effects that live in memory, none of which can fail. */
function release({ memory, inbox, mailIds }: Sqlite, batch: CommitBatch, mail: readonly Mail[]): void {
  consume(memory, 0, batch.consumed);
  for (const id of consumedIds(batch)) mailIds.delete(id);
  for (const task of batch.tasks) addTask(memory, task);
  // After the tasks: what one batch both sends out and withdraws has to be gone.
  for (const token of batch.revoke) revokeTask(memory, token);
  for (const { id, message } of mail) {
    mailIds.add(id);
    inbox.appendAt(id, message);
  }
  for (const reply of batch.replies) postReply(memory, reply);
  for (const { entity } of batch.records) memory.waiters.wakeAll(versionKey(entity));
}

/** A full disk or a file that may not be written is a definite no: the transaction was rolled back. */
export function whyRefused(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  const code = Number(error.errcode) & 0xff;
  return code === FULL || code === READ_ONLY ? error.message : undefined;
}
