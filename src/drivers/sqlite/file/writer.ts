import { statSync } from "node:fs";
import { dirname } from "node:path";
import { isNearlyFull } from "../../../host/disk-room.ts";
import type {
  AcquireOutcome,
  CommitOutcome,
  EntityKey,
  Fence,
  Registration,
  RenewOutcome,
} from "../../../store/contract.ts";
import { Commit, type FileBatch } from "./commit.ts";
import type { Columns, Database } from "./database.ts";
import { failureOf } from "./failure.ts";
import type { HeaderCounts } from "./header-counts.ts";
import type { FileLock } from "./lock.ts";
import { openFile } from "./open-file.ts";
import { FilePartitions, type Moment } from "./partitions.ts";
import { Purge } from "./purge.ts";
import { FileRecords } from "./records.ts";

export const SQL = {
  newest: `select entity from entities where entity >= ? and entity < ? order by entity desc limit 1`,
  leftOverMail: `select id, text from mail order by id`,
  registrations: `select process, role, text, until_ms as untilMs from registrations`,
};

/** Where free pages are this many and this part of the file, the file is made smaller, so many pages at a time. */
const MANY_PAGES = 1000;
const LARGE_PART = 1 / 4;
const VACUUM_PAGES = 200;

/** What a process that has just opened the file has to know of it. */
export interface Opened {
  /** Its path without links. */
  readonly file: string;
  readonly incarnation: string;
  readonly mail: readonly { readonly id: number; readonly text: string }[];
  readonly registrations: readonly (Registration & { readonly untilMs: number })[];
}

/** The one connection that writes. Every call runs inside a transaction of `GroupCommit`. */
export class FileWriter {
  readonly db: Database;
  readonly opened: Opened;
  readonly #lock: FileLock;
  readonly #commit: Commit;
  readonly #partitions: FilePartitions;
  readonly #records: FileRecords;
  readonly #purge: Purge;
  readonly #inode: number;

  constructor(path: string, newIncarnation: string) {
    const { db, lock, file, incarnation } = openFile(path, newIncarnation);
    this.db = db;
    this.#lock = lock;
    this.#inode = statSync(file).ino;
    this.#purge = new Purge(db);
    this.#commit = new Commit(db, this.#purge, incarnation);
    this.#partitions = new FilePartitions(db, incarnation);
    this.#records = new FileRecords(db, this.#purge);
    const mail = db.all<Opened["mail"][number]>(SQL.leftOverMail);
    const registrations = db.all<Opened["registrations"][number]>(SQL.registrations);
    this.opened = { file, incarnation, mail, registrations };
  }

  commit(batches: readonly FileBatch[]): readonly CommitOutcome[] {
    return batches.map((batch) => this.#commit.write(batch));
  }

  acquire(owner: string, nonce: string, leaseMs: number, moment: Moment): AcquireOutcome {
    return this.#partitions.acquire(owner, nonce, leaseMs, moment);
  }

  reacquire(fence: Fence, nonce: string, leaseMs: number, moment: Moment): AcquireOutcome {
    return this.#partitions.reacquire(fence, nonce, leaseMs, moment);
  }

  renew(fences: readonly Fence[], leaseMs: number, moment: Moment): RenewOutcome {
    return this.#partitions.renew(fences, leaseMs, moment);
  }

  release(fence: Fence): void {
    this.#partitions.release(fence);
  }

  put(records: Columns): void {
    this.#records.put(records);
  }

  publish(name: string, hash: string): number {
    return this.#records.publish(name, hash);
  }

  unpublish(name: string): void {
    this.#records.unpublish(name);
  }

  register(registration: Registration, untilMs: number, nowMs: number): void {
    this.#records.register(registration, untilMs, nowMs);
  }

  /** The greatest name of an entity with this beginning, of all that are there. */
  newest(prefix: string): EntityKey | null {
    return this.db.get<{ entity: EntityKey }>(SQL.newest, prefix, `${prefix}\u{10ffff}`)?.entity ?? null;
  }

  countHeaders(): ReturnType<HeaderCounts["get"]> {
    return this.#commit.counts.get();
  }

  /** What a call has changed outside the file, to be put back if the file does not keep it. */
  remember(): () => void {
    const { leaseUntilMs } = this.#partitions;
    return () => {
      this.#partitions.leaseUntilMs = leaseUntilMs;
      this.#purge.look();
      this.#commit.forget();
    };
  }

  /** One piece of the work that nobody waits for; answers whether there is more. */
  tidy(): boolean {
    if (this.#purge.hasPending) {
      const undo = this.remember();
      try {
        this.db.transaction(() => this.#purge.sweep());
      } catch (error) {
        undo();
        throw error;
      }
      return true;
    }
    const free = Number(this.db.pragma("freelist_count"));
    if (free < MANY_PAGES || free < Number(this.db.pragma("page_count")) * LARGE_PART) return false;
    this.db.script(`pragma incremental_vacuum(${VACUUM_PAGES})`);
    return Number(this.db.pragma("freelist_count")) < free;
  }

  /** Whether there is so little room left that nothing new should begin. */
  isNearlyFull(): boolean {
    return isNearlyFull(dirname(this.opened.file));
  }

  /** What is written to a file that has lost its name is lost with the process. SQLite does not notice. */
  hasLostFile(): boolean {
    return statSync(this.opened.file, { throwIfNoEntry: false })?.ino !== this.#inode;
  }

  close(): void {
    try {
      // With it the file is all there is to copy, unless another program is reading. Without room the log has to do.
      this.db.script("pragma wal_checkpoint(passive)");
    } catch (error) {
      if (!failureOf(error).isRefusal) throw error;
    } finally {
      this.db.close();
      this.#lock.release();
    }
  }
}
