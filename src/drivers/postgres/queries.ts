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
import { type Postgres, rows } from "./postgres.ts";

const SQL = {
  headers: `
    select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
    from headers
    where (created_at_ms, entity) < ($1, $2) and created_at_ms >= $3
      and ($4::text is null or class = $4) and ($5::text is null or workflow = $5)
    order by created_at_ms desc, entity desc limit $6`,
  header: `
    select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
    from headers where entity = $1`,
  deadLetters: `
    select id, class, queue, entity, at_ms as "atMs", text from dead_letters
    where (at_ms, id) < ($1, $2)
      and ($3::text is null or queue = $3) and ($4::text is null or class = $4) and ($5::text is null or entity = $5)
    order by at_ms desc, id desc limit $6`,
  deadLetter: `select id, class, queue, entity, at_ms as "atMs", text from dead_letters where id = $1`,
  listing: `
    select list, id, entity, at_ms as "atMs", text from listings
    where list = $1 and (at_ms, id) < ($2, $3) order by at_ms desc, id desc limit $4`,
  listed: `select list, id, entity, at_ms as "atMs", text from listings where list = $1 and id = $2`,
  workflows: `
    select distinct on (name) name, version, hash from published
    where not is_gone and ($1::text is null or name > $1) order by name, version desc limit $2`,
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
    const { limit, sinceMs = Number.MIN_SAFE_INTEGER, workflow = null } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const values = [atMs, key, sinceMs, query.class ?? null, workflow, limit + 1];
    const found = await rows<Header>(this.#postgres.pool, SQL.headers, values);
    return pageOf(found, limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#one<Header>(SQL.header, entity);
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const { limit, queue = null, entity = null } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const values = [atMs, key, queue, query.class ?? null, entity, limit + 1];
    const found = await rows<DeadLetter>(this.#postgres.pool, SQL.deadLetters, values);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#one<DeadLetter>(SQL.deadLetter, id);
  }

  async listing({ list, cursor, limit }: ListingQuery): Promise<Page<Listed>> {
    const { atMs, key } = parseCursor(cursor);
    const found = await rows<Listed>(this.#postgres.pool, SQL.listing, [list, atMs, key, limit + 1]);
    return pageOf(found, limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    return this.#one<Listed>(SQL.listed, list, id);
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    const values = [cursor ?? null, limit + 1];
    return namedPageOf(await rows<PublishedWorkflow>(this.#postgres.pool, SQL.workflows, values), limit);
  }

  async counts(): Promise<Counts> {
    const { pool } = this.#postgres;
    const [[sums], queued] = await Promise.all([
      rows<Sums>(pool, SQL.counts),
      rows<{ queue: string; count: number }>(pool, SQL.queued),
    ]);
    return { ...sums!, queued: Object.fromEntries(queued.map(({ queue, count }) => [queue, count])) };
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the statement knows its rows
  async #one<Row extends object>(sql: string, ...values: readonly string[]): Promise<Row | null> {
    return (await rows<Row>(this.#postgres.pool, sql, values))[0] ?? null;
  }
}
