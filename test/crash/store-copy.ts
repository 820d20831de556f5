import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Workflow } from "../../src/definition/workflow.ts";
import type { StoredJournals } from "../world/journals.ts";

/** Who holds the store and who is alive changes with every start; everything else is the truth, and must not. */
const TRUTH: readonly string[] = [
  "journal",
  "snapshots",
  "entities",
  "mail",
  "dead_letters",
  "listings",
  "records",
  "published",
  "purges",
];

/** Rows by table, as text. */
export type Truth = Readonly<Record<string, readonly string[]>>;

/** A copy of the file that a process has left behind, with its log: looking at it changes nothing. */
export class StoreCopy {
  readonly #db: DatabaseSync;

  constructor(file: string, folder: string) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const copy = join(folder, "store.db");
    for (const suffix of ["", "-wal"]) if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix);
    this.#db = new DatabaseSync(copy);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the statement knows its rows
  rows<Found extends object>(sql: string): readonly Found[] {
    return this.#db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }) as Found);
  }

  /** "ok" if the file is whole. */
  integrity(): string {
    const [{ integrity_check: found }] = this.rows<{ integrity_check: string }>("pragma integrity_check") as [never];
    return found;
  }

  truth(): Truth {
    return Object.fromEntries(
      TRUTH.map((table) => [
        table,
        this.rows(`select * from ${table}`)
          .map((row) => JSON.stringify(row))
          .sort(),
      ]),
    );
  }

  journals(): StoredJournals {
    const definitions = this.rows<{ hash: string; text: string }>(
      "select hash, text from records where scope = 'definition'",
    );
    const snapshots = this.rows<{ entity: string; version: number; text: string }>("select * from snapshots");
    const records = this.rows<{ scope: string; hash: string; text: string }>("select * from records");
    return {
      definitions: Object.fromEntries(definitions.map(({ hash, text }) => [hash, JSON.parse(text) as Workflow])),
      records: this.rows("select * from journal order by entity, version"),
      snapshot: (wanted) => {
        const snapshot = snapshots.find(({ entity }) => entity === wanted);
        if (snapshot?.text.startsWith("@") !== true) return snapshot;
        const large = records.find(({ scope, hash }) => scope === wanted && hash === snapshot.text.slice(1));
        return { ...snapshot, text: large!.text };
      },
    };
  }

  /** What is left of executions, if they all are to be gone. */
  leftOvers(): readonly string[] {
    const { published: _, records, ...tables } = this.truth();
    const own = records!.filter((row) => row.startsWith('{"scope":"execution/'));
    return [...Object.values(tables).flat(), ...own];
  }

  close(): void {
    this.#db.close();
  }
}
