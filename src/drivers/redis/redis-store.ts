import type { Host } from "../../host/host.ts";
import type { Capabilities, Store } from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
import { Connection, type Line } from "./connection.ts";
import { RedisInbox } from "./inbox.ts";
import { RedisJournal } from "./journal.ts";
import { KnownPartitions } from "./known-partitions.ts";
import { RedisPartitions } from "./partitions.ts";
import { RedisQueries } from "./queries.ts";
import { RedisRecords } from "./records.ts";
import { keyOf, type Redis, StoreClock } from "./redis.ts";
import { callOf, runScript, scripts } from "./scripts.ts";
import { Seats } from "./seats.ts";
import { checkServer, makeAofWhole, readFacts } from "./server.ts";
import { RedisTasks } from "./tasks.ts";
import { upgrade } from "./upgrade.ts";
import { VersionHints } from "./version-hints.ts";
import { Waiting } from "./waiting.ts";
import { WatchedStanding } from "./watched-standing.ts";

export interface RedisOptions {
  /** `redis://`, or `rediss://` with TLS; user, password and the number of the database as usual. */
  readonly url: string;
  /** For waiting and for names; the store's clock is the server's. */
  readonly host: Host;
  /** In front of every key. */
  readonly prefix?: string;
  /** Only this very store: none is made where it is not. */
  readonly incarnation?: string;
  /** Only a store that is there: STORE_MISSING where there is none. */
  readonly existing?: boolean;
  /** Fixed when the store is created. */
  readonly partitions?: number;
  readonly maxInbox?: number;
  /** Commits with so many records, and those that follow, are transactions where they need no script; Infinity for never. */
  readonly transactionsFrom?: number;
  /** How long connecting may take. */
  readonly connectMs?: number;
  /** How long a command may go unanswered before its outcome is unknown. */
  readonly commandMs?: number;
}

/** How keys and values are laid out. A store of a higher number was written by a later release. */
const FORMAT = 2;

/** One diamond under way has one in a commit; a flood of them hundreds. */
const FLOOD_RECORDS = 16;

export async function openRedis(options: RedisOptions): Promise<Store> {
  const { url, host, prefix = "millrace", partitions = 32, maxInbox = 10_000 } = options;
  const { connectMs = 10_000, commandMs = 5_000 } = options;
  const identity = new Identity(prefix, options.incarnation);
  const lose = (told?: string): StoreError => {
    const loss = identity.lose(told);
    connection.end(loss);
    return loss;
  };
  const connection = new Connection({ url, host, connectMs, commandMs }, async (line) => {
    const facts = await readFacts(line);
    checkServer(facts);
    if (!(await identity.isThere(line))) throw lose();
    await makeAofWhole(line, host, facts);
  });
  try {
    const fresh = options.existing === true ? undefined : host.id();
    const incarnation = await identity.find(await connection.line(), fresh, partitions);
    const waiting = new Waiting(connection, host, commandMs);
    const clock = new StoreClock(host);
    const limits = { partitionCount: partitions, maxInbox };
    const shared = { connection, waiting, seats: new Seats(), host, prefix, incarnation, clock, lose, ...limits };
    return new RedisStore(shared, identity.lost, options.transactionsFrom ?? FLOOD_RECORDS);
  } catch (error) {
    connection.close();
    throw error;
  }
}

const NOT_HERE =
  "Redis does not have the store that was opened here: its data was removed, or another server answers. " +
  "Nothing was written since; start again when the data is back";

/** What create.lua says is there. Without an incarnation it is of format 1, or is being brought up to date. */
type Found = readonly [
  incarnation: string | null,
  partitions: string | null,
  format: string | null,
  ofFormat1: string | null,
];

/** Which store is there: drawn when it was made, and looked at by every connection and every script. */
class Identity {
  readonly lost: Promise<StoreError>;
  readonly #key: string;
  readonly #tell: (error: StoreError) => void;
  #incarnation: string | undefined;
  #loss: StoreError | undefined;

  constructor(prefix: string, incarnation: string | undefined) {
    this.#incarnation = incarnation;
    this.#key = keyOf({ prefix }, "store");
    const { promise, resolve } = Promise.withResolvers<StoreError>();
    this.lost = promise;
    this.#tell = resolve;
  }

