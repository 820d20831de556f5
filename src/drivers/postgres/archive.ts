import type { Host } from "../../host/host.ts";
import type { Archive, KeptName, Progress, Shipment, ShipOutcome, Tip } from "../../store/archive.ts";
import type { EntityKey, Header, Published, StoredRecord } from "../../store/contract.ts";
import { columns, type Connection, Database, rows } from "./database.ts";
import { Fleet } from "./fleet.ts";
import { PostgresJournal } from "./journal.ts";
import { migrate } from "./migrations.ts";
import { PostgresQueries } from "./queries.ts";
import { PostgresRecords } from "./records.ts";
import { Seats } from "./seats.ts";
import { WakeUps } from "./wake-ups.ts";
import { WatchedEntities } from "./watched.ts";

export interface PostgresArchiveOptions {
  readonly url: string;
  readonly host: Host;
  /** Everything is in this one, apart from a store in the same database; made if it is not there. */
  readonly schema?: string;
  readonly maxConnections?: number;
}

/** A server that is away must not hold up whoever can do without it. */
const CONNECT_MS = 2_000;
const STATEMENT_MS = 10_000;

const SQL = {
  lock: `select pg_advisory_xact_lock(7031558202)`,
  create: `
    create table if not exists archive (id integer primary key, incarnation text not null);
    create table if not exists shipped (
      partition integer primary key,
      epoch bigint not null,
      time_ms bigint not null,
      behind integer not null
    );
    create index if not exists headers_open on headers (entity) where class = 'open';`,
  claim: `insert into archive (id, incarnation) values (1, $1) on conflict do nothing`,
  adopt: `
    insert into archive (id, incarnation) values (1, $1) on conflict (id) do update set incarnation = excluded.incarnation`,
  owner: `select incarnation from archive`,
  // Guard: an owner that was replaced has nothing to say any more.
  advance: `
    insert into shipped (partition, epoch, time_ms, behind) values ($1, $2, $3, $4)
    on conflict (partition) do update set epoch = excluded.epoch, time_ms = greatest(shipped.time_ms, excluded.time_ms),
      behind = excluded.behind
    where shipped.epoch <= excluded.epoch returning partition`,
  progress: `select partition, epoch, time_ms as "timeMs", behind from shipped order by partition`,
  tips: `
    select asked.entity, last.version as "firstVersion", last.version + last.count - 1 as version,
      encode(sha256(convert_to(last.text, 'UTF8')), 'hex') as hash
    from unnest($1::text[]) as asked (entity)
    cross join lateral (
      select version, count, text from journal where entity = asked.entity order by version desc limit 1
    ) as last`,
  forgetJournals: `delete from journal where entity = any ($1)`,
  // Guard: no gap. What is there already came with an earlier try. The first of all may begin where it was cut.
  appendRecords: `
    insert into journal (entity, version, count, format, text)
    select entity, version, count, format, text
    from unnest($1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::integer[], $6::text[])
      as record (entity, first, version, count, format, text)
    where record.first <= coalesce((
      select last.version + last.count from journal as last
      where last.entity = record.entity order by last.version desc limit 1
    ), record.first)
    on conflict do nothing`,
  putHeaders: `
    insert into headers (entity, class, status, workflow, tenant, created_at_ms, ended_at_ms, version)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
    on conflict (entity) do update set class = excluded.class, status = excluded.status, workflow = excluded.workflow,
      tenant = excluded.tenant, created_at_ms = excluded.created_at_ms, ended_at_ms = excluded.ended_at_ms,
      version = excluded.version`,
  putRecords: `
    insert into records (scope, hash, text)
    select * from unnest($1::text[], $2::text[], $3::text[]) as record (scope, hash, text) order by scope, hash
    on conflict do nothing`,
  forgetLetters: `delete from dead_letters where entity = any ($1)`,
  putLetters: `
    insert into dead_letters (id, class, queue, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
    on conflict do nothing`,
  forgetListings: `delete from listings where entity = any ($1)`,
  putListings: `
    insert into listings (list, id, entity, at_ms, text)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    on conflict do nothing`,
  forgetVersions: `delete from published where name = $1 and (version = any ($2) or hash = any ($3))`,
  putVersions: `
    insert into published (name, version, hash) select $1, * from unnest($2::integer[], $3::text[])`,
  loseVersions: `update published set is_gone = true where name = $1 and not version = any ($2)`,
  loseNames: `update published set is_gone = true where not is_gone and not name = any ($1)`,
  names: `select name, version, hash, is_gone as "isGone" from published order by name, version`,
  scope: `select scope, hash, text from records where scope = $1`,
  open: `
    select entity, class, status, workflow, tenant, created_at_ms as "createdAtMs", ended_at_ms as "endedAtMs", version
    from headers where class = 'open' and entity > $1 order by entity limit $2`,
};

