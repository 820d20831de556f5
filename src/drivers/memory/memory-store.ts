import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { MemoryInbox } from "./inbox.ts";
import { MemoryJournal } from "./journal.ts";
import { copyOf, emptyData, emptyTasks, type MemoryData } from "./memory-data.ts";
import { type Faults, Memory } from "./memory.ts";
import { MemoryPartitions } from "./partitions.ts";
import { MemoryQueries } from "./queries.ts";
import { MemoryRecords } from "./records.ts";
import { MemoryTasks } from "./tasks.ts";

export interface MemoryOptions {
  /** `wallMs` is the store's clock. */
  readonly host: Host;
  readonly partitions?: number;
  readonly maxInbox?: number;
  readonly maxReplies?: number;
  /** Whether `restart` drops the tasks, as a driver does that keeps them in the process. */
  readonly volatileTasks?: boolean;
  /** Whether `restart` ends all leases of partitions, as with a driver whose lock ends with its process. */
  readonly exclusive?: boolean;
  /** Whether a second batch of a partition may be sent while one is under way. */
  readonly queuesCommits?: boolean;
}

export function openMemory(options: MemoryOptions): MemoryStore {
  return new MemoryStore(options);
}

/**
 * The whole store in this process, for tests, for trying out, and under the simulator. Every operation takes effect at
 * the moment of its call, in one piece; a promise is only how the answer travels.
 */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities;
  readonly partitions: MemoryPartitions;
  readonly inbox: MemoryInbox;
  readonly journal: MemoryJournal;
  readonly tasks: MemoryTasks;
  readonly records: MemoryRecords;
  readonly queries: MemoryQueries;
  readonly #memory: Memory;

  constructor(options: MemoryOptions) {
    const { host, partitions = 1, maxInbox = 10_000, maxReplies = 10_000 } = options;
    const { exclusive = false, volatileTasks = false, queuesCommits = false } = options;
    this.capabilities = {
      name: "memory",
      partitionCount: partitions,
      exclusive,
      volatileTasks,
      volatileInbox: false,
      ...(queuesCommits && { queuesCommits }),
      maxBatchEntries: 1000,
      maxBatchBytes: 1024 * 1024,
    };
    const memory = new Memory(host, { maxInbox, maxReplies }, emptyData(host.id(), partitions));
    this.#memory = memory;
    this.partitions = new MemoryPartitions(memory);
    this.inbox = new MemoryInbox(memory);
    this.journal = new MemoryJournal(memory);
    this.tasks = new MemoryTasks(memory);
    this.records = new MemoryRecords(memory);
    this.queries = new MemoryQueries(memory);
  }

  /** To be switched on and off by a test. */
  get faults(): Faults {
    return this.#memory.faults;
  }

  /** What the store holds right now, to look at; `dump` gives a copy to keep. */
  get data(): MemoryData {
    return this.#memory.data;
  }

  dump(): MemoryData {
    return copyOf(this.#memory.data);
  }

  /** Puts back what `dump` gave: a store that has gone back to an earlier state. Whoever waits looks again. */
  restore(data: MemoryData): void {
    const { nextMessageId } = this.#memory.data;
    this.#memory.data = copyOf(data);
    // A message id stands for one message for ever: an owner may still come to consume what it read before.
    this.#memory.data.nextMessageId = Math.max(nextMessageId, data.nextMessageId);
    this.#memory.waiters.wakeEverybody();
  }

  /** The process that holds the store ends and begins again: what is volatile is gone. */
  restart(): void {
    if (this.capabilities.volatileTasks) this.#memory.data.tasks = emptyTasks();
    if (this.capabilities.exclusive === true)
      for (const partition of this.#memory.data.partitions) partition.leaseUntilMs = 0;
    this.#memory.waiters.wakeEverybody();
  }

  async close(): Promise<void> {
    this.#memory.close();
  }
}