  /** Where there is none, it is made with the fresh incarnation, if there is one. */
  async find(line: Line, fresh: string | undefined, partitions: number): Promise<string> {
    const prefix = this.#key.slice(0, -":store".length);
    const found = await this.#look(line, fresh, partitions);
    const [, count, format, incarnationBefore] = found;
    if (fresh === undefined && incarnationBefore === null)
      throw new StoreError("STORE_MISSING", "There is no store in this Redis");
    if (incarnationBefore === null || format === null)
      throw new StoreError("STORE_INVALID", `${this.#key} is not a store`);
    if (Number(format) > FORMAT) {
      const told = `The store has format ${format}, written by a later release; this one knows ${FORMAT}`;
      throw new StoreError("STORE_TOO_NEW", told);
    }
    if (Number(count) !== partitions) {
      const told = `The store was created with ${count} partitions, not ${partitions}, and that never changes`;
      throw new StoreError("STORE_INVALID", told);
    }
    if (found[0] === null) await upgrade(line, prefix, FORMAT);
    const [incarnation] = found[0] === null ? await this.#look(line, undefined, partitions) : found;
    if (incarnation === null) throw new StoreError("STORE_INVALID", `${this.#key} is not a store`);
    this.#incarnation = incarnation;
    return incarnation;
  }

  #look(line: Line, fresh: string | undefined, partitions: number): Promise<Found> {
    const prefix = this.#key.slice(0, -":store".length);
    const call = callOf(scripts.create, prefix, fresh ?? "", String(partitions), String(FORMAT));
    return runScript<Found>(line, scripts.create, call);
  }

  /** Or there is none yet that could be gone. */
  async isThere(line: Line): Promise<boolean> {
    if (this.#incarnation === undefined) return true;
    // One of format 1, or one that is being brought up to date, has it elsewhere.
    const fields = ["id", "upgrading", "incarnation"];
    const [id, upgrading, old] = await line.send<readonly (string | null)[]>(["HMGET", this.#key, ...fields]);
    return (id ?? upgrading ?? old) === this.#incarnation;
  }

  /** What was acknowledged is gone, and with it the ground for every decision: nothing goes on. */
  lose(told = NOT_HERE): StoreError {
    this.#loss ??= new StoreError("STORE_LOST", told);
    this.#tell(this.#loss);
    return this.#loss;
  }
}

class RedisStore implements Store {
  readonly capabilities: Capabilities;
  readonly partitions: RedisPartitions;
  readonly inbox: RedisInbox;
  readonly journal: RedisJournal;
  readonly tasks: RedisTasks;
  readonly records: RedisRecords;
  readonly queries: RedisQueries;
  readonly lost: Promise<StoreError>;
  readonly #redis: Redis;
  readonly #hints: VersionHints;

  constructor(redis: Redis, lost: Promise<StoreError>, floodRecords: number) {
    this.#redis = redis;
    this.lost = lost;
    this.#hints = new VersionHints(redis.connection.subscriber(), redis.host, (partition) =>
      keyOf(redis, "commits", partition),
    );
    this.capabilities = {
      name: "redis",
      partitionCount: redis.partitionCount,
      incarnation: redis.incarnation,
      volatileTasks: false,
      volatileInbox: false,
      maxBatchEntries: 500,
      maxBatchBytes: 256 * 1024,
    };
    const known = new KnownPartitions();
    const standing = new WatchedStanding();
    this.partitions = new RedisPartitions(redis, known, standing);
    this.tasks = new RedisTasks(redis);
    const { handOver } = this.tasks;
    this.inbox = new RedisInbox(redis, handOver);
    this.journal = new RedisJournal(redis, { hints: this.#hints, tasks: this.tasks, known, standing, floodRecords });
    this.records = new RedisRecords(redis);
    this.queries = new RedisQueries(redis);
  }

  async close(): Promise<void> {
    this.#redis.waiting.close();
    this.tasks.handOver.close();
    this.#hints.close();
    this.#redis.connection.close();
  }
}
