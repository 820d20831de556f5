import { existsSync } from "node:fs";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import { shownAddress, type StoreAddress } from "../settings/store-address.ts";
import type { Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";

/** How many partitions a store has, where that is not asked for: SQLite and memory have one owner. */
const SHARED_PARTITIONS = 32;
/** Longer than any command takes; about the lease of a partition, so that an owner hears in time that it hears nothing. */
const LONGEST_COMMAND_MS = 5_000;

/** The settings that opening a store takes, whatever store it is. */
export type StoreSettings = Pick<
  Settings,
  | "partitions"
  | "redisSocketTimeout"
  | "postgresSchema"
  | "postgresMaxConnections"
  | "postgresConnectTimeout"
  | "postgresStatementTimeout"
>;

export type OpenOptions = StoreSettings & {
  readonly host: Host;
  /** Only the store that has this one, where stores have one: none is made in its place. */
  readonly incarnation?: string | undefined;
  /** Only one that is there: STORE_MISSING where there is none. One in memory never is. */
  readonly existing?: boolean;
  /** Told what somebody should look at, though the store works. */
  readonly warn?: (told: string) => void;
};

/** Opens a store. Each driver and its client are loaded only when they are needed. */
export async function openStore(address: StoreAddress, options: OpenOptions): Promise<Store> {
  const { host, partitions = SHARED_PARTITIONS, existing = false } = options;
  switch (address.kind) {
    case "memory": {
      const { openMemory } = await import("../drivers/memory/memory-store.ts");
      return openMemory({ host, exclusive: true });
    }
    case "sqlite": {
      if (existing && !existsSync(address.file)) {
        throw new StoreError("STORE_MISSING", `There is no store at ${shownAddress(address)}`);
      }
      const { openSqlite } = await import("../drivers/sqlite/sqlite-store.ts");
      return openSqlite({ host, file: address.file });
    }
    case "postgres": {
      const { openPostgres } = await import("../drivers/postgres/postgres-store.ts");
      return openPostgres({
        host,
        url: address.url,
        partitions,
        existing,
        schema: options.postgresSchema,
        maxConnections: options.postgresMaxConnections,
        connectMs: options.postgresConnectTimeout * 1_000,
        statementMs: options.postgresStatementTimeout * 1_000,
        ...(options.warn !== undefined && { warn: options.warn }),
      });
    }
    case "redis": {
      const { openRedis } = await import("../drivers/redis/redis-store.ts");
      const connectMs = options.redisSocketTimeout * 1_000;
      const commandMs = Math.min(connectMs, LONGEST_COMMAND_MS);
      const { incarnation } = options;
      const only = incarnation === undefined ? {} : { incarnation };
      return openRedis({ host, url: address.url, partitions, existing, connectMs, commandMs, ...only });
    }
  }
}

/** The same settings without the others, as they can be handed to a thread. */
export function storeSettings(settings: StoreSettings): StoreSettings {
  const { partitions, redisSocketTimeout, postgresSchema, postgresMaxConnections } = settings;
  const { postgresConnectTimeout, postgresStatementTimeout } = settings;
  const timeouts = { redisSocketTimeout, postgresConnectTimeout, postgresStatementTimeout };
  return { partitions, postgresSchema, postgresMaxConnections, ...timeouts };
}

/** One process has all of it: its queues are in its own memory, and nobody else can be asked to do its work. */
export function isOwnStore({ kind }: StoreAddress): boolean {
  return kind === "memory" || kind === "sqlite";
}
