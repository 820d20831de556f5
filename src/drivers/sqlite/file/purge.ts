import type { EntityKey } from "../../../store/contract.ts";
import type { Database } from "./database.ts";

export const SQL = {
  header: `delete from headers where entity = ?`,
  snapshot: `delete from snapshots where entity = ?`,
  wake: `delete from wakes where entity = ?`,
  listings: `delete from listings where entity = ?`,
  journal: `
    delete from journal where entity = ?1
      and version in (select version from journal where entity = ?1 order by version limit ?2)`,
  records: `delete from records where rowid in (select rowid from records where scope = ? limit ?)`,
  remember: `insert into purges (entity) values (?) on conflict do nothing`,
  forget: `delete from purges where entity = ?`,
  next: `select entity from purges limit 1`,
  isPending: `select 1 from purges where entity = ?`,
};

/** Rows of journals and records that one commit removes: more of them at once would keep everybody waiting. */
export const MAX_ROWS = 200;

/**
 * Removes entities. What can be many rows is removed a piece at a time; what is left is named in `purges`, where every
 * reader looks, so nothing of it is ever seen again. A name that is there has no life of its own yet: whoever begins one
 * finishes the purge first.
 */
export class Purge {
  readonly #db: Database;
  #hasPending = false;

  constructor(db: Database) {
    this.#db = db;
    this.look();
  }

  /** Whether any entity is named in `purges`. */
  get hasPending(): boolean {
    return this.#hasPending;
  }

  /** To be called after a rollback, too: what was said before may not be so. */
  look(): void {
    this.#hasPending = this.#db.get(SQL.next) !== undefined;
  }

  purge(entities: readonly EntityKey[]): void {
    let left = MAX_ROWS;
    for (const entity of entities) {
      for (const sql of [SQL.header, SQL.snapshot, SQL.wake, SQL.listings]) this.#db.run(sql, entity);
      left -= this.#remove(entity, left);
      if (left > 0) continue;
      this.#db.run(SQL.remember, entity);
      this.#hasPending = true;
    }
  }

  /** Before an entity of this name begins to live again. */
  finish(entity: EntityKey): void {
    if (!this.#hasPending || this.#db.get(SQL.isPending, entity) === undefined) return;
    this.#remove(entity, Number.MAX_SAFE_INTEGER);
    this.#db.run(SQL.forget, entity);
  }

  /** Goes on with what is left, by so many rows. */
  sweep(): void {
    let left = MAX_ROWS;
    while (left > 0) {
      const next = this.#db.get<{ entity: EntityKey }>(SQL.next);
      this.#hasPending = next !== undefined;
      if (next === undefined) return;
      left -= this.#remove(next.entity, left);
      if (left > 0) this.#db.run(SQL.forget, next.entity);
    }
  }

  #remove(entity: EntityKey, limit: number): number {
    const removed = limit > 0 ? this.#db.run(SQL.journal, entity, limit) : 0;
    return removed < limit ? removed + this.#db.run(SQL.records, entity, limit - removed) : removed;
  }
}
