import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { makeFolders } from "../../../host/make-folders.ts";
import { StoreError, type StoreErrorCode } from "../../../store/store-error.ts";
import { Database } from "./database.ts";
import { resultCode, SQLITE } from "./failure.ts";
import { FileLock } from "./lock.ts";
import { checkFormat, migrate } from "./migrations.ts";

export interface OpenFile {
  readonly db: Database;
  readonly lock: FileLock;
  /** Without links in it: two names of one file are one lock. */
  readonly file: string;
  readonly incarnation: string;
}

/** Of a new file. Twice what SQLite takes by itself: a commit writes whole pages, and half as many, each with a call of its own. */
export const PAGE_BYTES = 8192;
/** When the log has grown to this, it is written into the file. */
const LOG_BYTES = 16 * 1024 * 1024;

// `auto_vacuum` and the size of pages only count before there is anything in the file, switching to WAL included. On macOS a plain sync leaves
// the data in the disk's cache; elsewhere the two words about it mean nothing. A cache of 8 MiB: what is looked for again is what was written last, and the system keeps the rest of the file in memory anyway.
const SETTINGS = `
  pragma page_size = ${PAGE_BYTES};
  pragma auto_vacuum = incremental;
  pragma journal_mode = wal;
  pragma synchronous = full;
  pragma fullfsync = on;
  pragma checkpoint_fullfsync = on;
  pragma cache_size = -8192;
  pragma journal_size_limit = 67108864;
`;
const FULL = 2;

const NAMED: Readonly<Record<number, readonly [StoreErrorCode, string]>> = {
  [SQLITE.busy]: ["STORE_LOCKED", "is in use by another program"],
  [SQLITE.readOnly]: ["STORE_FORBIDDEN", "cannot be written"],
  [SQLITE.corrupt]: ["STORE_CORRUPT", "is damaged. Put back a copy of it"],
  [SQLITE.full]: ["STORE_FULL", "cannot be opened, because there is no room left"],
  [SQLITE.cannotOpen]: ["STORE_FORBIDDEN", "cannot be opened"],
  [SQLITE.notADatabase]: ["STORE_INVALID", "is no SQLite database"],
};

/** Takes the file for this process, makes it if it is not there, and brings it up to date. */
export function openFile(path: string, newIncarnation: string): OpenFile {
  makeFolder(dirname(path));
  checkPath(path);
  const file = existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
  const lock = naming(file, () => FileLock.take(file));
  try {
    return naming(file, () => openLocked(file, lock, newIncarnation));
  } catch (error) {
    lock.release();
    throw error;
  }
}

function openLocked(file: string, lock: FileLock, newIncarnation: string): OpenFile {
  const db = new Database(file);
  try {
    // First: nothing is changed in a file that is not ours.
    checkFormat(db, file);
    db.script(SETTINGS);
    // On some file systems there is no shared memory, and SQLite then keeps the mode it had without a word.
    if (db.pragma("journal_mode") !== "wal" || db.pragma("synchronous") !== FULL) {
      throw new StoreError(
        "STORE_INVALID",
        `${file} cannot be kept safely where it is: SQLite refuses to use a log there.`,
      );
    }
    db.script(`pragma wal_autocheckpoint = ${Math.round(LOG_BYTES / Number(db.pragma("page_size")))}`);
    return { db, lock, file, incarnation: migrate(db, newIncarnation) };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A folder that is made here has to be there after a power loss as well. */
function makeFolder(folder: string): void {
  try {
    const first = makeFolders(folder);
    if (first === undefined) return;
    for (let made = folder; ; made = dirname(made)) {
      syncFolder(dirname(made));
      if (made === first || made === dirname(made)) return;
    }
  } catch (error) {
    if (isDenied(error)) throw forbidden(folder, "made", error);
    throw new StoreError("STORE_INVALID", `The folder ${folder} cannot be made: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}

function checkPath(path: string): void {
  try {
    accessSync(dirname(path), constants.W_OK);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isFile()) {
      const what = found.isDirectory() ? "a folder" : "not a file";
      throw new StoreError(
        "STORE_INVALID",
        `${path} is ${what}. Name the file of the store, such as ${join(path, "millrace.db")}.`,
      );
    }
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw isDenied(error) ? forbidden(path, "read and written", error) : error;
  }
}

/** Makes of what SQLite says about a file something that names the file. */
function naming<Result>(file: string, open: () => Result): Result {
  try {
    return open();
  } catch (error) {
    const result = resultCode(error);
    if (result === undefined) throw error;
    const [code, message] = NAMED[result] ?? ["STORE_UNAVAILABLE", "cannot be opened"];
    throw new StoreError(code, `${file} ${message} (${messageOf(error)}).`, { cause: error });
  }
}

function forbidden(path: string, what: string, cause: unknown): StoreError {
  return new StoreError("STORE_FORBIDDEN", `${path} cannot be ${what}: ${messageOf(cause)}.`, { cause });
}

function isDenied(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EACCES" || code === "EPERM" || code === "EROFS";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
