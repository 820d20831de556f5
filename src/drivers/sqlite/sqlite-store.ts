import { resolve } from "node:path";
import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
import { MemoryInbox } from "../memory/inbox.ts";
import { emptyData } from "../memory/memory-data.ts";
import { Memory } from "../memory/memory.ts";
import { ReaderThread, WriterThread } from "./file-thread.ts";
import type { Opened } from "./file/writer.ts";
import { SqliteJournal } from "./journal.ts";
import { SqlitePartitions } from "./partitions.ts";
import { SqliteQueries } from "./queries.ts";
import { SqliteRecords } from "./records.ts";
import type { Sqlite } from "./sqlite.ts";
import { TasksOut } from "./tasks-out.ts";
import { SqliteTasks } from "./tasks.ts";
import { VersionWatchers } from "./version-watchers.ts";
import { NewestEntities } from "./newest-entities.ts";
import { YoungEntities } from "./young-entities.ts";

export interface SqliteOptions {
  /** Its folder is made if it is not there. */
  readonly file?: string;
  /** `wallMs` is the store's clock. */
  readonly host: Host;
  readonly maxInbox?: number;
  readonly maxReplies?: number;
}

const DEFAULT_FILE = ".millrace/millrace.db";

/** Room for the messages of one millisecond, so that an id is not used again by a process that starts later. */
const IDS_PER_MS = 1024;

/** Rejects with a StoreError if the file is another process's, too new, damaged, or nothing we may use. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { host, file = DEFAULT_FILE, maxInbox = 10_000, maxReplies = 10_000 } = options;
  let memory: Memory | undefined;
  let isFull = false;
  const writer = new WriterThread((isFullNow) => {
    isFull = isFullNow;
    if (memory !== undefined) memory.faults.isFull = isFullNow;
  });
  const reader = new ReaderThread();
  try {
    const opened = await writer.openFile(resolve(file), host.id());
    await reader.openFile(opened.file);
    memory = new Memory(host, { maxInbox, maxReplies }, volatileData(host, opened), host.id());
    memory.faults.isFull = isFull;
    return new SqliteStore(writer, reader, memory, opened);
  } catch (error) {
    await Promise.allSettled([reader.close(), writer.close()]);
    throw error;
  }
}

function volatileData(host: Host, { incarnation, registrations }: Opened): Memory["data"] {
  const data = { ...emptyData(incarnation, 1), nextMessageId: host.wallMs() * IDS_PER_MS };
  for (const { untilMs, ...registration } of registrations) {
    data.registrations.set(registration.process, { registration, untilMs });
  }
  return data;
}

function threadDied(reason: Error): StoreError {
  const told = `A thread that has the store's file open has ended: ${reason.message}. What was answered is in the file; start again`;
  return new StoreError("STORE_UNAVAILABLE", told, { cause: reason });
}

/**
 * One file, one process, one writer. The journal and mail are in the file; tasks and messages from outside live in the
 * process: their owner puts the tasks back from the state, and whoever sent a message waits for the commit.
 */
class SqliteStore implements Store {
  readonly capabilities: Capabilities = {
    name: "sqlite",
    partitionCount: 1,
    exclusive: true,
    volatileTasks: true,
    sameProcess: true,
    volatileInbox: true,
    queuesCommits: true,
    // A read is a quarter of it. With half as many the commits of a flood were twice as many, and a step a sixth dearer.
    maxBatchEntries: 2000,
    maxBatchBytes: 2 * 1024 * 1024,
  };
  readonly partitions: SqlitePartitions;
  readonly inbox: MemoryInbox;
  readonly journal: SqliteJournal;
  readonly tasks: SqliteTasks;
  readonly records: SqliteRecords;
  readonly queries: SqliteQueries;
  readonly lost: Promise<StoreError>;
  readonly #sqlite: Sqlite;
  readonly #out: TasksOut;
  #closed: Promise<void> | undefined;

  constructor(writer: WriterThread, reader: ReaderThread, memory: Memory, { mail, file }: Opened) {
    this.inbox = new MemoryInbox(memory);
    const watchers = new VersionWatchers(memory.waiters);
    const young = new YoungEntities();
    // The writer does one thing after the other: what was sent to be written before is written then.
    const newest = new NewestEntities((prefix) => writer.call("newest", prefix));
    this.#sqlite = { writer, reader, memory, inbox: this.inbox, mailIds: new Set(), watchers, young, newest };
    this.#deliverLeftOver(mail);
    this.partitions = new SqlitePartitions(this.#sqlite);
    this.journal = new SqliteJournal(this.#sqlite);
    this.#out = new TasksOut(`${file}.tasks`);
    this.tasks = new SqliteTasks(memory, this.#out);
    this.records = new SqliteRecords(this.#sqlite);
    this.queries = new SqliteQueries(this.#sqlite);
    this.lost = Promise.race([writer.died, reader.died]).then(threadDied);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** What was under way comes to its end; then the log is written into the file and the lock given back. */
  async #close(): Promise<void> {
    const { writer, reader, memory, young, newest } = this.#sqlite;
    memory.waiters.close();
    young.close();
    newest.close();
    this.records.close();
    // The writer last: who closes the file last tidies up, and only it may write.
    await reader.close();
    this.#out.close();
    await writer.close();
    memory.close();
  }

  /** What was sent by a commit and not consumed by one before the process ended comes first. */
  #deliverLeftOver(mail: Opened["mail"]): void {
    const { memory, inbox, mailIds } = this.#sqlite;
    for (const { id, text } of mail) {
      mailIds.add(id);
      inbox.appendAt(id, { partition: 0, start: false, text });
      memory.data.nextMessageId = Math.max(memory.data.nextMessageId, id + 1);
    }
  }
}
