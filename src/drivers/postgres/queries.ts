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
import { rows } from "./database.ts";
import { mayBeText } from "./encoding.ts";
import type { Postgres } from "./postgres.ts";

/** Each reads a page from the end of an index, and no further. */
export const LIST_QUERIES = {
  // A page is the newest of the newest of each class.
  headersByClass: `
    select header.* from unnest($1::text[]) as asked (class)
    cross join lateral (
      select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
      from headers
      where class = asked.class and (created_at_ms, entity) < ($2, $3) and created_at_ms >= $4
      order by created_at_ms desc, entity desc limit $5
    ) as header
    order by header."createdAtMs" desc, header.entity desc limit $5`,
  headersByWorkflow: `
    select header.* from unnest($1::text[]) as asked (class)
    cross join lateral (
      select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
      from headers
      where workflow = $6 and class = asked.class and (created_at_ms, entity) < ($2, $3) and created_at_ms >= $4
      order by created_at_ms desc, entity desc limit $5
    ) as header
    order by header."createdAtMs" desc, header.entity desc limit $5`,
  lettersByClass: `
    select letter.* from unnest($1::text[]) as asked (class)
    cross join lateral (
      select id, class, queue, entity, at_ms as "atMs", text from dead_letters
      where class = asked.class and (at_ms, id) < ($2, $3) order by at_ms desc, id desc limit $4
    ) as letter
    order by letter."atMs" desc, letter.id desc limit $4`,
  lettersByQueue: `
    select letter.* from unnest($1::text[]) as asked (class)
    cross join lateral (
      select id, class, queue, entity, at_ms as "atMs", text from dead_letters
      where queue = $5 and class = asked.class and (at_ms, id) < ($2, $3) order by at_ms desc, id desc limit $4
    ) as letter
    order by letter."atMs" desc, letter.id desc limit $4`,
  // An entity has few.
  lettersByEntity: `
    select id, class, queue, entity, at_ms as "atMs", text from dead_letters
    where entity = $5 and class = any ($1) and (at_ms, id) < ($2, $3) and ($6::text is null or queue = $6)
    order by at_ms desc, id desc limit $4`,
};

const SQL = {
  header: `
    select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
    from headers where entity = $1`,
  deadLetter: `select id, class, queue, entity, at_ms as "atMs", text from dead_letters where id = $1`,
  listing: `
    select list, id, entity, at_ms as "atMs", text from listings
    where list = $1 and (at_ms, id) < ($2, $3) order by at_ms desc, id desc limit $4`,
  listed: `select list, id, entity, at_ms as "atMs", text from listings where list = $1 and id = $2`,
  workflows: `
    select distinct on (name) name, version, hash from published
    where not is_gone and ($1::text is null or name > $1) order by name, version desc limit $2`,
  counts: `
    select wall_ms() as "storeTimeMs",
      (select count(*) + (select coalesce(sum(size - taken - 1), 0) from inbox where size > 1) from inbox)::bigint as inbox,
      (select count(*) from dead_letters) as "deadLetters"`,
  // Each half by its own index.
  queues: `
    select queue, "isQueued", sum(count)::bigint as count, min("oldestAtMs") as "oldestAtMs" from (
      select queue, true as "isQueued", count(*) as count, min(queued_at_ms) as "oldestAtMs"
      from tasks where lease_until_ms is null group by queue
      union all
      select queue, false, count(*), null from tasks where lease_until_ms is not null group by queue
      union all
      select queue, true, sum(size), min(queued_at_ms) from packs where lease_until_ms is null group by queue
      union all
      select queue, false, sum(size), null from packs where lease_until_ms is not null group by queue
    ) as counted group by queue, "isQueued"`,
};

const HEADER_CLASSES: readonly Header["class"][] = ["open", "endedWell", "endedBadly"];
const LETTER_CLASSES: readonly DeadLetter["class"][] = ["poison", "exhausted"];

interface QueueRow {
  readonly queue: string;
  readonly isQueued: boolean;
  readonly count: number;
  readonly oldestAtMs: number | null;
}

