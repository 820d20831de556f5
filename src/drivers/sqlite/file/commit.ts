import assert from "node:assert/strict";
import type { CommitOutcome, Cut, EntityKey, Fence } from "../../../store/contract.ts";
import type { Columns, Database, SqlValue } from "./database.ts";
import { HeaderCounts } from "./header-counts.ts";
import type { Purge } from "./purge.ts";

export const SQL = {
  // Guard: only the holder of this nonce may write the next number, and behind the batch it was sent behind. With a suspect the
  // owner has yet to show that it survives: vanishing now is a strike.
  advance: `
    update partitions set
      seq = seq + 1,
      last_batch = ?1,
      last_time_ms = max(last_time_ms, ?2),
      suspect = ?3,
      strikes = iif(?3 is null, 0, strikes),
      is_clean = ?3 is null
    where id = 0 and epoch = ?4 and nonce = ?5 and seq = ?6 and last_batch is ifnull(?7, last_batch)`,
  // No row changed means fenced, or our own resend.
  isResend: `
    select 1 from partitions where id = 0 and epoch = ? and nonce = ? and seq = ? + 1 and last_batch = ?`,
  appendRecord: `insert into journal (id, prev, entity, version, count, format, text) values (?, ?, ?, ?, ?, ?, ?)`,
  newestId: `select coalesce(max(id), 0) as id from journal`,
  end: `select last, next_version as next from entities where entity = ? and last is not null`,
  // Guard, in all that move the end of a journal: two of one version collide.
  moveEnd: `
    insert into entities (entity, last, next_version) values (?1, ?2, ?3)
    on conflict (entity) do update set last = excluded.last, next_version = excluded.next_version
    where entities.next_version = ?4 or entities.last is null`,
  // What an execution begins with, in one row.
  begin: `
    insert into entities (entity, last, next_version, class, status, workflow, tenant, created_at_ms, ended_at_ms,
      header_version, wake_at_ms)
    values (?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    on conflict (entity) do update set
      last = excluded.last,
      next_version = excluded.next_version,
      class = excluded.class,
      status = excluded.status,
      workflow = excluded.workflow,
      tenant = excluded.tenant,
      created_at_ms = excluded.created_at_ms,
      ended_at_ms = excluded.ended_at_ms,
      header_version = excluded.header_version,
      wake_at_ms = excluded.wake_at_ms
    where entities.next_version = ?4 or entities.last is null`,
  // And what it ends with. Not when it was created: what an index is by is taken out of it and put back, changed or not.
  change: `
    update entities set
      last = ?2,
      next_version = ?3,
      class = ?5,
      status = ?6,
      workflow = ?7,
      tenant = ?8,
      ended_at_ms = ?9,
      header_version = ?10,
      wake_at_ms = ?11
    where entity = ?1 and next_version = ?4 and created_at_ms is not null`,
  // From the newest on.
  endingBefore: `
    with recursive chain (id, prev, end) as (
      select id, prev, version + count from journal
      where id = (select last from entities where entity = ?1) and entity = ?1
      union all
      select journal.id, journal.prev, journal.version + journal.count from chain
      join journal on journal.id = chain.prev where journal.entity = ?1
    )
    select id from chain where end <= ?2`,
  deleteRecord: `delete from journal where id = ?`,
  putSnapshot: `
    insert into snapshots (entity, version, format, text) values (?, ?, ?, ?)
    on conflict (entity) do update set version = excluded.version, format = excluded.format, text = excluded.text
    where snapshots.version <= excluded.version`,
  putHeader: `
    insert into entities (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, header_version)
    values (?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (entity) do update set
      class = excluded.class,
      status = excluded.status,
      workflow = excluded.workflow,
      tenant = excluded.tenant,
      created_at_ms = coalesce(created_at_ms, excluded.created_at_ms),
      ended_at_ms = excluded.ended_at_ms,
      header_version = excluded.header_version`,
  setWake: `
    insert into entities (entity, wake_at_ms) values (?, ?)
    on conflict (entity) do update set wake_at_ms = excluded.wake_at_ms`,
  clearWake: `update entities set wake_at_ms = null where entity = ?`,
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
  readonly behind: string | null;
  readonly timeMs: number;
  readonly suspect: string | null;
  readonly consumedMail: readonly number[];
  /** entity, version, count, format, text */
  readonly records: Columns;
  /** entity, version, format, text */
  readonly snapshots: Columns;
  /** entity, class, status, workflow, tenant, createdAtMs, endedAtMs, version */
  readonly headers: Columns;
  /** entity, atMs, which is null of those that nobody need look at any more */
  readonly wakes: Columns;
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

/** Entities the end of whose journal is known without a look. */
const MAX_KNOWN = 50_000;

/** Where the journal of an entity ends: its newest record, and the version that comes next. */
interface End {
  readonly last: number | null;
  readonly next: number;
}

const NOTHING: End = { last: null, next: 1 };

/** Writes batches, each of them whole. */
export class Commit {
  readonly counts: HeaderCounts;
  readonly #db: Database;
  readonly #purge: Purge;
  readonly #incarnation: string;
  readonly #ends = new Map<EntityKey, End>();
  /** The next record's; undefined until it was looked up. */
  #nextId: number | undefined;

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
    const { id, timeMs, suspect, behind } = batch;
    if (db.run(SQL.advance, id, timeMs, suspect, epoch, nonce, seq, behind) === 0) {
      const isOurResend = db.get(SQL.isResend, epoch, nonce, seq, id) !== undefined;
      return { kind: isOurResend ? "alreadyApplied" : "fenced" };
    }
    db.runAll(SQL.deleteMail, [batch.consumedMail]);
    this.counts.note(batch.headers, batch.records);
    const besides = new Besides(batch);
    this.#append(batch.records, besides, batch.cut);
    besides.headers.forEach((header, entity) => db.run(SQL.putHeader, entity, ...header));
    besides.wakes.forEach((atMs, entity) => {
      if (atMs === null) db.run(SQL.clearWake, entity);
      else db.run(SQL.setWake, entity, atMs);
    });
    db.runAll(SQL.putSnapshot, batch.snapshots);
    db.runAll(SQL.putMail, batch.mail);
    db.runAll(SQL.deleteDeadLetter, [batch.discard]);
    db.runAll(SQL.putDeadLetter, batch.deadLetters);
    for (const [list, id, entity, atMs, text] of rowsOf(batch.listings)) {
      if (text === null) db.run(SQL.deleteListing, list!, id!);
      else db.run(SQL.putListing, list!, id!, entity!, atMs!, text!);
    }
    for (const cut of batch.cut ?? []) this.#cut(cut);
    // Last: whatever else the batch says of an entity it purges, nothing of it is left.
    this.counts.noteGone(batch.purge);
    this.#purge.purge(batch.purge);
    for (const entity of batch.purge) this.#ends.delete(entity);
    return { kind: "committed" };
  }

  /** To be called after a rollback: what was written last is not there. */
  forget(): void {
    this.#ends.clear();
    this.#nextId = undefined;
    this.counts.forget();
  }

  #append(records: Columns, besides: Besides, cut: readonly Cut[] = []): void {
    const [entities, versions, counts] = records as readonly [string[], number[], number[]];
    const ids: number[] = [];
    const before: (number | null)[] = [];
    for (let i = 0; i < entities.length; i++) {
      const [entity, version, count] = [entities[i]!, versions[i]!, counts[i]!];
      this.#purge.finish(entity);
      const { last, next } = this.#endOf(entity, version, cut);
      if (version !== next || count <= 0)
        assert.fail(`${count} events from ${version} are not the next ones of ${entity}`);
      const id = this.#newId();
      ids.push(id);
      before.push(last);
      const end: End = { last: id, next: version + count };
      const isMoved = this.#moveEnd(entity, end, { last, next }, besides);
      if (!isMoved) assert.fail(`there are events of ${entity} from ${version} on already`);
      this.#ends.set(entity, end);
    }
    this.#db.runAll(SQL.appendRecord, [ids, before, ...records]);
    if (this.#ends.size > MAX_KNOWN) this.#ends.clear();
  }

  /** With all that the batch says of it, where that is header and wake: as it is when an execution begins and when it ends. */
  #moveEnd(entity: EntityKey, { last, next }: End, from: End, { headers, wakes }: Besides): boolean {
    const db = this.#db;
    const header = headers.get(entity);
    const wakeAtMs = wakes.get(entity);
    if (header !== undefined && wakeAtMs !== undefined) {
      const [kind, status, workflow, tenant, createdAtMs, ...rest] = header;
      const moved = [entity, last, next, from.next, kind!, status!, workflow!, tenant!];
      if (from.last === null) moved.push(createdAtMs!);
      if (db.run(from.last === null ? SQL.begin : SQL.change, ...moved, ...rest, wakeAtMs) > 0) {
        headers.delete(entity);
        wakes.delete(entity);
        return true;
      }
    }
    return db.run(SQL.moveEnd, entity, last, next, from.next) > 0;
  }

  /** Those that go are the oldest: what is left has to hang together. */
  #cut({ entity, belowVersion }: Cut): void {
    const found = this.#db.all<{ id: number }>(SQL.endingBefore, entity, belowVersion);
    // The later a record is, the greater its number.
    const ids = found.map(({ id }) => id).sort((a, b) => a - b);
    this.#db.runAll(SQL.deleteRecord, [ids.slice(0, CUT_ROWS)]);
  }

  /** The first version of all needs no look: if it were there already, the two would collide. */
  #endOf(entity: EntityKey, version: number, cut: readonly Cut[]): End {
    const known = this.#ends.get(entity);
    if (known !== undefined) return known;
    if (version === 1) return NOTHING;
    const stored = this.#db.get<End>(SQL.end, entity);
    if (stored !== undefined) return stored;
    return { last: null, next: cut.find((one) => one.entity === entity)?.belowVersion ?? 1 };
  }

  #newId(): number {
    const id = this.#nextId ?? this.#db.get<{ id: number }>(SQL.newestId)!.id + 1;
    this.#nextId = id + 1;
    return id;
  }
}

/** class, status, workflow, tenant, createdAtMs, endedAtMs, version */
type Header = readonly SqlValue[];

/** What a batch says of entities besides their records, as far as it is not written yet; the last that it says counts. */
class Besides {
  readonly headers = new Map<EntityKey, Header>();
  readonly wakes = new Map<EntityKey, number | null>();

  constructor({ headers: [named = [], ...headers], wakes }: FileBatch) {
    for (let i = 0; i < named.length; i++) {
      const header: SqlValue[] = [];
      for (const column of headers) header.push(column[i]!);
      this.headers.set(named[i] as EntityKey, header);
    }
    const [entities = [], times = []] = wakes as readonly [EntityKey[], (number | null)[]] | [];
    for (let i = 0; i < entities.length; i++) this.wakes.set(entities[i]!, times[i]!);
  }
}

function* rowsOf(columns: Columns): Generator<readonly SqlValue[], void> {
  for (let row = 0; row < (columns[0]?.length ?? 0); row++) yield columns.map((column) => column[row]!);
}
