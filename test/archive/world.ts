import { Client } from "pg";
import type { Service } from "../../scripts/services/service.ts";
import { openPostgresArchive } from "../../src/drivers/postgres/archive.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Archive } from "../../src/store/archive.ts";
import type { Store } from "../../src/store/contract.ts";
import { TestApi, type TestApiOptions } from "../support/api.ts";
import { postgresService, redisService } from "../support/services.ts";

/** A Redis store with a Postgres archive behind it, both real, and processes on it that a test starts and stops. */
export class ArchiveWorld {
  readonly prefix = `test-archive-${nodeHost.id()}`;
  readonly schema = `archive_${nodeHost.id().replaceAll("-", "_").toLowerCase()}`;
  readonly redis: Service;
  readonly postgres: Service;
  store: Store;
  archive: Archive;
  readonly #apis: TestApi[] = [];

  private constructor(redis: Service, postgres: Service, store: Store) {
    this.redis = redis;
    this.postgres = postgres;
    this.store = store;
    this.archive = this.openArchive();
  }

  static async open(): Promise<ArchiveWorld> {
    const [redis, postgres] = await Promise.all([redisService(), postgresService()]);
    const world = new ArchiveWorld(redis, postgres, undefined as never);
    world.store = await world.openStore();
    return world;
  }

  openStore(): Promise<Store> {
    return openRedis({ url: this.redis.url, prefix: this.prefix, host: nodeHost, partitions: 2 });
  }

  openArchive(): Archive {
    return openPostgresArchive({ url: this.postgres.url, schema: this.schema, host: nodeHost });
  }

  /** An engine that ships every 20 ms; what has ended stays for `keepMs`. */
  async api(
    options: Partial<TestApiOptions> & { readonly keepMs?: number; readonly windowMs?: number } = {},
  ): Promise<TestApi> {
    const { keepMs = 3_600_000, windowMs = 0, ...more } = options;
    const { store, archive } = this;
    const api = await TestApi.start({
      store,
      archive,
      shipping: { everyMs: 20, windowMs, keepMs },
      retentionMs: 3_600_000,
      ...more,
    });
    this.#apis.push(api);
    return api;
  }

  async sql<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const client = new Client({ connectionString: this.postgres.url, options: `-c search_path=${this.schema}` });
    await client.connect();
    try {
      return (await client.query(text, [...values])).rows as Row[];
    } finally {
      await client.end();
    }
  }

  async stopAll(): Promise<void> {
    for (const api of this.#apis.splice(0)) await api.close();
  }

  async close(): Promise<void> {
    await this.stopAll();
    await this.store.close();
    await this.archive.close();
    await this.sql(`drop schema if exists ${this.schema} cascade`);
    await Promise.all([this.redis.stop(), this.postgres.stop()]);
  }
}
