import type { Published, PutOutcome, RecordKey, Records, Registration, StoredRecord } from "../../store/contract.ts";
import { MAX_VERSIONS } from "../../store/page.ts";
import { are, is } from "./by-index.ts";
import { whyRefused } from "./faults.ts";
import { columns, rows } from "./database.ts";
import { mayBeText } from "./encoding.ts";
import type { Postgres } from "./postgres.ts";
import { finishPurges } from "./purge.ts";

/** A reply nobody has fetched by now is fetched by nobody: its process is gone. */
const REPLY_TTL_MS = 3_600_000;

export const SQL = {
  // In order, so that two who put the same records do not lock each other out. Answers which scopes are still being purged.
  put: `
    with pending as materialized (select entity from purges where entity = any ($1)),
      put as (
        insert into records (scope, hash, text)
        select * from unnest($1::text[], $2::text[], $3::text[]) as record (scope, hash, text)
        order by scope, hash
        on conflict do nothing
      )
    select entity from pending`,
  get: `
    select place, text from unnest($1::text[], $2::text[]) with ordinality as key (scope, hash, place)
    join records on ${are(["records.scope", "records.hash"], ["key.scope", "key.hash"])}
    where not exists (select from purges where ${is("entity", "key.scope")})`,
  lockName: `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
  publish: `
    insert into published (name, hash, version)
    values ($1, $2, (select coalesce(max(version), 0) + 1 from published where name = $1))
    on conflict (name, hash) do update set is_gone = false returning version`,
  newest: `
    select version, hash from published where name = $1 and not is_gone order by version desc limit 1`,
  byVersion: `select version, hash from published where name = $1 and version = $2::integer and not is_gone`,
  byHash: `select version, hash from published where name = $1 and hash = $2::text and not is_gone`,
  versions: `select version, hash from published where name = $1 and not is_gone order by version desc limit $2`,
  // The rows stay: a number is never used for another content.
  unpublish: `update published set is_gone = true where name = $1`,
  register: `
    insert into registrations (process, role, text, until_ms, knows_packs_until_ms)
    select $1, $2, $3, moment.now_ms + $4, moment.now_ms + $4 from (select lease_ms() as now_ms) as moment
    on conflict (process) do update set role = excluded.role, text = excluded.text, until_ms = excluded.until_ms,
      knows_packs_until_ms = excluded.knows_packs_until_ms`,
  registered: `select process, role, text from registrations where until_ms > (select lease_ms())`,
  forgetDead: `delete from registrations where until_ms <= (select lease_ms())`,
  // The oldest come first, and what is beyond a thousand goes the next time.
  forgetReplies: `
    delete from replies using (select id from replies order by id limit 1000) as oldest
    where ${is("replies.id", "oldest.id")} and at_ms < (select wall_ms()) - $1`,
};

export class PostgresRecords implements Records {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async put(records: readonly StoredRecord[], options?: { readonly refusable: boolean }): Promise<PutOutcome> {
    try {
      if (records.length > 0) await this.#put(records);
      return "stored";
    } catch (error) {
      if (options?.refusable === true && whyRefused(error) !== undefined) return "refused";
      throw error;
    }
  }

  async get(keys: readonly RecordKey[]): Promise<readonly (string | null)[]> {
    const values = columns(keys, "scope", "hash");
    const found = await rows<{ place: number; text: string }>(this.#postgres.database, SQL.get, values);
    const texts = new Map(found.map(({ place, text }) => [place, text]));
    return keys.map((_, i) => texts.get(i + 1) ?? null);
  }

  async #put(records: readonly StoredRecord[]): Promise<void> {
    const { database } = this.#postgres;
    const values = columns(records, "scope", "hash", "text");
    const pending = await rows<{ entity: string }>(database, SQL.put, values);
    if (pending.length === 0) return;
    await database.transaction(async (connection) => {
      await finishPurges(
        connection,
        pending.map(({ entity }) => entity),
      );
      await connection.run(SQL.put, values);
    });
  }

  async publish(name: string, hash: string): Promise<number> {
    const { database } = this.#postgres;
    const [, published] = await database.atOnce([
      { sql: SQL.lockName, values: [name] },
      { sql: SQL.publish, values: [name, hash] },
    ]);
    return (published!.rows as readonly Published[])[0]!.version;
  }

  async published(name: string, version?: number | string): Promise<Published | null> {
    const { database } = this.#postgres;
    if (!mayBeText(name) || (version !== undefined && !mayBeVersion(version))) return null;
    const [found] =
      version === undefined
        ? await rows<Published>(database, SQL.newest, [name])
        : await rows<Published>(database, typeof version === "number" ? SQL.byVersion : SQL.byHash, [name, version]);
    return found ?? null;
  }

  async versions(name: string): Promise<readonly Published[]> {
    if (!mayBeText(name)) return [];
    return rows<Published>(this.#postgres.database, SQL.versions, [name, MAX_VERSIONS]);
  }

  async unpublish(name: string): Promise<void> {
    await this.#postgres.database.atOnce([
      { sql: SQL.lockName, values: [name] },
      { sql: SQL.unpublish, values: [name] },
    ]);
  }

  async register({ process, role, text }: Registration, ttlMs: number): Promise<void> {
    const { database } = this.#postgres;
    await database.run(SQL.forgetDead);
    await database.run(SQL.forgetReplies, [REPLY_TTL_MS]);
    await database.run(SQL.register, [process, role, text, ttlMs]);
  }

  async registered(): Promise<readonly Registration[]> {
    return rows<Registration>(this.#postgres.database, SQL.registered);
  }
}

const MAX_INTEGER = 2_147_483_647;

/** Any other is no version of anything, and the server would not even look. */
function mayBeVersion(version: number | string): boolean {
  if (typeof version === "string") return mayBeText(version);
  return Number.isInteger(version) && version > 0 && version <= MAX_INTEGER;
}
