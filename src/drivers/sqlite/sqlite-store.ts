import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { MemoryInbox } from "../memory/inbox.ts";
import { emptyData } from "../memory/memory-data.ts";
import { Memory } from "../memory/memory.ts";
import { MemoryTasks } from "../memory/tasks.ts";
import { Database } from "./database.ts";
import { SqliteJournal } from "./journal.ts";
import { migrate } from "./migrations.ts";
import { SqlitePartitions } from "./partitions.ts";
import { SqliteQueries } from "./queries.ts";
import { SqliteRecords } from "./records.ts";
import type { Sqlite } from "./sqlite.ts";

export interface SqliteOptions {
  readonly file: string;
  /** `wallMs` is the store's clock. */
  readonly host: Host;
  readonly maxInbox?: number;
  readonly maxReplies?: number;
}

const SQL = {
  leftOverMail: `select id, text from mail order by id`,
};

/** Room for the messages of one millisecond, so that an id is not used again by a process that starts later. */
const IDS_PER_MS = 1024;

export function openSqlite(options: SqliteOptions): Store {
  return new SqliteStore(options);
}

/**
 * One file, one writer. The journal and mail are in the file; tasks and messages from outside live in the process: their
 * owner puts the tasks back from the state, and whoever sent a message waits for the commit.
 */
class SqliteStore implements Store {
  readonly capabilities: Capabilities = {
    name: "sqlite",
    partitionCount: 1,
    volatileTasks: true,
    volatileInbox: true,
    maxBatchEntries: 1000,
    maxBatchBytes: 1024 * 1024,
  };
  readonly partitions: SqlitePartitions;
  readonly inbox: MemoryInbox;
  readonly journal: SqliteJournal;
  readonly tasks: MemoryTasks;
  readonly records: SqliteRecords;
  readonly queries: SqliteQueries;
  readonly #sqlite: Sqlite;

  constructor({ file, host, maxInbox = 10_000, maxReplies = 10_000 }: SqliteOptions) {
    const db = new Database(file);
    const incarnation = migrate(db, host.id());
    const data = { ...emptyData(incarnation, 1), nextMessageId: host.wallMs() * IDS_PER_MS };
    const memory = new Memory(host, { maxInbox, maxReplies }, data);
    this.inbox = new MemoryInbox(memory);
    this.#sqlite = { db, incarnation, memory, inbox: this.inbox, mailIds: new Set() };
    this.#deliverLeftOverMail();
    this.partitions = new SqlitePartitions(this.#sqlite);
    this.journal = new SqliteJournal(this.#sqlite);
    this.tasks = new MemoryTasks(memory);
    this.records = new SqliteRecords(this.#sqlite);
    this.queries = new SqliteQueries(this.#sqlite);
  }

  async close(): Promise<void> {
    this.#sqlite.memory.close();
    this.#sqlite.db.close();
  }

  /** What was sent by a commit and not consumed by one before the process ended comes first. */
  #deliverLeftOverMail(): void {
    const { db, memory, inbox, mailIds } = this.#sqlite;
    for (const { id, text } of db.all<{ id: number; text: string }>(SQL.leftOverMail)) {
      mailIds.add(id);
      inbox.appendAt(id, { partition: 0, start: false, text });
      memory.data.nextMessageId = Math.max(memory.data.nextMessageId, id + 1);
    }
  }
}
