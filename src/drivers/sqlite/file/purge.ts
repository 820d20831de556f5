import type { EntityKey } from "../../../store/contract.ts";
import type { Database } from "./database.ts";

/** Of the records of an entity so many, from this one back. None is taken for its own that another has written. */
const CHAIN = `
  with recursive chain (id, prev, place) as (
    select id, prev, 1 from journal where id = ?1 and entity = ?2
    union all
    select journal.id, journal.prev, place + 1 from chain join journal on journal.id = chain.prev
    where journal.entity = ?2 and place < ?3
  )`;

export const SQL = {
  last: `select last from entities where entity = ?`,
  entity: `delete from entities where entity = ?`,
  snapshot: `delete from snapshots where entity = ?`,
  listings: `delete from listings where entity = ?`,
  journal: `${CHAIN} delete from journal where id in (select id from chain) returning id, prev`,
  records: `delete from records where rowid in (select rowid from records where scope = ? limit ?)`,
  remember: `
    insert into purges (entity, last) values (?, ?) on conflict (entity) do update set last = excluded.last`,
  forget: `delete from purges where entity = ?`,
  next: `select entity, last from purges limit 1`,
  pending: `select entity, last from purges where entity = ?`,
};

interface Pending {
  readonly entity: EntityKey;
  /** The newest of its records that are left. */
  readonly last: number | null;
}

interface Removed {
  readonly id: number;
  readonly prev: number | null;
}

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
      const last = this.#lastOf(entity);
      for (const sql of [SQL.entity, SQL.snapshot, SQL.listings]) this.#db.run(sql, entity);
      left -= this.#remove({ entity, last }, left);
      if (left <= 0) this.#hasPending = true;
    }
  }

  /** Before an entity of this name begins to live again. */
  finish(entity: EntityKey): void {
    const pending = this.#hasPending ? this.#db.get<Pending>(SQL.pending, entity) : undefined;
    if (pending === undefined) return;
    this.#remove(pending, Number.MAX_SAFE_INTEGER);
    this.#db.run(SQL.forget, entity);
  }

  /** Goes on with what is left, by so many rows. */
  sweep(): void {
    let left = MAX_ROWS;
    while (left > 0) {
      const next = this.#db.get<Pending>(SQL.next);
      this.#hasPending = next !== undefined;
      if (next === undefined) return;
      left -= this.#remove(next, left);
      if (left > 0) this.#db.run(SQL.forget, next.entity);
    }
  }

  /** One whose journal is there is not pending; one that is purged twice may be, and may have a header or a wake by then. */
  #lastOf(entity: EntityKey): number | null {
    const living = this.#db.get<Pick<Pending, "last">>(SQL.last, entity)?.last;
    const pending = this.#hasPending ? this.#db.get<Pending>(SQL.pending, entity)?.last : undefined;
    return living ?? pending ?? null;
  }

  /** Answers how many rows it removed. Who may remove no more notes where to go on. */
  #remove({ entity, last }: Pending, limit: number): number {
    const gone = last !== null && limit > 0 ? this.#db.all<Removed>(SQL.journal, last, entity, limit) : [];
    const left = limit - gone.length;
    const removed = gone.length + (left > 0 ? this.#db.run(SQL.records, entity, left) : 0);
    if (removed >= limit) this.#db.run(SQL.remember, entity, gone.length === 0 ? last : beforeAll(gone));
    return removed;
  }
}

/** What the oldest of them came after. */
function beforeAll(removed: readonly Removed[]): number | null {
  return removed.reduce((oldest, one) => (one.id < oldest.id ? one : oldest)).prev;
}
