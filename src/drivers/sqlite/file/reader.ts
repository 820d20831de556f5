import type {
  DeadLetter,
  EntityKey,
  Header,
  HeaderClass,
  JournalRecord,
  Listed,
  Loaded,
  LoadRequest,
  Published,
  PublishedWorkflow,
  RecordKey,
  Snapshot,
  Wake,
} from "../../../store/contract.ts";
import { MAX_VERSIONS, type PlaceInTime } from "../../../store/page.ts";
import { Database } from "./database.ts";

const HEADER = `
  entity, class, status, workflow, tenant, created_at_ms as createdAtMs, ended_at_ms as endedAtMs, header_version as version`;

/** From the newest on, as each names the one before, until one begins at or before the first that is asked for. */
const CHAIN = `
    with recursive chain (id, prev, version) as (
      select id, prev, version from journal
      where id = (select last from entities where entity = ?1) and entity = ?1
      union all
      select journal.id, journal.prev, journal.version from chain join journal on journal.id = chain.prev
      where chain.version > ?2 + 1 and journal.entity = ?1
    )`;

export const SQL = {
  snapshot: `select entity, version, format, text from snapshots where entity = ?`,
  recordsAbove: `${CHAIN}
    select entity, journal.version as version, count, format, text from chain join journal on journal.id = chain.id
    where journal.version + count - 1 > ?2`,
  idsAbove: `${CHAIN}
    select journal.id as id, journal.version as version from chain join journal on journal.id = chain.id
    where journal.version + count - 1 > ?2`,
  journalRecord: `select entity, version, count, format, text from journal where id = ?`,
  wake: `select wake_at_ms as atMs from entities where entity = ? and wake_at_ms is not null`,
  due: `
    select entity, wake_at_ms as atMs from entities
    where wake_at_ms <= ?1 and (wake_at_ms, entity) > (?2, ?3) order by wake_at_ms, entity limit ?4`,
  version: `select next_version - 1 as version from entities where entity = ? and last is not null`,
  record: `
    select text from records
    where scope = ?1 and hash = ?2 and not exists (select 1 from purges where purges.entity = ?1)`,
  hasRecord: `
    select 1 from records
    where scope = ?1 and hash = ?2 and not exists (select 1 from purges where purges.entity = ?1)`,
  newest: `select version, hash from published where name = ? and is_gone = 0 order by version desc limit 1`,
  byVersion: `select version, hash from published where name = ? and version = ? and is_gone = 0`,
  byHash: `select version, hash from published where name = ? and hash = ? and is_gone = 0`,
  versions: `select version, hash from published where name = ? and is_gone = 0 order by version desc limit ?`,
  headers: `
    select ${HEADER} from entities
    where (created_at_ms, entity) < (?1, ?2) and created_at_ms >= ?3
      and (?4 is null or class = ?4) and (?5 is null or workflow = ?5)
    order by created_at_ms desc, entity desc limit ?6`,
  header: `select ${HEADER} from entities where entity = ? and class is not null`,
  deadLetters: `
    select id, class, queue, entity, at_ms as atMs, text from dead_letters
    where (at_ms, id) < (?1, ?2)
      and (?3 is null or queue = ?3) and (?4 is null or class = ?4) and (?5 is null or entity = ?5)
    order by at_ms desc, id desc limit ?6`,
  deadLetter: `select id, class, queue, entity, at_ms as atMs, text from dead_letters where id = ?`,
  countDeadLetters: `select count(*) as count from dead_letters`,
  listing: `
    select list, id, entity, at_ms as atMs, text from listings
    where list = ? and (at_ms, id) < (?, ?) order by at_ms desc, id desc limit ?`,
  listed: `select list, id, entity, at_ms as atMs, text from listings where list = ? and id = ?`,
  // Of the rows with one name SQLite answers the one that has the maximum.
  workflows: `
    select name, max(version) as version, hash from published
    where is_gone = 0 and (?1 is null or name > ?1) group by name order by name limit ?2`,
};

/** 8 MiB, as the writer's. */
const CACHE = `pragma cache_size = -8192`;

/** Everything the store is asked, on a connection that cannot write. */
export class FileReader {
  readonly #db: Database;
  /** What a journal that is loaded in parts has left: the records from `at` on. */
  #rest:
    | { readonly entity: EntityKey; readonly above: number; readonly ids: readonly number[]; readonly at: number }
    | undefined;

  constructor(file: string) {
    this.#db = new Database(file, { readOnly: true });
    this.#db.script(CACHE);
  }

