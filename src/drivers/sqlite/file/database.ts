import assert from "node:assert/strict";
import { DatabaseSync, type StatementSync } from "node:sqlite";

export type SqlValue = string | number | null;

interface Prepared {
  readonly statement: StatementSync;
  readonly parameters: number;
}

/**
 * One connection of `node:sqlite`, without its traps: a first value that is an object is taken for named parameters and
 * shifts the others, and a value too few is bound as NULL, both in silence; rows have no prototype.
 */
export class Database {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(file: string) {
    this.#db = new DatabaseSync(file, { timeout: 5000 });
  }

  /** Several statements without values or rows: pragmas and migrations. */
  script(sql: string): void {
    this.#db.exec(sql);
  }

  /** Answers how many rows it changed. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.#prepare(sql, values).run(...values).changes);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the statement knows its rows
  get<Row extends object>(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    const row = this.#prepare(sql, values).get(...values);
    return row === undefined ? undefined : ({ ...row } as Row);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- likewise
  all<Row extends object>(sql: string, ...values: readonly SqlValue[]): readonly Row[] {
    return this.#prepare(sql, values)
      .all(...values)
      .map((row) => ({ ...row }) as Row);
  }

  /** All of it or, if it throws, nothing. IMMEDIATE, because a read that later turns into a write could be refused. */
  transaction<Result>(work: () => Result): Result {
    this.#db.exec("begin immediate");
    try {
      const result = work();
      this.#db.exec("commit");
      return result;
    } finally {
      if (this.#db.isTransaction) this.#db.exec("rollback");
    }
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #prepare(sql: string, values: readonly SqlValue[]): StatementSync {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      prepared = { statement: this.#db.prepare(sql), parameters: countParameters(sql) };
      this.#prepared.set(sql, prepared);
    }
    assert.equal(values.length, prepared.parameters, `values for: ${sql}`);
    for (const value of values) assert(value === null || typeof value !== "object", `no objects in: ${sql}`);
    return prepared.statement;
  }
}

/** `?` counts for one, `?2` says that there are two. None of our statements has a question mark in a literal. */
function countParameters(sql: string): number {
  const marks = [...sql.matchAll(/\?(\d*)/g)];
  const numbered = marks.map(([, number]) => Number(number));
  return Math.max(0, ...numbered) || marks.length;
}
