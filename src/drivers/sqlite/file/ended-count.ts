import type { EntityKey } from "../../../store/contract.ts";
import type { Columns, Database } from "./database.ts";

const SQL = {
  count: `select count(*) as count from headers where class <> 'open'`,
  isEnded: `select 1 from headers where entity = ? and class <> 'open'`,
};

/** How many entities have ended. Counted once, when somebody first asks; from then on kept up with every commit. */
export class EndedCount {
  readonly #db: Database;
  #count: number | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  get(): number {
    this.#count ??= this.#db.get<{ count: number }>(SQL.count)!.count;
    return this.#count;
  }

  /** Before these headers are written: entity, class, … */
  note([entities = [], classes = []]: Columns): void {
    if (this.#count === undefined) return;
    const last = new Map<unknown, unknown>();
    for (const [i, entity] of entities.entries()) last.set(entity, classes[i]);
    for (const [entity, wanted] of last) {
      this.#count += Number(wanted !== "open") - Number(this.#isEnded(entity as EntityKey));
    }
  }

  /** Before these are removed. */
  noteGone(entities: readonly EntityKey[]): void {
    if (this.#count === undefined) return;
    for (const entity of new Set(entities)) this.#count -= Number(this.#isEnded(entity));
  }

  /** To be called after a rollback. */
  forget(): void {
    this.#count = undefined;
  }

  #isEnded(entity: EntityKey): boolean {
    return this.#db.get(SQL.isEnded, entity) !== undefined;
  }
}
