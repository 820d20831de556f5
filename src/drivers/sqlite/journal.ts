import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  Loaded,
  LoadRequest,
  Wake,
} from "../../store/contract.ts";
import { versionKey } from "../memory/commit.ts";
import { commitBatches } from "./commit.ts";
import { checkPartition, type Sqlite } from "./sqlite.ts";

export class SqliteJournal implements Journal {
  readonly #sqlite: Sqlite;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    return batches.length === 0 ? [] : commitBatches(this.#sqlite, batches);
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    return requests.length === 0 ? [] : this.#sqlite.reader.call("load", requests);
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    checkPartition(partition);
    return this.#sqlite.reader.call("due", beforeMs, limit, after);
  }

  async watch(_partition: number, entity: EntityKey, aboveVersion: number, waitMs: number): Promise<number> {
    const { memory, reader, watchers } = this.#sqlite;
    // Before the look: what is committed while it runs must not be missed.
    const watcher = watchers.enter(entity);
    try {
      const version = await reader.call("version", entity);
      watcher.version ??= version;
      const isAbove = (): number | undefined => (watcher.version! > aboveVersion ? watcher.version : undefined);
      return (await memory.waiters.until([versionKey(entity)], waitMs, isAbove)) ?? watcher.version;
    } finally {
      watchers.leave(entity, watcher);
    }
  }
}
