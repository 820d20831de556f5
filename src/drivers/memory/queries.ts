import type {
  Counts,
  DeadLetter,
  DeadLetterQuery,
  EntityKey,
  Header,
  HeaderQuery,
  Listed,
  ListingQuery,
  Page,
  PageQuery,
  PublishedWorkflow,
  Queries,
} from "../../store/contract.ts";
import { namedPageOf } from "../../store/page.ts";
import type { Memory } from "./memory.ts";
import { publishedVersions } from "./records.ts";
import { pageOf } from "./sorted-places.ts";

export class MemoryQueries implements Queries {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const { headers, headerPlaces } = this.#memory.data;
    const find = (entity: string): Header | undefined => {
      const header = headers.get(entity);
      if (query.class !== undefined && header?.class !== query.class) return undefined;
      if (query.workflow !== undefined && header?.workflow !== query.workflow) return undefined;
      return header;
    };
    return pageOf(headerPlaces, find, query);
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#memory.data.headers.get(entity) ?? null;
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const { deadLetters, deadLetterPlaces } = this.#memory.data;
    const find = (id: string): DeadLetter | undefined => {
      const letter = deadLetters.get(id);
      if (query.queue !== undefined && letter?.queue !== query.queue) return undefined;
      if (query.class !== undefined && letter?.class !== query.class) return undefined;
      if (query.entity !== undefined && letter?.entity !== query.entity) return undefined;
      return letter;
    };
    return pageOf(deadLetterPlaces, find, query);
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#memory.data.deadLetters.get(id) ?? null;
  }

  async listing(query: ListingQuery): Promise<Page<Listed>> {
    const list = this.#memory.data.lists.get(query.list);
    return pageOf(list?.places ?? [], (id) => list?.byId.get(id), query);
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    return this.#memory.data.lists.get(list)?.byId.get(id) ?? null;
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    const names = [...this.#memory.data.published.keys()].filter(
      (name) => cursor === undefined || compareBytes(name, cursor) > 0,
    );
    const found: PublishedWorkflow[] = [];
    for (const name of names.sort(compareBytes)) {
      const newest = publishedVersions(this.#memory, name)[0];
      if (newest !== undefined) found.push({ name, ...newest });
      if (found.length > limit) break;
    }
    return namedPageOf(found, limit);
  }

  async counts(): Promise<Counts> {
    const { host, data, faults } = this.#memory;
    const leasedOf: Record<string, number> = {};
    const oldestAtMs: Record<string, number> = {};
    // A window bounds how many there can be.
    for (const { task, atMs, leaseUntilMs } of data.tasks.byToken.values()) {
      const { queue } = task;
      if (leaseUntilMs !== null) leasedOf[queue] = (leasedOf[queue] ?? 0) + 1;
      else oldestAtMs[queue] = Math.min(oldestAtMs[queue] ?? Infinity, atMs);
    }
    return {
      storeTimeMs: host.wallMs(),
      inbox: data.partitions.reduce((sum, { inbox }) => sum + inbox.length, 0),
      queued: Object.fromEntries(
        [...data.tasks.queues].filter(([, { size }]) => size > 0).map(([name, { size }]) => [name, size]),
      ),
      leased: data.tasks.leased,
      deadLetters: data.deadLetters.size,
      ended: data.endedCount,
      open: data.openCount,
      leasedOf,
      oldestAtMs,
      ...(faults.isFull && { isFull: true }),
    };
  }
}

/** Strings here are compared by UTF-16 units, which is another order. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