type Sums = Pick<Counts, "storeTimeMs" | "inbox" | "deadLetters">;

export class PostgresQueries implements Queries {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async headers(query: HeaderQuery): Promise<Page<Header>> {
    const { limit, sinceMs = Number.MIN_SAFE_INTEGER, workflow } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const classes = query.class === undefined ? HEADER_CLASSES : [query.class];
    const values = [classes, atMs, key, sinceMs, limit + 1];
    const { database } = this.#postgres;
    const found =
      workflow === undefined
        ? await rows<Header>(database, LIST_QUERIES.headersByClass, values)
        : await rows<Header>(database, LIST_QUERIES.headersByWorkflow, [...values, workflow]);
    return pageOf(found, limit, (header) => ({ atMs: header.createdAtMs, key: header.entity }));
  }

  async header(_partition: number, entity: EntityKey): Promise<Header | null> {
    return this.#one<Header>(SQL.header, entity);
  }

  async deadLetters(query: DeadLetterQuery): Promise<Page<DeadLetter>> {
    const { limit, queue, entity } = query;
    const { atMs, key } = parseCursor(query.cursor);
    const classes = query.class === undefined ? LETTER_CLASSES : [query.class];
    const values = [classes, atMs, key, limit + 1];
    const { database } = this.#postgres;
    let found: readonly DeadLetter[];
    if (entity !== undefined)
      found = await rows(database, LIST_QUERIES.lettersByEntity, [...values, entity, queue ?? null]);
    else if (queue !== undefined) found = await rows(database, LIST_QUERIES.lettersByQueue, [...values, queue]);
    else found = await rows(database, LIST_QUERIES.lettersByClass, values);
    return pageOf(found, limit, (letter) => ({ atMs: letter.atMs, key: letter.id }));
  }

  async deadLetter(id: string): Promise<DeadLetter | null> {
    return this.#one<DeadLetter>(SQL.deadLetter, id);
  }

  async listing({ list, cursor, limit }: ListingQuery): Promise<Page<Listed>> {
    const { atMs, key } = parseCursor(cursor);
    const found = await rows<Listed>(this.#postgres.database, SQL.listing, [list, atMs, key, limit + 1]);
    return pageOf(found, limit, (listed) => ({ atMs: listed.atMs, key: listed.id }));
  }

  async listed(list: string, id: string): Promise<Listed | null> {
    return this.#one<Listed>(SQL.listed, list, id);
  }

  async workflows({ cursor, limit }: PageQuery): Promise<Page<PublishedWorkflow>> {
    const values = [cursor ?? null, limit + 1];
    return namedPageOf(await rows<PublishedWorkflow>(this.#postgres.database, SQL.workflows, values), limit);
  }

  async counts(): Promise<Counts> {
    const { database } = this.#postgres;
    const [[sums], queues] = await Promise.all([
      // These are counted whole: an index is shorter than what it is of.
      database.transaction(async (connection) => {
        await connection.runScript("set local enable_indexonlyscan = on");
        return rows<Sums>(connection, SQL.counts);
      }),
      rows<QueueRow>(database, SQL.queues),
    ]);
    const queued = queues.filter(({ isQueued }) => isQueued);
    const leased = queues.filter(({ isQueued }) => !isQueued);
    return {
      ...sums!,
      leased: leased.reduce((sum, { count }) => sum + count, 0),
      queued: Object.fromEntries(queued.map(({ queue, count }) => [queue, count])),
      leasedOf: Object.fromEntries(leased.map(({ queue, count }) => [queue, count])),
      oldestAtMs: Object.fromEntries(queued.map(({ queue, oldestAtMs }) => [queue, oldestAtMs!])),
    };
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the statement knows its rows
  async #one<Row extends object>(sql: string, ...values: readonly string[]): Promise<Row | null> {
    if (!values.every(mayBeText)) return null;
    return (await rows<Row>(this.#postgres.database, sql, values))[0] ?? null;
  }
}
