import type { Counts, EntityKey } from "../../../store/contract.ts";
import type { Columns, Database } from "./database.ts";

type Standing = Required<Pick<Counts, "ended" | "open">>;

const SQL = {
  count: `
    select count(*) filter (where class <> 'open') as ended,
      count(*) filter (where class = 'open' and workflow <> '') as open from headers`,
  standing: `select class <> 'open' as ended, class = 'open' and workflow <> '' as open from headers where entity = ?`,
};

const NOWHERE: Standing = { ended: 0, open: 0 };

/**
 * How many entities have ended, and how many are open. Counted once, when somebody first asks; from then on kept up with
 * every commit.
 */
export class HeaderCounts {
  readonly #db: Database;
  #counts: Standing | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  get(): Standing {
    this.#counts ??= this.#db.get<Standing>(SQL.count)!;
    return this.#counts;
  }

  /** Before these headers are written: entity, class, status, workflow, … */
  note([entities = [], classes = [], , workflows = []]: Columns): void {
    if (this.#counts === undefined) return;
    const last = new Map<unknown, number>();
    for (const [i, entity] of entities.entries()) last.set(entity, i);
    for (const [entity, i] of last) {
      const isOpen = classes[i] === "open";
      this.#move(entity as EntityKey, { ended: Number(!isOpen), open: Number(isOpen && workflows[i] !== "") });
    }
  }

  /** Before these are removed. */
  noteGone(entities: readonly EntityKey[]): void {
    for (const entity of new Set(entities)) this.#move(entity, NOWHERE);
  }

  /** To be called after a rollback. */
  forget(): void {
    this.#counts = undefined;
  }

  #move(entity: EntityKey, to: Standing): void {
    if (this.#counts === undefined) return;
    const { ended, open } = this.#counts;
    const from = this.#db.get<Standing>(SQL.standing, entity) ?? NOWHERE;
    this.#counts = { ended: ended + to.ended - from.ended, open: open + to.open - from.open };
  }
}
