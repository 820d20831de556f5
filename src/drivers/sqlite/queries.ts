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
import { MemoryQueries } from "../memory/queries.ts";
import { namedPageOf, pageOf, parseCursor } from "../../store/page.ts";
import type { Sqlite } from "./sqlite.ts";

const SQL = {
  headers: `
    select entity, class, status, workflow, tenant, created_at_ms as createdAtMs, ended_at_ms as endedAtMs, version
    from headers
    where (created_at_ms, entity) < (?1, ?2) and created_at_ms >= ?3
      and (?4 is null or class = ?4) and (?5 is null or workflow = ?5)
    order by created_at_ms desc, entity desc limit ?6`,
  header: `
    select entity, class, status, workflow, tenant, created_at_ms as createdAtMs, ended_at_ms as endedAtMs, version
    from headers where entity = ?`,
  deadLetters: `
    select id, class, queue, entity, at_ms as atMs, text from dead_letters
    where (at_ms, id) < (?1, ?2)
      and (?3 is null or queue = ?3) and (?4 is null or class = ?4) and (?5 is null or entity = ?5)
    order by at_ms desc, id desc limit ?6`,
  deadLetter: `select id, class, queue, entity, at_ms as atMs, text from dead_letters where id = ?`,
  listing: `
    select list, id, entity, at_ms as atMs, text from listings
    where list = ? and (at_ms, id) < (?, ?) order by at_ms desc, id desc limit ?`,
  listed: `select list, id, entity, at_ms as atMs, text from listings where list = ? and id = ?`,
  // Of the rows with one name SQLite answers the one that has the maximum.
  workflows: `
    select name, max(version) as version, hash from published
    where is_gone = 0 and (?1 is null or name > ?1) group by name order by name limit ?2`,
  countDeadLetters: `select count(*) as count from dead_letters`,
};

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
    const { atMs, key } = parseCursor(query.cursor);
    const filters = [sinceMs, query.class ?? null, workflow];
    const found = this.#sqlite.db.all<Header>(SQL.headers, atMs, key, ...filters, limit + 1);
    return pageOf(found, limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#sqlite.db.get<Header>(SQL.header, entity) ?? null;
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const { limit, queue = null, entity = null } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const filters = [queue, query.class ?? null, entity];
    const found = this.#sqlite.db.all<DeadLetter>(SQL.deadLetters, atMs, key, ...filters, limit + 1);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#sqlite.db.get<DeadLetter>(SQL.deadLetter, id) ?? null;
  }

  async listing({ list, cursor, limit }: ListingQuery): Promise<Page<Listed>> {
    const { atMs, key } = parseCursor(cursor);
    const found = this.#sqlite.db.all<Listed>(SQL.listing, list, atMs, key, limit + 1);
    return pageOf(found, limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    return this.#sqlite.db.get<Listed>(SQL.listed, list, id) ?? null;
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    return namedPageOf(this.#sqlite.db.all<PublishedWorkflow>(SQL.workflows, cursor ?? null, limit + 1), limit);
  }

  async counts(): Promise<Counts> {
    const { count: deadLetters } = this.#sqlite.db.get<{ count: number }>(SQL.countDeadLetters)!;
    return { ...(await this.#volatile.counts()), deadLetters };
  }
}
