import assert from "node:assert/strict";
import type { CommitOutcome, Cut, EntityKey, Fence } from "../../../store/contract.ts";
import type { Columns, Database, SqlValue } from "./database.ts";
import { HeaderCounts } from "./header-counts.ts";
import type { Purge } from "./purge.ts";

export const SQL = {
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
  // Guard: two of one version collide.
  appendRecord: `insert into journal (entity, version, count, format, text) values (?, ?, ?, ?, ?)`,
  nextVersion: `select version + count as version from journal where entity = ? order by journal.version desc limit 1`,
  cutJournal: `
    delete from journal where entity = ?1 and version in (
      select version from journal where entity = ?1 and version < ?2 and version + count <= ?2 order by version limit ?3)`,
  putSnapshot: `
    insert into snapshots (entity, version, format, text) values (?, ?, ?, ?)
    on conflict (entity) do update set version = excluded.version, format = excluded.format, text = excluded.text
    where snapshots.version <= excluded.version`,
  // Not "or replace", which would take the row out of its index and put it back: what the index is by never changes.
  putHeader: `
    insert into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    values (?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (entity) do update set
      class = excluded.class,
      status = excluded.status,
      workflow = excluded.workflow,
      tenant = excluded.tenant,
      ended_at_ms = excluded.ended_at_ms,
      version = excluded.version`,
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
  /** entity, atMs */
  readonly wakes: Columns;
  /** Entities that nobody need look at any more. */
  readonly unwoken: readonly EntityKey[];
  /** id, text */
  readonly mail: Columns;
  readonly discard: readonly string[];
  /** id, class, queue, entity, atMs, text */
  readonly deadLetters: Columns;
  /** list, id, entity, atMs, text or null */
  readonly listings: Columns;
  readonly purge: readonly EntityKey[];
  readonly cut?: readonly Cut[];
}

/** Rows that one cut removes: as many as come together between two of them, and some of what was there before. */
const CUT_ROWS = 10_000;

/** Entities whose next version is known without a look. */
const MAX_KNOWN = 50_000;

/** Writes batches, each of them whole. */
export class Commit {
  readonly counts: HeaderCounts;
  readonly #db: Database;
  readonly #purge: Purge;
  readonly #incarnation: string;
  readonly #nextVersions = new Map<EntityKey, number>();

  constructor(db: Database, purge: Purge, incarnation: string) {
    this.counts = new HeaderCounts(db);
    this.#db = db;
    this.#purge = purge;
    this.#incarnation = incarnation;
  }

  write(batch: FileBatch): CommitOutcome {
    const db = this.#db;
    const { epoch, nonce, seq } = batch.fence;
    if (batch.fence.incarnation !== this.#incarnation) return { kind: "fenced" };
    if (db.run(SQL.advance, batch.id, batch.timeMs, batch.suspect, epoch, nonce, seq) === 0) {
      const isOurResend = db.get(SQL.isResend, epoch, nonce, seq, batch.id) !== undefined;
      return { kind: isOurResend ? "alreadyApplied" : "fenced" };
    }
    db.runAll(SQL.deleteMail, [batch.consumedMail]);
    this.#append(batch.records, batch.cut);
    db.runAll(SQL.putSnapshot, batch.snapshots);
    this.counts.note(batch.headers, batch.records);
    db.runAll(SQL.putHeader, batch.headers);
    db.runAll(SQL.setWake, batch.wakes);
    db.runAll(SQL.clearWake, [batch.unwoken]);
    db.runAll(SQL.putMail, batch.mail);
    db.runAll(SQL.deleteDeadLetter, [batch.discard]);
    db.runAll(SQL.putDeadLetter, batch.deadLetters);
    for (const [list, id, entity, atMs, text] of rowsOf(batch.listings)) {
      if (text === null) db.run(SQL.deleteListing, list!, id!);
      else db.run(SQL.putListing, list!, id!, entity!, atMs!, text!);
    }
    for (const { entity, belowVersion } of batch.cut ?? []) db.run(SQL.cutJournal, entity, belowVersion, CUT_ROWS);
    // Last: whatever else the batch says of an entity it purges, nothing of it is left.
    this.counts.noteGone(batch.purge);
    this.#purge.purge(batch.purge);
    for (const entity of batch.purge) this.#nextVersions.delete(entity);
    return { kind: "committed" };
  }

  /** To be called after a rollback: what was written last is not there. */
  forget(): void {
    this.#nextVersions.clear();
    this.counts.forget();
  }

  #append(records: Columns, cut: readonly Cut[] = []): void {
    const [entities, versions, counts] = records as readonly [string[], number[], number[]];
    for (let i = 0; i < entities.length; i++) {
      const [entity, version, count] = [entities[i]!, versions[i]!, counts[i]!];
      this.#purge.finish(entity);
      const isNext = version === this.#nextVersion(entity, version, cut) && count > 0;
      if (!isNext) assert.fail(`${count} events from ${version} are not the next ones of ${entity}`);
      this.#nextVersions.set(entity, version + count);
    }
    this.#db.runAll(SQL.appendRecord, records);
    if (this.#nextVersions.size > MAX_KNOWN) this.#nextVersions.clear();
  }

  /** The first version of all needs no look: if it were there already, the two would collide. */
  #nextVersion(entity: EntityKey, version: number, cut: readonly Cut[]): number {
    const known = this.#nextVersions.get(entity);
    if (known !== undefined) return known;
    if (version === 1) return 1;
    const stored = this.#db.get<{ version: number }>(SQL.nextVersion, entity)?.version;
    return stored ?? cut.find((one) => one.entity === entity)?.belowVersion ?? 1;
  }
}

function* rowsOf(columns: Columns): Generator<readonly SqlValue[], void> {
  for (let row = 0; row < (columns[0]?.length ?? 0); row++) yield columns.map((column) => column[row]!);
}
