import { Pool } from "pg";
import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { PostgresInbox } from "./inbox.ts";
import { PostgresJournal } from "./journal.ts";
import { migrate } from "./migrations.ts";
import { PostgresPartitions } from "./partitions.ts";
import { connectionConfig, type Postgres } from "./postgres.ts";
import { PostgresQueries } from "./queries.ts";
import { PostgresRecords } from "./records.ts";
import { PostgresTasks } from "./tasks.ts";
import { WakeUps } from "./wake-ups.ts";

export interface PostgresOptions {
  readonly url: string;
  /** For waiting and for names; the store's clock is the server's. */
  readonly host: Host;
  /** Everything is in this one; made if it is not there. */
  readonly schema?: string;
  /** Fixed when the store is created. */
  readonly partitions?: number;
  readonly maxInbox?: number;
  readonly maxConnections?: number;
}

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, host, schema = "millrace", partitions = 32, maxInbox = 10_000, maxConnections = 8 } = options;
  const config = connectionConfig(url, schema);
  const pool = new Pool({ ...config, max: maxConnections });
  // A connection that breaks while nobody uses it would end the process; whoever uses the next one hears of it.
  pool.on("error", () => {});
  try {
    const incarnation = await migrate(pool, schema, partitions, host.id());
    const wakeUps = new WakeUps(host, config, incarnation);
    await wakeUps.connect();
    return new PostgresStore({ pool, host, wakeUps, incarnation, maxInbox }, partitions);
  } catch (error) {
    await pool.end();
    throw error;
  }
}

class PostgresStore implements Store {
  readonly capabilities: Capabilities;
  readonly partitions: PostgresPartitions;
  readonly inbox: PostgresInbox;
  readonly journal: PostgresJournal;
  readonly tasks: PostgresTasks;
  readonly records: PostgresRecords;
  readonly queries: PostgresQueries;
  readonly #postgres: Postgres;

  constructor(postgres: Postgres, partitionCount: number) {
    this.#postgres = postgres;
    this.capabilities = {
      name: "postgres",
      partitionCount,
      volatileTasks: false,
      volatileInbox: false,
      maxBatchEntries: 1000,
      maxBatchBytes: 1024 * 1024,
    };
    this.partitions = new PostgresPartitions(postgres);
    this.inbox = new PostgresInbox(postgres);
    this.journal = new PostgresJournal(postgres);
    this.tasks = new PostgresTasks(postgres);
    this.records = new PostgresRecords(postgres);
    this.queries = new PostgresQueries(postgres);
  }

  async close(): Promise<void> {
    await this.#postgres.wakeUps.close();
    if (!this.#postgres.pool.ending) await this.#postgres.pool.end();
  }
}
