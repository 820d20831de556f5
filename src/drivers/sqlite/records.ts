import type { Published, PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { MAX_VERSIONS } from "../../store/page.ts";
import { whyRefused } from "./commit.ts";
import type { Sqlite } from "./sqlite.ts";

const SQL = {
  put: `insert into records (scope, hash, text) values (?, ?, ?) on conflict do nothing`,
  get: `select text from records where scope = ? and hash = ?`,
  // An upsert, so that the version is answered in both cases.
  publish: `
    insert into published (name, hash, version)
    values (?1, ?2, (select coalesce(max(version), 0) + 1 from published where name = ?1))
    on conflict (name, hash) do update set is_gone = 0 returning version`,
  newest: `
    select version, hash from published where name = ? and is_gone = 0 order by version desc limit 1`,
  byVersion: `select version, hash from published where name = ? and version = ? and is_gone = 0`,
  byHash: `select version, hash from published where name = ? and hash = ? and is_gone = 0`,
  versions: `select version, hash from published where name = ? and is_gone = 0 order by version desc limit ?`,
  // The rows stay: a number is never used for another content.
  unpublish: `update published set is_gone = 1 where name = ?`,
  register: `insert or replace into registrations (process, role, text, until_ms) values (?, ?, ?, ?)`,
  registered: `select process, role, text from registrations where until_ms > ?`,
  forgetDead: `delete from registrations where until_ms <= ?`,
};

export class SqliteRecords implements Records {
  readonly #sqlite: Sqlite;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
  }

  async put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome> {
    const { db } = this.#sqlite;
    try {
      db.transaction(() => {
        for (const { scope, hash, text } of records) db.run(SQL.put, scope, hash, text);
      });
      return "stored";
    } catch (error) {
      if (options?.refusable === true && whyRefused(error) !== undefined) return "refused";
      throw error;
    }
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    const { db } = this.#sqlite;
    return keys.map(({ scope, hash }) => db.get<{ text: string }>(SQL.get, scope, hash)?.text ?? null);
  }

  async publish(name: string, hash: string): Promise<number> {
    return this.#sqlite.db.get<{ version: number }>(SQL.publish, name, hash)!.version;
  }

  async published(name: string, version?: number | string): Promise<Published | null> {
    const { db } = this.#sqlite;
    if (version === undefined) return db.get<Published>(SQL.newest, name) ?? null;
    return db.get<Published>(typeof version === "number" ? SQL.byVersion : SQL.byHash, name, version) ?? null;
  }

  async versions(name: string): Promise<readonly Published[]> {
    return this.#sqlite.db.all<Published>(SQL.versions, name, MAX_VERSIONS);
  }

  async unpublish(name: string): Promise<void> {
    this.#sqlite.db.run(SQL.unpublish, name);
  }

  async register({ process, role, text }: Registration, ttlMs: number): Promise<void> {
    const { db, memory } = this.#sqlite;
    const nowMs = memory.leaseClock.nowMs();
    db.transaction(() => {
      db.run(SQL.forgetDead, nowMs);
      db.run(SQL.register, process, role, text, nowMs + ttlMs);
    });
  }

  async registered(): Promise<readonly Registration[]> {
    const { db, memory } = this.#sqlite;
    return db.all<Registration>(SQL.registered, memory.leaseClock.nowMs());
  }
}
