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
import { namedPageOf, pageOf, parseCursor } from "../../store/page.ts";
import { MemoryQueries } from "../memory/queries.ts";
import type { Sqlite } from "./sqlite.ts";

export class SqliteQueries implements Queries {
  readonly #sqlite: Sqlite;
  /** Counts what lives in memory. */
  readonly #volatile: Queries;

  constructor(sqlite: Sqlite) {
    this.#sqlite = sqlite;
    this.#volatile = new MemoryQueries(sqlite.memory);
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const { limit, sinceMs = Number.MIN_SAFE_INTEGER, workflow = null } = query;
    const place = parseCursor(query.cursor);
    const wanted = query.class ?? null;
    const found = await this.#sqlite.reader.call("headers", place, sinceMs, wanted, workflow, limit + 1);
    return pageOf(found, limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    const { young, reader } = this.#sqlite;
    const known = young.header(entity);
    return known === undefined ? reader.call("header", entity) : known;
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const { limit, queue = null, entity = null } = query;
    const place = parseCursor(query.cursor);
    const wanted = query.class ?? null;
    const found = await this.#sqlite.reader.call("deadLetters", place, queue, wanted, entity, limit + 1);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#sqlite.reader.call("deadLetter", id);
  }

  async listing({ list, cursor, limit }: ListingQuery): Promise<Page<Listed>> {
    const found = await this.#sqlite.reader.call("listing", list, parseCursor(cursor), limit + 1);
    return pageOf(found, limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    return this.#sqlite.reader.call("listed", list, id);
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    return namedPageOf(await this.#sqlite.reader.call("workflows", cursor ?? null, limit + 1), limit);
  }

  async counts(): Promise<Counts> {
    const [deadLetters, headers] = await Promise.all([
      this.#sqlite.reader.call("countDeadLetters"),
      this.#sqlite.writer.call("countHeaders"),
    ]);
    return { ...(await this.#volatile.counts()), deadLetters, ...headers };
  }
}
