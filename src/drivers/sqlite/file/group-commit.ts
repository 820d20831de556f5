import type { Database } from "./database.ts";
import { type Failure, failureOf } from "./failure.ts";

/** Something to be done in a transaction. */
export type Job = () => unknown;

export type Done = { readonly value: unknown } | { readonly failure: Failure };

/** Answers how to put back what a job changes outside the file. */
type Remember = () => () => void;

/**
 * Runs all that has come up meanwhile in one transaction, with one sync of the disk. A job that fails by its own fault
 * takes nobody with it. If the machine fails, each is tried by itself: the one that is too large for the disk must not keep
 * a small one out.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #remember: Remember;

  constructor(db: Database, remember: Remember) {
    this.#db = db;
    this.#remember = remember;
  }

  run(jobs: readonly Job[]): readonly Done[] {
    return this.#together(jobs) ?? jobs.flatMap((job) => this.#together([job])!);
  }

  /** undefined if nothing was written because of one of several. */
  #together(jobs: readonly Job[]): readonly Done[] | undefined {
    const undo = this.#remember();
    let phase: "statement" | "commit" = "statement";
    try {
      this.#db.run("begin immediate");
      const done = jobs.length === 1 ? [{ value: jobs[0]!() }] : jobs.map((job) => this.#inSavepoint(job));
      phase = "commit";
      this.#db.run("commit");
      return done;
    } catch (error) {
      this.#db.rollback();
      undo();
      const failure = failureOf(error, phase);
      return failure.isRefusal && jobs.length > 1 ? undefined : jobs.map(() => ({ failure }));
    }
  }

  #inSavepoint(job: Job): Done {
    const undo = this.#remember();
    this.#db.run("savepoint job");
    try {
      const value = job();
      this.#db.run("release job");
      return { value };
    } catch (error) {
      const failure = failureOf(error);
      // SQLite may have given up the whole transaction by itself.
      if (failure.isRefusal || !this.#db.isTransaction) throw error;
      this.#db.run("rollback to job");
      this.#db.run("release job");
      undo();
      return { failure };
    }
  }
}
