import type { Counts, DeadLetter, Header, HeaderQuery, Page, Queries } from "../../store/contract.ts";
import { MemoryQueries } from "../memory/queries.ts";
import { pageOf, parseCursor } from "../../store/page.ts";
import type { Sqlite } from "./sqlite.ts";

const SQL = {
  headers: `
    select entity, class, status, workflow, tenant, created_at_ms as createdAtMs, ended_at_ms as endedAtMs, version
    from headers
    where (created_at_ms, entity) < (?1, ?2) and (?3 is null or class = ?3) and (?4 is null or workflow = ?4)
    order by created_at_ms desc, entity desc limit ?5`,
  deadLetters: `
    select id, class, queue, entity, at_ms as atMs, text from dead_letters
    where (at_ms, id) < (?, ?) order by at_ms desc, id desc limit ?`,
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
    const { limit, workflow = null } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const found = this.#sqlite.db.all<Header>(SQL.headers, atMs, key, query.class ?? null, workflow, limit + 1);
    return pageOf(found, limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async deadLetters({
    cursor,
    limit,
  }: {
    readonly cursor?: string;
    readonly limit: number;
  }): Promise<Page<DeadLetter>> {
    const { atMs, key } = parseCursor(cursor);
    const found = this.#sqlite.db.all<DeadLetter>(SQL.deadLetters, atMs, key, limit + 1);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async counts(): Promise<Counts> {
    const { count: deadLetters } = this.#sqlite.db.get<{ count: number }>(SQL.countDeadLetters)!;
    return { ...(await this.#volatile.counts()), deadLetters };
  }
}
