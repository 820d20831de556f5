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
} from "../../store/contract.ts";
import { commitBatches } from "./commit.ts";
import { type Postgres, rows } from "./postgres.ts";
import { wakeKey } from "./wake-ups.ts";

const SQL = {
  snapshots: `select entity, version, format, text from snapshots where entity = any ($1)`,
  // The first record may begin before the version asked for, because a record is opaque.
  recordsAbove: `
    select request.place, record.entity, record.version, record.count, record.format, record.text
    from unnest($1::text[], $2::bigint[]) with ordinality as request (entity, above, place)
    cross join lateral (
      select * from journal
      where entity = request.entity
        and version >= coalesce((select max(version) from journal where entity = request.entity and version <= above + 1), 0)
        and version + count - 1 > above
    ) as record
    order by request.place, record.version`,
  wakes: `select entity, at_ms as "atMs" from wakes where entity = any ($1)`,
  due: `
    select entity, at_ms as "atMs" from wakes
    where partition = $1 and at_ms <= $2 and (at_ms, entity) > ($3, $4) order by at_ms, entity limit $5`,
  version: `select version + count - 1 as version from journal where entity = $1 order by version desc limit 1`,
};

export class PostgresJournal implements Journal {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async commit(batches: readonly CommitBatch[]): Promise<readonly CommitOutcome[]> {
    return batches.length === 0 ? [] : commitBatches(this.#postgres, batches);
  }

  async load(requests: readonly LoadRequest[]): Promise<readonly Loaded[]> {
    const { pool } = this.#postgres;
    const whole = requests.filter(({ aboveVersion }) => aboveVersion === undefined).map(({ entity }) => entity);
    const snapshots = await rows<Snapshot>(pool, SQL.snapshots, [whole]);
    const snapshotOf = new Map(snapshots.map((snapshot) => [snapshot.entity, snapshot]));
    const entities = requests.map(({ entity }) => entity);
    const above = requests.map(({ entity, aboveVersion }) => aboveVersion ?? snapshotOf.get(entity)?.version ?? 0);
    const found = await rows<JournalRecord & { readonly place: number }>(pool, SQL.recordsAbove, [entities, above]);
    const records = Map.groupBy(found, ({ place }) => place);
    const wakes = await rows<Wake>(pool, SQL.wakes, [entities]);
    const wakeOf = new Map(wakes.map(({ entity, atMs }) => [entity, atMs]));
    return requests.map(({ entity, aboveVersion }, i) => ({
      entity,
      snapshot: aboveVersion === undefined ? (snapshotOf.get(entity) ?? null) : null,
      records: (records.get(i + 1) ?? []).map(recordOf),
      wakeAtMs: wakeOf.get(entity) ?? null,
    }));
  }

  async due(partition: number, beforeMs: number, limit: number, after?: Wake): Promise<readonly Wake[]> {
    const { atMs, entity } = after ?? { atMs: Number.MIN_SAFE_INTEGER, entity: "" };
    return rows<Wake>(this.#postgres.pool, SQL.due, [partition, beforeMs, atMs, entity, limit]);
  }

  async watch(partition: number, entity: EntityKey, aboveVersion: number, waitMs: number): Promise<number> {
    const { pool, wakeUps } = this.#postgres;
    let version = 0;
    const isAbove = async (): Promise<number | undefined> => {
      const [row] = await rows<{ version: number }>(pool, SQL.version, [entity]);
      version = row?.version ?? 0;
      return version > aboveVersion ? version : undefined;
    };
    return (await wakeUps.until([wakeKey.versions(partition)], waitMs, isAbove)) ?? version;
  }
}

function recordOf({ entity, version, count, format, text }: JournalRecord): JournalRecord {
  return { entity, version, count, format, text };
}
