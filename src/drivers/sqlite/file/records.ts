import type { Registration } from "../../../store/contract.ts";
import type { Columns, Database } from "./database.ts";
import type { Purge } from "./purge.ts";

const SQL = {
  put: `insert into records (scope, hash, text) values (?, ?, ?) on conflict do nothing`,
  // An upsert, so that the version is answered in both cases.
  publish: `
    insert into published (name, hash, version)
    values (?1, ?2, (select coalesce(max(version), 0) + 1 from published where name = ?1))
    on conflict (name, hash) do update set is_gone = 0 returning version`,
  // The rows stay: a number is never used for another content.
  unpublish: `update published set is_gone = 1 where name = ?`,
  register: `insert or replace into registrations (process, role, text, until_ms) values (?, ?, ?, ?)`,
  forgetDead: `delete from registrations where until_ms <= ?`,
};

const LONG_CHARS = 1024 * 1024;
/** Registrations that are over are looked for once in this time: there may be thousands, and as many new ones. */
const LOOK_FOR_DEAD_MS = 1_000;

export class FileRecords {
  readonly #db: Database;
  readonly #purge: Purge;
  #lookedAtMs = -Infinity;

  constructor(db: Database, purge: Purge) {
    this.#db = db;
    this.#purge = purge;
  }

  /** scope, hash, text */
  put(records: Columns): void {
    for (const scope of new Set(records[0])) this.#purge.finish(String(scope));
    this.#db.runAll(SQL.put, records);
    // A statement keeps what it was given last until it is given something else, and that may be a definition of 37 MB.
    const [scopes, hashes, texts] = records;
    const text = texts?.at(-1);
    if (typeof text === "string" && text.length > LONG_CHARS)
      this.#db.run(SQL.put, scopes!.at(-1)!, hashes!.at(-1)!, "");
  }

  publish(name: string, hash: string): number {
    return this.#db.get<{ version: number }>(SQL.publish, name, hash)!.version;
  }

  unpublish(name: string): void {
    this.#db.run(SQL.unpublish, name);
  }

  register({ process, role, text }: Registration, untilMs: number, nowMs: number): void {
    // By the wall clock, which may be set.
    if (Math.abs(nowMs - this.#lookedAtMs) >= LOOK_FOR_DEAD_MS) {
      this.#db.run(SQL.forgetDead, nowMs);
      this.#lookedAtMs = nowMs;
    }
    this.#db.run(SQL.register, process, role, text, untilMs);
  }
}
