import { createClient, type RedisClientType } from "@redis/client";
import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { BlockingClients } from "./blocking-clients.ts";
import { RedisInbox } from "./inbox.ts";
import { RedisJournal } from "./journal.ts";
import { RedisPartitions } from "./partitions.ts";
import { RedisQueries } from "./queries.ts";
import { RedisRecords } from "./records.ts";
import type { Redis } from "./redis.ts";
import { RedisTasks } from "./tasks.ts";
import { VersionHints } from "./version-hints.ts";

export interface RedisOptions {
  readonly url: string;
  /** For waiting and for names; the store's clock is the server's. */
  readonly host: Host;
  /** In front of every key. */
  readonly prefix?: string;
  /** Fixed when the store is created. */
  readonly partitions?: number;
  readonly maxInbox?: number;
  /** How long connecting may take. */
  readonly connectMs?: number;
}

const LONGEST_PAUSE_MS = 1000;

export async function openRedis(options: RedisOptions): Promise<Store> {
  const { url, host, prefix = "millrace", partitions = 32, maxInbox = 10_000, connectMs = 10_000 } = options;
  let wasUp = false;
  // A server that was never there is an error of whoever opens; one that goes away comes back.
  const reconnectStrategy = (retries: number, cause: Error): number | Error =>
    wasUp ? Math.min(50 * 2 ** retries, LONGEST_PAUSE_MS) : cause;
  const client: RedisClientType = createClient({ url, socket: { reconnectStrategy, connectTimeout: connectMs } });
  // A connection that breaks is made again; whoever had a command under way on it hears of it.
  client.on("error", () => {});
  await client.connect();
  wasUp = true;
  const blocking = new BlockingClients(client, host);
  const redis: Redis = { client, blocking, host, prefix, partitionCount: partitions, maxInbox };
  try {
    await create(redis);
  } catch (error) {
    client.destroy();
    throw error;
  }
  return new RedisStore(redis);
}

async function create({ client, host, prefix, partitionCount }: Redis): Promise<void> {
  await client.hSetNX(`${prefix}:store`, "incarnation", host.id());
  await client.hSetNX(`${prefix}:store`, "partitions", String(partitionCount));
  const created = Number(await client.hGet(`${prefix}:store`, "partitions"));
  if (created === partitionCount) return;
  throw new Error(`the store was created with ${created} partitions, not ${partitionCount}`);
}

class RedisStore implements Store {
  readonly capabilities: Capabilities;
  readonly partitions: RedisPartitions;
  readonly inbox: RedisInbox;
  readonly journal: RedisJournal;
  readonly tasks: RedisTasks;
  readonly records: RedisRecords;
  readonly queries: RedisQueries;
  readonly #redis: Redis;
  readonly #hints: VersionHints;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#hints = new VersionHints(redis.client, redis.host);
    this.capabilities = {
      name: "redis",
      partitionCount: redis.partitionCount,
      volatileTasks: false,
      volatileInbox: false,
      maxBatchEntries: 500,
      maxBatchBytes: 256 * 1024,
    };
    this.partitions = new RedisPartitions(redis);
    this.inbox = new RedisInbox(redis);
    this.journal = new RedisJournal(redis, this.#hints);
    this.tasks = new RedisTasks(redis);
    this.records = new RedisRecords(redis);
    this.queries = new RedisQueries(redis);
  }

  async close(): Promise<void> {
    this.#redis.blocking.close();
    this.#hints.close();
    if (this.#redis.client.isOpen) this.#redis.client.destroy();
  }
}
