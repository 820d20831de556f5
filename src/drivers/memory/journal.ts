import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  JournalRecord,
  Loaded,
  LoadRequest,
  Wake,
  WatchOptions,
} from "../../store/contract.ts";
import { commitBatch, versionKey } from "./commit.ts";
import { type Memory, partitionData } from "./memory.ts";
import { dueWakes } from "./wakes.ts";

export class MemoryJournal implements Journal {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    return batches.map((batch) => commitBatch(this.#memory, batch));
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    return requests.map((request) => this.#loadOne(request));
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    return dueWakes(partitionData(this.#memory, partition).wakes, beforeMs, limit, after);
  }

  async watch(
    _partition: number,
    entity: EntityKey,
    aboveVersion: number,
    waitMs: number,
    { end = false }: WatchOptions = {},
  ): Promise<number> {
    const { data, waiters } = this.#memory;
    let version = 0;
    const reached = (): number | undefined => {
      version = data.entities.get(entity)?.version ?? 0;
      const isOpen = end && data.headers.get(entity)?.class === "open";
      return version > aboveVersion && !isOpen ? version : undefined;
    };
    return (await waiters.until([versionKey(entity)], waitMs, reached)) ?? version;
  }

  #loadOne({ partition, entity, aboveVersion }: LoadRequest): Loaded {
    const data = this.#memory.data.entities.get(entity);
    const snapshot = aboveVersion === undefined ? (data?.snapshot ?? null) : null;
    const records = recordsAbove(data?.records ?? [], aboveVersion ?? snapshot?.version ?? 0);
    const wakeAtMs = partitionData(this.#memory, partition).wakes.at.get(entity) ?? null;
    return { entity, snapshot, records, wakeAtMs };
  }
}

/** The records that hold an event above this version; the first may begin before it, because a record is opaque. */
function recordsAbove(records: readonly JournalRecord[], version: number): readonly JournalRecord[] {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { version: first, count } = records[middle]!;
    if (first + count - 1 <= version) low = middle + 1;
    else high = middle;
  }
  return records.slice(low);
}