/** Opens nothing yet: a server that is away is met by whoever asks it for something. */
export function openPostgresArchive(options: PostgresArchiveOptions): Archive {
  const { url, host, schema = "millrace_archive", maxConnections = 4 } = options;
  const settings = { url, schema, maxConnections, connectMs: CONNECT_MS, statementMs: STATEMENT_MS };
  return new PostgresArchive(host, new Database(host, settings), new WakeUps(host, settings, "archive"), schema);
}

class PostgresArchive implements Archive {
  readonly journal: Archive["journal"];
  readonly records: Archive["records"];
  readonly queries: Archive["queries"];
  readonly #database: Database;
  readonly #schema: string;
  #ready: Promise<void> | undefined;

  /** @param wakeUps not connected: nobody waits here for anything to happen */
  constructor(host: Host, database: Database, wakeUps: WakeUps, schema: string) {
    this.#database = database;
    this.#schema = schema;
    const postgres = {
      database,
      host,
      fleet: new Fleet(host, database),
      wakeUps,
      seats: new Seats(),
      watched: new WatchedEntities(),
      incarnation: "archive",
      maxInbox: 0,
    };
    const journal = new PostgresJournal(postgres);
    const records = new PostgresRecords(postgres);
    const queries = new PostgresQueries(postgres);
    const ready = async <Result>(read: () => Promise<Result>): Promise<Result> => {
      await this.#open();
      return read();
    };
    this.journal = { load: (requests) => ready(() => journal.load(requests)) };
    this.records = { get: (keys) => ready(() => records.get(keys)) };
    this.queries = {
      headers: (query) => ready(() => queries.headers(query)),
      header: (partition, entity) => ready(() => queries.header(partition, entity)),
      deadLetters: (query) => ready(() => queries.deadLetters(query)),
      deadLetter: (id) => ready(() => queries.deadLetter(id)),
      listing: (query) => ready(() => queries.listing(query)),
    };
  }

  async tips(entities: readonly EntityKey[]): Promise<ReadonlyMap<EntityKey, Tip>> {
    const found = await this.#rows<Tip & { readonly entity: EntityKey }>(SQL.tips, [entities]);
    return new Map(found.map(({ entity, ...tip }) => [entity, tip]));
  }

