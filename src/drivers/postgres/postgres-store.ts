import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { PostgresInbox } from "./inbox.ts";
import { PostgresJournal } from "./journal.ts";
import { faultOf } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import { LONG_MS, LongTransactionWatch } from "./long-transactions.ts";
import { migrate } from "./migrations.ts";
import { PostgresPartitions } from "./partitions.ts";
import type { Postgres } from "./postgres.ts";
import { PostgresQueries } from "./queries.ts";
import { PostgresRecords } from "./records.ts";
import { Seats } from "./seats.ts";
import { PostgresTasks } from "./tasks.ts";
import { WakeUps } from "./wake-ups.ts";
import { WatchedEntities } from "./watched.ts";

export interface PostgresOptions {
  readonly url: string;
  /** For waiting and for names; the store's clock is the server's. */
  readonly host: Host;
  /** Everything is in this one; made if it is not there. */
  readonly schema?: string;
  /** Only a store that is there: STORE_MISSING where there is none. */
  readonly existing?: boolean;
  /** Fixed when the store is created. */
  readonly partitions?: number;
  readonly maxInbox?: number;
  readonly maxConnections?: number;
  /** How long connecting may take. */
  readonly connectMs?: number;
  /** How long the server may work on one statement, or wait for a lock. */
  readonly statementMs?: number;
  /** Told of what slows the store down, such as a transaction that somebody left open. Nobody looks without it. */
  readonly warn?: (told: string) => void;
  /** How long one may be open before somebody is told. */
  readonly longTransactionMs?: number;
}

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, host, schema = "millrace", partitions = 32, maxInbox = 10_000 } = options;
  const { maxConnections = 8, connectMs = 10_000, statementMs = 10_000 } = options;
  const settings = { url, schema, maxConnections, connectMs, statementMs };
  const incarnation = await migrateStore(settings, host, partitions, options.existing === true);
  const database = new Database(host, settings);
  try {
    const wakeUps = new WakeUps(host, settings, incarnation);
    wakeUps.send = ({ sql, values }) => database.run(sql, values);
    await wakeUps.connect();
    const fleet = new Fleet(host, database);
    await fleet.look();
    const { warn, longTransactionMs = LONG_MS } = options;
    const watch = warn && new LongTransactionWatch(host, database, warn, longTransactionMs);
    return new PostgresStore(
      { database, host, fleet, wakeUps, seats: new Seats(), watched: new WatchedEntities(), incarnation, maxInbox },
      partitions,
      watch,
    );
  } catch (error) {
    await database.close();
    throw faultOf(error);
  }
}

/** By a connection of its own, with time: another process may be at it, or there may be much to do. */
async function migrateStore(
  settings: DatabaseOptions,
  host: Host,
  partitions: number,
  existing: boolean,
): Promise<string> {
  const database = new Database(host, { ...settings, maxConnections: 1, statementMs: 0 });
  try {
    const fresh = existing ? undefined : host.id();
    return await migrate(database, settings.schema, partitions, fresh);
  } finally {
    await database.close();
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
  readonly #watch: LongTransactionWatch | undefined;

  constructor(postgres: Postgres, partitionCount: number, watch: LongTransactionWatch | undefined) {
    this.#postgres = postgres;
    this.#watch = watch;
    this.capabilities = {
      name: "postgres",
      partitionCount,
      incarnation: postgres.incarnation,
      volatileTasks: false,
      volatileInbox: false,
      maxBatchEntries: 1000,
      maxBatchBytes: 1024 * 1024,
    };
    this.partitions = new PostgresPartitions(postgres);
    this.tasks = new PostgresTasks(postgres);
    const { handOver } = this.tasks;
    this.inbox = new PostgresInbox(postgres, handOver);
    this.journal = new PostgresJournal(postgres, handOver);
    this.records = new PostgresRecords(postgres);
    this.queries = new PostgresQueries(postgres);
  }

  async close(): Promise<void> {
    this.#watch?.stop();
    this.tasks.errands.close();
    this.tasks.handOver.close();
    await this.#postgres.wakeUps.close();
    await this.#postgres.database.close();
  }
}
