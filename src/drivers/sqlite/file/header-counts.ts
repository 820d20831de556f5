import { isCalled } from "../../../core/entity.ts";
import type { Counts, EntityKey } from "../../../store/contract.ts";
import type { Columns, Database } from "./database.ts";

type Standing = Required<Pick<Counts, "ended" | "open">>;

/** What another has called is not counted: the form is that of `isCalled`. */
const ENDED = `class <> 'open' and entity not glob 'execution/${"[0-9a-f]".repeat(32)}'`;

const SQL = {
  count: `
    select count(*) filter (where ${ENDED}) as ended,
      count(*) filter (where class = 'open' and workflow <> '') as open from entities`,
  standing: `
    select ${ENDED} as ended, class = 'open' and workflow <> '' as open from entities
    where entity = ? and class is not null`,
};

const NOWHERE: Standing = { ended: 0, open: 0 };

/** Entities whose standing is known without a look. */
const MAX_KNOWN = 50_000;

/**
 * How many entities have ended, and how many are open. Counted once, when somebody first asks; from then on kept up with
 * every commit.
 */
export class HeaderCounts {
  readonly #db: Database;
  #counts: Standing | undefined;
  /** How those stand that are open, of those that were written since: each comes once more, when it ends. */
  readonly #open = new Map<EntityKey, Standing>();

  constructor(db: Database) {
    this.#db = db;
  }

  get(): Standing {
    this.#counts ??= this.#db.get<Standing>(SQL.count)!;
    return this.#counts;
  }

  /**
   * Before these headers are written: entity, class, status, workflow, …
   *
   * @param records of the same batch: entity, version, …. Whose first version is among them has no header yet.
   */
  note([entities = [], classes = [], , workflows = []]: Columns, [written = [], versions = []]: Columns): void {
    if (this.#counts === undefined || entities.length === 0) return;
    const begun = new Set<unknown>();
    for (let i = 0; i < written.length; i++) if (versions[i] === 1) begun.add(written[i]);
    const last = new Map<unknown, number>();
    for (let i = 0; i < entities.length; i++) last.set(entities[i], i);
    last.forEach((i, entity) => {
      const isOpen = classes[i] === "open";
      const isEnded = !isOpen && !isCalled(entity as EntityKey);
      const to = { ended: Number(isEnded), open: Number(isOpen && workflows[i] !== "") };
      this.#move(entity as EntityKey, to, begun.has(entity));
      if (isOpen) this.#open.set(entity as EntityKey, to);
      else this.#open.delete(entity as EntityKey);
    });
    if (this.#open.size > MAX_KNOWN) this.#open.clear();
  }

  /** Before these are removed. */
  noteGone(entities: readonly EntityKey[]): void {
    if (this.#counts === undefined) return;
    for (const entity of new Set(entities)) {
      this.#move(entity, NOWHERE, false);
      this.#open.delete(entity);
    }
  }

  /** To be called after a rollback. */
  forget(): void {
    this.#counts = undefined;
    this.#open.clear();
  }

  #move(entity: EntityKey, to: Standing, isNew: boolean): void {
    const { ended, open } = this.#counts!;
    const from =
      this.#open.get(entity) ?? (isNew ? undefined : this.#db.get<Standing>(SQL.standing, entity)) ?? NOWHERE;
    this.#counts = { ended: ended + to.ended - from.ended, open: open + to.open - from.open };
  }
}