  async ship(shipment: Shipment): Promise<ShipOutcome> {
    await this.#open();
    return this.#database.transaction(async (connection) => {
      const { partition, incarnation, epoch, timeMs, behind } = shipment;
      await connection.run(SQL.claim, [incarnation]);
      const [owner] = await rows<{ incarnation: string }>(connection, SQL.owner);
      if (owner!.incarnation !== incarnation) return "foreign";
      const advanced = await rows(connection, SQL.advance, [partition, epoch, timeMs, behind]);
      if (advanced.length === 0) return "fenced";
      await writeEntities(connection, shipment);
      return "shipped";
    });
  }

  async keep(records: readonly StoredRecord[]): Promise<void> {
    await this.#open();
    await write(this.#database, SQL.putRecords, records, "scope", "hash", "text");
  }

  async keepPublished(name: string, versions: readonly Published[]): Promise<void> {
    await this.#open();
    const [numbers, hashes] = columns(versions, "version", "hash");
    await this.#database.transaction(async (connection) => {
      await connection.run(SQL.lock);
      await connection.run(SQL.forgetVersions, [name, numbers, hashes]);
      await connection.run(SQL.putVersions, [name, numbers, hashes]);
      await connection.run(SQL.loseVersions, [name, numbers]);
    });
  }

  async keepNames(names: readonly string[]): Promise<void> {
    await this.#rows(SQL.loseNames, [names]);
  }

  async progress(): Promise<readonly Progress[]> {
    return this.#rows<Progress>(SQL.progress);
  }

  async adopt(incarnation: string): Promise<void> {
    await this.#rows(SQL.adopt, [incarnation]);
  }

  async owner(): Promise<string | null> {
    const [found] = await this.#rows<{ incarnation: string }>(SQL.owner);
    return found?.incarnation ?? null;
  }

  async names(): Promise<readonly KeptName[]> {
    type Row = KeptName["versions"][number] & { readonly name: string };
    const byName = Map.groupBy(await this.#rows<Row>(SQL.names), ({ name }) => name);
    return [...byName].map(([name, versions]) => ({
      name,
      versions: versions.map(({ version, hash, isGone }) => ({ version, hash, isGone })),
    }));
  }

  async scope(scope: string): Promise<readonly StoredRecord[]> {
    return this.#rows<StoredRecord>(SQL.scope, [scope]);
  }

  async open(after: EntityKey, limit: number): Promise<readonly Header[]> {
    return this.#rows<Header>(SQL.open, [after, limit]);
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who wrote the statement knows its rows
  async #rows<Row extends object>(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    await this.#open();
    return rows<Row>(this.#database, sql, values);
  }

  /** Makes the tables on first use. What failed is tried again by the next who asks. */
  async #open(): Promise<void> {
    this.#ready ??= this.#create();
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw error;
    }
  }

  async #create(): Promise<void> {
    // It has no partitions of its own: whoever ships is the owner of one elsewhere.
    await migrate(this.#database, this.#schema, 1, "archive");
    await this.#database.transaction(async (connection) => {
      await connection.run(SQL.lock);
      await connection.runScript(SQL.create);
    });
  }
}

async function writeEntities(connection: Connection, { entities }: Shipment): Promise<void> {
  const replaced = entities.filter(({ replaces }) => replaces).map(({ entity }) => entity);
  if (replaced.length > 0) await connection.run(SQL.forgetJournals, [replaced]);
  const records = entities.flatMap(({ records: own }) => own.map((record) => ({ ...record, first: own[0]!.version })));
  await write(connection, SQL.appendRecords, records, "entity", "first", "version", "count", "format", "text");
  const headers = entities.flatMap(({ header }) => (header === null ? [] : [header]));
  const names = ["entity", "class", "status", "workflow", "tenant"] as const;
  await write(connection, SQL.putHeaders, headers, ...names, "createdAtMs", "endedAtMs", "version");
  const values = entities.flatMap((entity) => entity.values);
  await write(connection, SQL.putRecords, values, "scope", "hash", "text");
  const told = entities.filter(({ listings, replaces }) => listings !== null || replaces);
  if (told.length > 0) await connection.run(SQL.forgetListings, [told.map(({ entity }) => entity)]);
  const listings = entities.flatMap((entity) => [...(entity.listings ?? []), ...entity.entries]);
  await write(connection, SQL.putListings, listings, "list", "id", "entity", "atMs", "text");
  const lettered = entities.filter(({ letters }) => letters !== null);
  if (lettered.length === 0) return;
  await connection.run(SQL.forgetLetters, [lettered.map(({ entity }) => entity)]);
  const letters = lettered.flatMap((entity) => entity.letters ?? []);
  await write(connection, SQL.putLetters, letters, "id", "class", "queue", "entity", "atMs", "text");
}

async function write<Item>(
  connection: Connection,
  sql: string,
  items: readonly Item[],
  ...fields: readonly (keyof Item)[]
): Promise<void> {
  if (items.length > 0) await connection.run(sql, [...columns(items, ...fields)]);
}
