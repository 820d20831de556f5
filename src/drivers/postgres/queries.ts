import type { Counts, DeadLetter, Header, HeaderQuery, Page, Queries } from "../../store/contract.ts";
import { pageOf, parseCursor } from "../../store/page.ts";
import { type Postgres, rows } from "./postgres.ts";

const SQL = {
  headers: `
    select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
    from headers
    where (created_at_ms, entity) < ($1, $2)
      and ($3::text is null or class = $3) and ($4::text is null or workflow = $4)
    order by created_at_ms desc, entity desc limit $5`,
  deadLetters: `
    select id, class, queue, entity, at_ms as "atMs", text from dead_letters
    where (at_ms, id) < ($1, $2) order by at_ms desc, id desc limit $3`,
  counts: `
    select wall_ms() as "storeTimeMs", (select count(*) from inbox) as inbox,
      (select count(*) from tasks where lease_until_ms is not null) as leased,
      (select count(*) from dead_letters) as "deadLetters"`,
  queued: `select queue, count(*) as count from tasks where lease_until_ms is null group by queue`,
};

type Sums = Pick<Counts, "storeTimeMs" | "inbox" | "leased" | "deadLetters">;

export class PostgresQueries implements Queries {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const { limit, workflow = null } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const values = [atMs, key, query.class ?? null, workflow, limit + 1];
    const found = await rows<Header>(this.#postgres.pool, SQL.headers, values);
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
    const found = await rows<DeadLetter>(this.#postgres.pool, SQL.deadLetters, [atMs, key, limit + 1]);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async counts(): Promise<Counts> {
    const { pool } = this.#postgres;
    const [[sums], queued] = await Promise.all([
      rows<Sums>(pool, SQL.counts),
      rows<{ queue: string; count: number }>(pool, SQL.queued),
    ]);
    return { ...sums!, queued: Object.fromEntries(queued.map(({ queue, count }) => [queue, count])) };
  }
}
