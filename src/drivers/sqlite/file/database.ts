import assert from "node:assert/strict";
import { DatabaseSync, type StatementSync } from "node:sqlite";

export type SqlValue = string | number | null;

/** The values of several rows, one list for each column: a message between threads is far smaller than with objects. */
export type Columns = readonly (readonly SqlValue[])[];

interface Prepared {
  readonly statement: StatementSync;
  readonly parameters: number;
}

/** How long another program, such as one that makes a copy, may have the file before we give up. */
const BUSY_MS = 5000;

/**
 * One connection of `node:sqlite`, without its traps: a first value that is an object is taken for named parameters and
 * shifts the others, and a value too few is bound as NULL, both in silence; rows have no prototype.
 */
export class Database {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(file: string, { readOnly = false, busyMs = BUSY_MS } = {}) {
    this.#db = new DatabaseSync(file, { timeout: busyMs, readOnly });
  }

  get isTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** Several statements without values or rows: pragmas, transactions and migrations. */
  script(sql: string): void {
    this.#db.exec(sql);
  }

  /** Answers how many rows it changed. */
  run(sql: string, ...values: readonly SqlValue[]): number {
    return Number(this.#prepare(sql, values).run(...values).changes);
  }

  /** Runs it once for each row. */
  runAll(sql: string, columns: Columns): void {
    const first = columns[0] ?? [];
    if (first.length === 0) return;
    const values = columns.map((column) => column[0]!);
    const statement = this.#prepare(sql, values);
    for (let row = 0; row < first.length; row++) {
      for (let i = 0; i < values.length; i++) values[i] = columns[i]![row]!;
      if (isObject(values[0])) assert.fail(`an object for the first value of: ${sql}`);
      statement.run(...values);
    }
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

  /** What a pragma answers. It takes no parameters, and its name is ours. */
  pragma(name: string): SqlValue {
    const row = this.#db.prepare(`pragma ${name}`).get();
    return row === undefined ? null : (Object.values(row)[0] as SqlValue);
  }

  /** All of it or, if it throws, nothing. IMMEDIATE, because a read that later turns into a write could be refused. */
  transaction<Result>(work: () => Result): Result {
    this.script("begin immediate");
    try {
      const result = work();
      this.script("commit");
      return result;
    } finally {
      this.rollback();
    }
  }

  /** A transaction that failed may be gone by itself. */
  rollback(): void {
    if (this.#db.isTransaction) this.script("rollback");
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
    if (values.length !== prepared.parameters) assert.fail(`${values.length} values for: ${sql}`);
    // In any other place it is refused by itself.
    if (isObject(values[0])) assert.fail(`an object for the first value of: ${sql}`);
    return prepared.statement;
  }
}

function isObject(value: SqlValue | undefined): boolean {
  return typeof value === "object" && value !== null;
}

/** `?` counts for one, `?2` says that there are two. None of our statements has a question mark in a literal. */
function countParameters(sql: string): number {
  const marks = [...sql.matchAll(/\?(\d*)/g)];
  const numbered = marks.map(([, number]) => Number(number));
  return Math.max(0, ...numbered) || marks.length;
}
