import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { Client } from "pg";
import { startPostgresServer } from "../../scripts/services/postgres.ts";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import type { MortalService } from "../../scripts/services/service.ts";
import { openPostgresArchive } from "../../src/drivers/postgres/archive.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Archive } from "../../src/store/archive.ts";
import type { Store } from "../../src/store/contract.ts";

/** The last is a Redis with an archive in Postgres behind it. */
export const STORE_KINDS = ["redis", "postgres", "redis-postgres"] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

/** Few enough that each has something to do in a short world. */
export const PARTITIONS = 8;

/** What the store itself has noted, in the step that made it true. `wallMs` is by the calendar. */
export type Noted = { readonly wallMs: number; readonly partition: number; readonly epoch: number } & (
  | { readonly kind: "commit"; readonly nonce: string; readonly seq: number; readonly batch: string }
  | { readonly kind: "acquired"; readonly nonce: string; readonly owner: string }
);

/** A server that can die. */
interface Mortal {
  readonly service: MortalService;
  /** Its address for those who go by this port. */
  url(port: number): string;
  /** Ends that it must survive without losing what it has acknowledged. */
  readonly ends: readonly (readonly [name: string, signal: NodeJS.Signals])[];
}

/** A store that all processes of a world share. */
export interface SharedStore extends Mortal {
  readonly kind: StoreKind;
  readonly archive?: Mortal & { open(): Archive };
  /** Whether a stop of its main process is a stop of all of it. */
  readonly canPause: boolean;
  open(): Promise<Store>;
  /** In the order in which it happened, partition by partition. */
  noted(): Promise<readonly Noted[]>;
  /** Everything in it is gone; answers what it had noted until then. */
  lose?(how: LossKind): Promise<readonly Noted[]>;
}

/** How a Redis loses everything. */
export const LOSSES = ["FLUSHALL", "kill -9 and an empty disk"] as const;
export type LossKind = (typeof LOSSES)[number];

export async function startStore(kind: StoreKind): Promise<SharedStore> {
  if (kind === "postgres") return startSharedPostgres();
  const redis = await startSharedRedis();
  if (kind === "redis") return redis;
  const service = await startPostgresServer();
  const open = (): Archive => openPostgresArchive({ url: service.url, host: nodeHost });
  return { ...redis, kind, archive: { service, ends: POSTGRES_ENDS, url: postgresUrl, open } };
}

const POSTGRES_ENDS = [
  ["fast shutdown", "SIGINT"],
  ["immediate shutdown", "SIGQUIT"],
] as const;

function postgresUrl(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

type ScriptNote = readonly [kind: string, seconds: string, micros: string, partition: string, ...(readonly string[])];

async function startSharedRedis(): Promise<SharedStore> {
  const service = await startOwnRedis();
  const open = (): Promise<Store> => openRedis({ url: service.url, host: nodeHost, partitions: PARTITIONS });
  // Made by one: whoever comes later finds it.
  await (await open()).close();
  return {
    kind: "redis",
    service,
    url: (port) => `redis://127.0.0.1:${port}`,
    ends: [
      ["SIGTERM", "SIGTERM"],
      ["kill -9", "SIGKILL"],
    ],
    canPause: true,
    open,
    noted: () => notedIn(service.url),
    lose: async (how) => {
      if (how === "FLUSHALL") return notedIn(service.url, "and forget");
      await service.end("SIGKILL");
      // What it had noted is read by another, which nobody else knows of.
      const heir = await startOwnRedis({ dir: service.folder });
      const noted = await notedIn(heir.url);
      await heir.stop();
      for (const name of await readdir(service.folder)) await rm(join(service.folder, name), { recursive: true });
      await service.begin();
      return noted;
    },
  };
}

const WITNESS = "millrace:witness";

/** What the scripts of a Redis have noted. Whatever it forgets with that is gone in the same step. */
async function notedIn(url: string, andThen?: "and forget"): Promise<readonly Noted[]> {
  const client = createClient({ url });
  await client.connect();
  const reading = client.multi().lRange(WITNESS, 0, -1);
  const [texts] = await (andThen === undefined ? reading : reading.flushAll()).exec();
  client.destroy();
  return (texts as unknown as readonly string[]).map((text): Noted => {
    const [kind, seconds, micros, partition, ...rest] = JSON.parse(text) as ScriptNote;
    const [epoch, nonce, third, batch] = rest;
    const moment = { wallMs: Number(seconds) * 1_000 + Number(micros) / 1_000, partition: Number(partition) };
    if (kind === "acquired") return { ...moment, kind, epoch: Number(epoch), nonce: nonce!, owner: third! };
    return { ...moment, kind: "commit", epoch: Number(epoch), nonce: nonce!, seq: Number(third), batch: batch! };
  });
}

const WITNESS_SQL = `
  create table millrace.witness (
    id bigint generated always as identity primary key,
    wall_ms double precision not null,
    kind text not null,
    partition integer not null,
    epoch bigint not null,
    nonce text not null,
    seq bigint not null,
    batch text,
    owner text not null
  );
  create function millrace.take_note() returns trigger language plpgsql as $$
  declare
    kind text := case
      when new.seq <> old.seq then 'commit'
      when new.nonce is not null and new.nonce is distinct from old.nonce then 'acquired'
    end;
  begin
    if kind is not null then
      insert into millrace.witness (wall_ms, kind, partition, epoch, nonce, seq, batch, owner)
      values (extract(epoch from clock_timestamp()) * 1000, kind, new.id, new.epoch, new.nonce, old.seq, new.last_batch, new.owner);
    end if;
    return null;
  end $$;
  create trigger takes_note after update on millrace.partitions for each row execute function millrace.take_note();
`;

async function startSharedPostgres(): Promise<SharedStore> {
  const service = await startPostgresServer();
  const open = (): Promise<Store> => openPostgres({ url: service.url, host: nodeHost, partitions: PARTITIONS });
  await (await open()).close();
  await query(service.url, WITNESS_SQL);
  return {
    kind: "postgres",
    service,
    url: postgresUrl,
    ends: POSTGRES_ENDS,
    canPause: false,
    open,
    noted: async () => {
      const rows = await query(
        service.url,
        `select wall_ms as "wallMs", kind, partition, epoch::integer, nonce, seq::integer, batch, owner
         from millrace.witness order by id`,
      );
      return rows as readonly Noted[];
    },
  };
}

async function query(url: string, sql: string): Promise<readonly object[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<object>(sql)).rows;
  } finally {
    await client.end();
  }
}
