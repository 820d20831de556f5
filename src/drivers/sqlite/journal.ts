import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  JournalRecord,
  Loaded,
  LoadRequest,
  Snapshot,
  Wake,
} from "../../store/contract.ts";
import { versionKey } from "../memory/commit.ts";
import { commitBatches } from "./commit.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

const SQL = {
  snapshot: `select entity, version, format, text from snapshots where entity = ?`,
  // The first record may begin before the version asked for, because a record is opaque.
  recordsAbove: `
    select entity, version, count, format, text from journal
    where entity = ?1
      and version >= coalesce((select max(version) from journal where entity = ?1 and version <= ?2 + 1), 0)
      and version + count - 1 > ?2
    order by version`,
  wake: `select at_ms as atMs from wakes where entity = ?`,
  due: `
    select entity, at_ms as atMs from wakes
    where at_ms <= ?1 and (at_ms, entity) > (?2, ?3) order by at_ms, entity limit ?4`,
  version: `select version + count - 1 as version from journal where entity = ? order by version desc limit 1`,
};

export class SqliteJournal implements Journal {
  readonly #sqlite: Sqlite;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    return batches.length === 0 ? [] : commitBatches(this.#sqlite, batches);
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    const { db } = this.#sqlite;
    return requests.map(({ entity, aboveVersion }) => {
      const snapshot = aboveVersion === undefined ? (db.get<Snapshot>(SQL.snapshot, entity) ?? null) : null;
      const above = aboveVersion ?? snapshot?.version ?? 0;
      const records = db.all<JournalRecord>(SQL.recordsAbove, entity, above);
      const wakeAtMs = db.get<{ atMs: number }>(SQL.wake, entity)?.atMs ?? null;
      return { entity, snapshot, records, wakeAtMs };
    });
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    checkPartition(partition);
    const { atMs, entity } = after ?? { atMs: Number.MIN_SAFE_INTEGER, entity: "" };
    return this.#sqlite.db.all<Wake>(SQL.due, beforeMs, atMs, entity, limit);
  }

  async watch(_partition: number, entity: EntityKey, aboveVersion: number, waitMs: number): Promise<number> {
    const { db, memory } = this.#sqlite;
    let version = 0;
    const isAbove = (): number | undefined => {
      version = db.get<{ version: number }>(SQL.version, entity)?.version ?? 0;
      return version > aboveVersion ? version : undefined;
    };
    return (await memory.waiters.until([versionKey(entity)], waitMs, isAbove)) ?? version;
  }
}
