import type { Counts, DeadLetter, Header, HeaderQuery, Page, Queries } from "../../store/contract.ts";
import type { Memory } from "./memory.ts";
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

  async deadLetters(query: { readonly cursor?: string; readonly limit: number }): Promise<Page<DeadLetter>> {
    const { deadLetters, deadLetterPlaces } = this.#memory.data;
    return pageOf(deadLetterPlaces, (id) => deadLetters.get(id), query);
  }

  async counts(): Promise<Counts> {
    const { host, data } = this.#memory;
    return {
      storeTimeMs: host.wallMs(),
      inbox: data.partitions.reduce((sum, { inbox }) => sum + inbox.length, 0),
      queued: Object.fromEntries([...data.tasks.queues].map(([name, { size }]) => [name, size])),
      leased: data.tasks.leased,
      deadLetters: data.deadLetters.size,
    };
  }
}
