import assert from "node:assert/strict";
import type { MemoryInbox } from "../memory/inbox.ts";
import type { Memory } from "../memory/memory.ts";
import type { ReaderThread, WriterThread } from "./file-thread.ts";
import type { NewestEntities } from "./newest-entities.ts";
import type { VersionWatchers } from "./version-watchers.ts";
import type { YoungEntities } from "./young-entities.ts";

/** What the roles of one store share. */
export interface Sqlite {
  readonly writer: WriterThread;
  readonly reader: ReaderThread;
  /**
   * What lives in the process only: the queue of tasks, replies, and the inbox. Of its messages the ones in `mailIds`
   * have a row as well.
   */
  readonly memory: Memory;
  readonly inbox: MemoryInbox;
  readonly mailIds: Set<number>;
  readonly watchers: VersionWatchers;
  readonly young: YoungEntities;
  readonly newest: NewestEntities;
}

/** There is one partition: the file has one writer anyway. */
export function checkPartition(partition: number): void {
  assert.equal(partition, 0, "SQLite has one partition");
}
