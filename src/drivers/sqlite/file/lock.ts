import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { StoreError } from "../../../store/store-error.ts";
import { Database } from "./database.ts";
import { resultCode, SQLITE } from "./failure.ts";

interface Holder {
  readonly pid: number;
  readonly since: string;
}

/** Who has just taken the lock has not yet said who it is. */
const LOOKS = 10;
const PAUSE_MS = 20;

/**
 * The right to be the one process that has the file: an exclusive transaction on an empty database beside it. The
 * operating system ends it with the process, however that dies, so nobody ever waits for the lock of somebody who is gone.
 *
 * Nothing else may open the lock's file: closing any handle of a file gives up all locks its process has on it. So who
 * holds it stands in a file of its own.
 */
export class FileLock {
  readonly #file: string;
  readonly #db: Database;

  private constructor(file: string, db: Database) {
    this.#file = file;
    this.#db = db;
  }

  static take(file: string): FileLock {
    const db = new Database(`${file}.lock`, { busyMs: 0 });
    try {
      db.script("begin exclusive");
    } catch (error) {
      db.close();
      if (resultCode(error) !== SQLITE.busy) throw error;
      throw new StoreError("STORE_LOCKED", lockedMessage(file), { cause: error });
    }
    const holder: Holder = { pid: process.pid, since: new Date().toISOString() };
    // Whole or not at all: somebody may be reading it.
    writeFileSync(`${file}.owner.new`, JSON.stringify(holder));
    renameSync(`${file}.owner.new`, `${file}.owner`);
    return new FileLock(file, db);
  }

  release(): void {
    rmSync(`${this.#file}.owner`, { force: true });
    this.#db.close();
  }
}

function lockedMessage(file: string): string {
  const holder = findHolder(file);
  const who = holder === undefined ? "another process" : `process ${holder.pid} since ${holder.since}`;
  return `${file} is in use by ${who}. One process at a time can have it: stop that one, or name another file.`;
}

function findHolder(file: string): Holder | undefined {
  for (let i = 0; i < LOOKS; i++) {
    const holder = readHolder(file);
    if (holder !== undefined && isAlive(holder.pid)) return holder;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  return undefined;
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(`${file}.owner`, "utf8")) as Holder;
  } catch {
    return undefined;
  }
}

/** One that was killed has left its name behind. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there and not ours.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
