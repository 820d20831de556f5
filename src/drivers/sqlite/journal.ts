import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  Loaded,
  LoadRequest,
  Wake,
  WatchOptions,
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
    const [first] = requests;
    if (first === undefined) return [];
    const tail =
      requests.length === 1 && first.aboveVersion !== undefined
        ? this.#sqlite.young.tail(first.entity, first.aboveVersion)
        : undefined;
    return tail === undefined ? this.#load(requests) : [tail];
  }

  /** The file is asked for those that may be there. */
  async #load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    const { newest, reader } = this.#sqlite;
    const asked = requests.filter(({ entity }) => !newest.isNew(entity));
    if (asked.length === requests.length) return reader.call("load", requests);
    const found = asked.length === 0 ? [] : await reader.call("load", asked);
    let next = 0;
    return requests.map((request): Loaded => {
      if (request === asked[next]) return found[next++]!;
      return { entity: request.entity, snapshot: null, records: [], wakeAtMs: null };
    });
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    checkPartition(partition);
    return this.#sqlite.reader.call("due", beforeMs, limit, after);
  }

  async watch(
    _partition: number,
    entity: EntityKey,
    aboveVersion: number,
    waitMs: number,
    { end = false }: WatchOptions = {},
  ): Promise<number> {
    const { memory, reader, watchers, young } = this.#sqlite;
    const isEnough = (version: number): boolean => version > aboveVersion && !(end && young.isOpen(entity));
    const known = young.version(entity);
    if (known !== undefined && (isEnough(known) || waitMs <= 0)) return known;
    young.follow(entity);
    // Before the look: what is committed while it runs must not be missed.
    const watcher = watchers.enter(entity);
    try {
      const version = known ?? (await reader.call("version", entity));
      watcher.version ??= version;
      const reached = (): number | undefined => (isEnough(watcher.version!) ? watcher.version : undefined);
      return (await memory.waiters.until([versionKey(entity)], waitMs, reached)) ?? watcher.version;
    } finally {
      watchers.leave(entity, watcher);
    }
  }
}
