import type {
  CommitBatch,
  CommitOutcome,
  EntityKey,
  Journal,
  JournalRecord,
  Loaded,
  LoadRequest,
  Snapshot,
  Wake,
  WatchOptions,
} from "../../store/contract.ts";
import type { HandOver } from "../../store/hand-over.ts";
import { commitBatches } from "./commit.ts";
import { is } from "./by-index.ts";
import { rows } from "./database.ts";
import { Gathering } from "./gathering.ts";
import { handedOf } from "./inbox.ts";
import type { Postgres } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";

export const SQL = {
  // One statement, so that nobody can write between its parts. The first record may begin before the version asked for,
  // because a record is opaque.
  load: `
    with request as materialized (
      select place, asked.entity, snapshot.version, snapshot.format, snapshot.text,
        coalesce(asked.above, snapshot.version, 0) as above
      from unnest($1::text[], $2::bigint[]) with ordinality as asked (entity, above, place)
      left join snapshots as snapshot on ${is("snapshot.entity", "asked.entity")} and asked.above is null
      where not exists (select from purges where ${is("entity", "asked.entity")})
    )
    select place, 'snapshot' as kind, version, 0 as count, format, text from request where version is not null
    union all
    select place, 'wake', at_ms, 0, 0, '' from request join wakes on ${is("wakes.entity", "request.entity")}
    union all
    select place, 'record', record.version, record.count, record.format, record.text
    from request cross join lateral (
      select * from journal
      where ${is("entity", "request.entity")}
        and version >= coalesce((select max(version) from journal where entity = request.entity and version <= above + 1), 0)
        and version + count - 1 > above
    ) as record
    order by place, version`,
  due: `
    select entity, at_ms as "atMs" from wakes
    where partition = $1 and at_ms <= $2 and (at_ms, entity) > ($3, $4) order by at_ms, entity limit $5`,
  versions: `
    select place, last.version, coalesce(headers.class = 'open', false) as "isOpen"
    from unnest($1::text[]) with ordinality as asked (entity, place)
    left join headers on ${is("headers.entity", "asked.entity")}
    cross join lateral (
      select version + count - 1 as version from journal where entity = asked.entity order by version desc limit 1
    ) as last
    where not exists (select from purges where ${is("entity", "asked.entity")})`,
};

interface Version {
  readonly version: number;
  /** What its header says, if it has one. */
  readonly isOpen: boolean;
}
const UNKNOWN: Version = { version: 0, isOpen: false };

interface LoadedRow {
  readonly place: number;
  readonly kind: "snapshot" | "wake" | "record";
  readonly version: number;
  readonly count: number;
  readonly format: number;
  readonly text: string;
}

export class PostgresJournal implements Journal {
  readonly #postgres: Postgres;
  readonly #loads: Gathering<LoadRequest, Loaded>;
  readonly #versions: Gathering<EntityKey, Version>;

  readonly #handOver: HandOver | undefined;

  /** @param handOver left out where nothing is committed */
  constructor(postgres: Postgres, handOver?: HandOver) {
    this.#postgres = postgres;
    this.#handOver = handOver;
    this.#loads = new Gathering((requests) => this.#load(requests));
    this.#versions = new Gathering((entities) => this.#readVersions(entities));
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    if (batches.length === 0) return [];
    const outcomes = await commitBatches(this.#postgres, batches);
    for (const [i, { consumed }] of batches.entries()) this.#handOver?.decided(handedOf(consumed), outcomes[i]!.kind);
    return outcomes;
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    return requests.length === 0 ? [] : this.#loads.ask(requests);
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    const { atMs, entity } = after ?? { atMs: Number.MIN_SAFE_INTEGER, entity: "" };
    return rows<Wake>(this.#postgres.database, SQL.due, [partition, beforeMs, atMs, entity, limit]);
  }

  async watch(
    partition: number,
    entity: EntityKey,
    aboveVersion: number,
    waitMs: number,
    { end = false }: WatchOptions = {},
  ): Promise<number> {
    const { wakeUps, watched } = this.#postgres;
    let version = 0;
    const reached = async (): Promise<number | undefined> => {
      const [found] = await this.#versions.ask([entity]);
      version = found!.version;
      watched.seen(entity, found!.isOpen);
      return version > aboveVersion && !(end && found!.isOpen) ? version : undefined;
    };
    const here = end ? wakeKey.end(entity) : wakeKey.version(entity);
    watched.enter(entity);
    try {
      return (await wakeUps.until([wakeKey.versions(partition), here], waitMs, reached)) ?? version;
    } finally {
      watched.leave(entity);
    }
  }

  async #load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    const entities = requests.map(({ entity }) => entity);
    const above = requests.map(({ aboveVersion }) => aboveVersion ?? null);
    const found = await rows<LoadedRow>(this.#postgres.database, SQL.load, [entities, above]);
    const byPlace = Map.groupBy(found, ({ place }) => place);
    return requests.map(({ entity }, i) => loadedOf(entity, byPlace.get(i + 1) ?? []));
  }

  async #readVersions(entities: readonly EntityKey[]): Promise<readonly Version[]> {
    const found = await rows<Version & { place: number }>(this.#postgres.database, SQL.versions, [entities]);
    const byPlace = new Map(found.map((row) => [row.place, row]));
    return entities.map((_, i) => byPlace.get(i + 1) ?? UNKNOWN);
  }
}

function loadedOf(entity: EntityKey, found: readonly LoadedRow[]): Loaded {
  const records: JournalRecord[] = [];
  let snapshot: Snapshot | null = null;
  let wakeAtMs: number | null = null;
  for (const { kind, version, count, format, text } of found) {
    if (kind === "record") records.push({ entity, version, count, format, text });
    else if (kind === "snapshot") snapshot = { entity, version, format, text };
    else wakeAtMs = version;
  }
  return { entity, snapshot, records, wakeAtMs };
}
