import type { Published, PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
import { MemoryRecords } from "../memory/records.ts";
import { columns } from "./commit.ts";
import { FileError } from "./file/failure.ts";
import type { Sqlite } from "./sqlite.ts";

/** A registration that is over sooner says nothing to a process that opens the file later. */
const LASTING_MS = 60_000;
/** What is in the file may end earlier than what is true by this part of its time; so repeating it costs next to nothing. */
const SLACK = 1 / 10;

/** Texts that go to the writer at once: every copy on the way is as long as all of a message. */
const PORTION_CHARS = 2 * 1024 * 1024;

/** Names whose newest version is remembered. */
const MOST_NEWEST = 1_000;

interface Written {
  readonly text: string;
  readonly untilMs: number;
}

export class SqliteRecords implements Records {
  readonly #sqlite: Sqlite;
  /** Who is alive is known in the process. */
  readonly #volatile: MemoryRecords;
  /** Of those the ones that are in the file, as they are there. */
  readonly #written: Map<string, Written>;
  /** The newest version of each name that was asked for: every start by name asks, and only this process publishes. */
  readonly #newest = new Map<string, Published | null>();
  #publications = 0;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
    this.#volatile = new MemoryRecords(sqlite.memory);
    const known = [...sqlite.memory.data.registrations];
    this.#written = new Map(
      known.map(([process, { registration, untilMs }]) => [process, { text: registration.text, untilMs }]),
    );
  }

  async put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome> {
    const isRefusable = options?.refusable === true;
    if (isRefusable && this.#sqlite.memory.faults.isFull) return "refused";
    try {
      // What is refused is refused whole: nobody would ever purge a part of it.
      for (const some of isRefusable ? [records] : inPortions(records)) {
        await this.#sqlite.writer.call("put", columns(some, "scope", "hash", "text"));
      }
      return "stored";
    } catch (error) {
      if (!(error instanceof FileError) || !error.isTrouble) throw error;
      if (isRefusable && error.isRefusal) return "refused";
      throw new StoreError(error.isRefusal ? "STORE_FULL" : "STORE_UNAVAILABLE", error.message, { cause: error });
    }
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    return keys.length === 0 ? [] : this.#sqlite.reader.call("records", keys);
  }

  async has(key: RecordKey): Promise<boolean> {
    return this.#sqlite.reader.call("hasRecord", key);
  }

  async publish(name: string, hash: string): Promise<number> {
    return this.#publishing(name, () => this.#sqlite.writer.call("publish", name, hash));
  }

  async published(name: string, version?: number | string): Promise<Published | null> {
    if (version !== undefined) return this.#sqlite.reader.call("published", name, version);
    const known = this.#newest.get(name);
    if (known !== undefined) return known;
    const before = this.#publications;
    const found = await this.#sqlite.reader.call("published", name, undefined);
    // What was published meanwhile may be newer than what was read.
    if (before === this.#publications) {
      if (this.#newest.size >= MOST_NEWEST) this.#newest.clear();
      this.#newest.set(name, found);
    }
    return found;
  }

  async versions(name: string): Promise<readonly Published[]> {
    return this.#sqlite.reader.call("versions", name);
  }

  async unpublish(name: string): Promise<void> {
    await this.#publishing(name, () => this.#sqlite.writer.call("unpublish", name));
  }

  /** From now on the file is asked, and says that it is closed. */
  close(): void {
    this.#newest.clear();
  }

  /** Before and after it: in between nobody can tell which of both a reader has found. */
  async #publishing<Result>(name: string, publish: () => Promise<Result>): Promise<Result> {
    this.#publications++;
    try {
      return await publish();
    } finally {
      this.#publications++;
      this.#newest.delete(name);
    }
  }

  async register(registration: Registration, ttlMs: number): Promise<void> {
    const { writer, memory } = this.#sqlite;
    await this.#volatile.register(registration, ttlMs);
    if (ttlMs < LASTING_MS) return;
    const { process, text } = registration;
    // By the wall clock: that of leases begins there anew when the file is next opened.
    const nowMs = memory.host.wallMs();
    const untilMs = nowMs + ttlMs;
    const written = this.#written.get(process);
    if (written?.text === text && written.untilMs >= untilMs - ttlMs * SLACK) return;
    await writer.call("register", registration, untilMs, nowMs);
    this.#written.set(process, { text, untilMs });
  }

  async registered(): Promise<readonly Registration[]> {
    return this.#volatile.registered();
  }
}

/** Each is named by what it holds: it is no harm if some are in the file and others are not. */
function* inPortions(records: readonly StoredRecord[]): Generator<readonly StoredRecord[]> {
  let from = 0;
  let chars = 0;
  for (const [i, { text }] of records.entries()) {
    if (i > from && chars + text.length > PORTION_CHARS) {
      yield records.slice(from, i);
      from = i;
      chars = 0;
    }
    chars += text.length;
  }
  if (from < records.length) yield records.slice(from);
}