  /** All as it was at one moment: the writer goes on meanwhile. */
  load(requests: readonly LoadRequest[]): readonly Loaded[] {
    this.#db.script("begin");
    try {
      return requests.map((request) => this.#loadOne(request));
    } finally {
      this.#db.rollback();
    }
  }

  due(beforeMs: number, limit: number, after: Wake | undefined): readonly Wake[] {
    const { atMs, entity } = after ?? { atMs: Number.MIN_SAFE_INTEGER, entity: "" };
    return this.#db.all<Wake>(SQL.due, beforeMs, atMs, entity, limit);
  }

  version(entity: EntityKey): number {
    return this.#db.get<{ version: number }>(SQL.version, entity)?.version ?? 0;
  }

  records(keys: readonly RecordKey[]): readonly (string | null)[] {
    return keys.map(({ scope, hash }) => this.#db.get<{ text: string }>(SQL.record, scope, hash)?.text ?? null);
  }

  hasRecord({ scope, hash }: RecordKey): boolean {
    return this.#db.get(SQL.hasRecord, scope, hash) !== undefined;
  }

  published(name: string, version: number | string | undefined): Published | null {
    if (version === undefined) return this.#db.get<Published>(SQL.newest, name) ?? null;
    return this.#db.get<Published>(typeof version === "number" ? SQL.byVersion : SQL.byHash, name, version) ?? null;
  }

  versions(name: string): readonly Published[] {
    return this.#db.all<Published>(SQL.versions, name, MAX_VERSIONS);
  }

  headers(
    { atMs, key }: PlaceInTime,
    sinceMs: number,
    wanted: HeaderClass | null,
    workflow: string | null,
    limit: number,
  ): readonly Header[] {
    return this.#db.all<Header>(SQL.headers, atMs, key, sinceMs, wanted, workflow, limit);
  }

  header(entity: EntityKey): Header | null {
    return this.#db.get<Header>(SQL.header, entity) ?? null;
  }

  deadLetters(
    { atMs, key }: PlaceInTime,
    queue: string | null,
    wanted: DeadLetter["class"] | null,
    entity: EntityKey | null,
    limit: number,
  ): readonly DeadLetter[] {
    return this.#db.all<DeadLetter>(SQL.deadLetters, atMs, key, queue, wanted, entity, limit);
  }

  deadLetter(id: string): DeadLetter | null {
    return this.#db.get<DeadLetter>(SQL.deadLetter, id) ?? null;
  }

  countDeadLetters(): number {
    return this.#db.get<{ count: number }>(SQL.countDeadLetters)!.count;
  }

  listing(list: string, { atMs, key }: PlaceInTime, limit: number): readonly Listed[] {
    return this.#db.all<Listed>(SQL.listing, list, atMs, key, limit);
  }

  listed(list: string, id: string): Listed | null {
    return this.#db.get<Listed>(SQL.listed, list, id) ?? null;
  }

  workflows(after: string | null, limit: number): readonly PublishedWorkflow[] {
    return this.#db.all<PublishedWorkflow>(SQL.workflows, after, limit);
  }

  close(): void {
    this.#db.close();
  }

  /** The oldest of them, one at least. */
  #someAbove(entity: EntityKey, above: number, maxChars: number): readonly JournalRecord[] {
    const found: JournalRecord[] = [];
    let chars = 0;
    // The chain goes from the newest back: whoever goes on with the next part has it walked once, not once a part.
    const rest = this.#rest?.entity === entity && this.#rest.above === above ? this.#rest : undefined;
    const ids = rest?.ids ?? sortedIds(this.#db.all<{ id: number; version: number }>(SQL.idsAbove, entity, above));
    let at = rest?.at ?? 0;
    let next = above + 1;
    for (; at < ids.length && chars <= maxChars; at++) {
      const record = this.#db.get<JournalRecord>(SQL.journalRecord, ids[at]!);
      // It was removed meanwhile, or is another's by now.
      if (record?.entity !== entity || ((found.length > 0 || rest !== undefined) && record.version !== next)) {
        this.#rest = undefined;
        return rest === undefined ? found : this.#someAbove(entity, above, maxChars);
      }
      chars += record.text.length;
      next = record.version + record.count;
      found.push(record);
    }
    this.#rest = at < ids.length ? { entity, above: next - 1, ids, at } : undefined;
    return found;
  }

  #loadOne({ entity, aboveVersion, maxChars }: LoadRequest): Loaded {
    const snapshot = aboveVersion === undefined ? (this.#db.get<Snapshot>(SQL.snapshot, entity) ?? null) : null;
    const above = aboveVersion ?? snapshot?.version ?? 0;
    const found =
      maxChars === undefined
        ? this.#db.all<JournalRecord>(SQL.recordsAbove, entity, above)
        : this.#someAbove(entity, above, maxChars);
    const records = found.toSorted((a, b) => a.version - b.version);
    const wakeAtMs = this.#db.get<{ atMs: number }>(SQL.wake, entity)?.atMs ?? null;
    return { entity, snapshot, records, wakeAtMs };
  }
}

function sortedIds(rows: readonly { readonly id: number; readonly version: number }[]): readonly number[] {
  return rows.toSorted((a, b) => a.version - b.version).map(({ id }) => id);
}
