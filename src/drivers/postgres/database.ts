import type { Writable } from "node:stream";
import {
  type ClientBase,
  type ClientConfig,
  type CustomTypesConfig,
  Pool,
  type PoolClient,
  type QueryResult,
  types,
} from "pg";
import type { Host } from "../../host/host.ts";
import { StoreError } from "../../store/store-error.ts";
import { arrayLiteral, type Scalar } from "./encoding.ts";
import { faultOf, isCollision } from "./faults.ts";
import { OneFlight, type Prepared } from "./one-flight.ts";

/** A statement and its values. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** What runs a statement: the database by itself, or a connection in a transaction. */
export interface Connection {
  run(sql: string, values?: readonly unknown[]): Promise<QueryResult>;
}

export interface Transaction extends Connection {
  /** Several statements in one text, as a migration is written. */
  runScript(sql: string): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  readonly schema: string;
  readonly maxConnections: number;
  /** How long connecting may take. */
  readonly connectMs: number;
  /** How long the server may work on one statement, or wait for a lock; 0 = for ever. */
  readonly statementMs: number;
}

/** A server that says nothing at all is given up a little later than one that says it is too slow. */
const SILENCE = 1.5;
/** A process that was stopped within a transaction holds its locks no longer than this. */
const IDLE_IN_TRANSACTION_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
const MAX_TRIES = 5;
const GOODBYE_MS = 2_000;
/**
 * So much a socket takes at once. Of a longer flight a process that is stopped may have sent a part, and while the server waits for
 * the rest of what has no sync neither of its timeouts counts: what is locked stays locked.
 */
const MAX_FLIGHT_CHARS = 64 * 1024;

/**
 * Plans must not depend on statistics: a queue that was empty when they were taken is full a second later, and every
 * statement here has an index that it is made for. So each is planned once for a connection, and by that index.
 */
const PLANNING = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_indexonlyscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
};

/** Our 64-bit columns hold counters and milliseconds: numbers, not the strings that `pg` makes of them. */
const numbers: CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format)),
};

export function connectionConfig(options: DatabaseOptions, more: Readonly<Record<string, string>> = {}): ClientConfig {
  const { schema, connectMs, statementMs } = options;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new StoreError(
      "STORE_INVALID",
      `${JSON.stringify(schema)} is no name for a schema: a-z, 0-9 and _, at most 63`,
    );
  }
  // Those of the address would take the place of ours.
  const given = /[?&]options=([^&]*)/.exec(options.url)?.[1];
  const ours = {
    search_path: schema,
    statement_timeout: String(statementMs),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
    ...PLANNING,
    ...more,
  };
  const flags = Object.entries(ours).map(([name, value]) => `-c ${name}=${value}`);
  return {
    connectionString: options.url.replace(/([?&])options=[^&]*/, "$1"),
    options: [...(given === undefined ? [] : [decodeURIComponent(given)]), ...flags].join(" "),
    fallback_application_name: "millrace",
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs * SILENCE,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: numbers,
  };
}

/** `pg` has it on every client; its types do not. Held back until all is written, a transaction wakes the server once. */
interface WithStream {
  readonly connection: { readonly stream: Pick<Writable, "cork" | "uncork" | "destroy"> };
}

/** Connections that a silent server does not let end in order would keep the process alive. */
export async function sayGoodbye(
  host: Host,
  ending: Promise<void>,
  clients: () => Iterable<ClientBase>,
): Promise<void> {
  const over = new AbortController();
  await Promise.race([ending, host.sleep(GOODBYE_MS, over.signal)]);
  over.abort();
  for (const client of clients()) (client as unknown as WithStream).connection.stream.destroy();
}

/** A bounded number of connections, whose trouble has a name. */
export class Database implements Connection {
  readonly #pool: Pool;
  readonly #host: Host;
  readonly #clients = new Set<ClientBase>();

  constructor(host: Host, options: DatabaseOptions) {
    this.#host = host;
    const { maxConnections } = options;
    // Statements of one transaction are sent without waiting for each other's answers.
    this.#pool = new Pool({ ...connectionConfig(options), max: maxConnections, pipeline: true });
    // A connection that breaks while nobody uses it would end the process; whoever uses the next one hears of it.
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => {
      client.on("error", () => {});
      this.#clients.add(client);
    });
    this.#pool.on("remove", (client) => this.#clients.delete(client));
  }

  /** Waits for what is under way, but not for a server that has fallen silent. */
  async close(): Promise<void> {
    if (this.#pool.ending) return;
    await sayGoodbye(this.#host, this.#pool.end(), () => this.#clients);
  }

  /** @param behind sent together with it, for after its commit; nobody waits for what becomes of that */
  run(sql: string, values: readonly unknown[] = [], behind?: Statement): Promise<QueryResult> {
    if (behind === undefined) return this.#lend((client) => client.query(prepared({ sql, values })));
    return this.#lend((client, following) => {
      const { stream } = (client as unknown as WithStream).connection;
      stream.cork();
      const answer = client.query(prepared({ sql, values }));
      following.push(client.query(prepared(behind)));
      stream.uncork();
      return answer;
    });
  }

  /** All of it or nothing. */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#lend(async (client) => {
      // Not waited for: if it fails, so does what follows it.
      const begun = client.query("begin");
      begun.catch(() => {});
      const result = await work({
        run: (sql, values = []) => client.query(prepared({ sql, values })),
        runScript: async (sql) => void (await client.query(sql)),
      });
      await client.query("commit");
      return result;
    });
  }

  /**
   * One transaction of statements that need nothing of each other's answers: all are sent at once.
   *
   * @param behind as for `run`
   */
  atOnce(statements: readonly Statement[], behind?: Statement): Promise<readonly QueryResult[]> {
    return this.#lend(async (client, following) => {
      const { stream } = (client as unknown as WithStream).connection;
      const ready = statements.map(prepared);
      stream.cork();
      const answers = charsOf(ready) > MAX_FLIGHT_CHARS ? oneByOne(client, ready) : inOneFlight(client, ready);
      if (behind !== undefined) following.push(client.query(prepared(behind)));
      stream.uncork();
      return answers;
    });
  }

  /** A connection on which something failed is thrown away with whatever it was doing. */
  async #lend<Result>(work: (client: PoolClient, following: Promise<unknown>[]) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      let client: PoolClient | undefined;
      const following: Promise<unknown>[] = [];
      try {
        client = await this.#pool.connect();
        const result = await work(client, following);
        giveBack(client, following);
        return result;
      } catch (error) {
        for (const one of following) one.catch(() => {});
        client?.release(true);
        if (tries === MAX_TRIES || !isCollision(error)) throw faultOf(error);
        await this.#host.sleep(this.#host.random() * 10 * 2 ** tries);
      }
    }
  }
}

function inOneFlight(client: PoolClient, statements: readonly Prepared[]): Promise<readonly QueryResult[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly QueryResult[]>();
  client.query(new OneFlight(statements, (error, answers) => (error === null ? resolve(answers) : reject(error))));
  return promise;
}

/** Each with its own sync: between two of them the server counts how long it hears nothing. */
async function oneByOne(client: PoolClient, statements: readonly Prepared[]): Promise<readonly QueryResult[]> {
  const begun = client.query("begin");
  const sent = statements.map((statement) => client.query({ ...statement, values: [...statement.values] }));
  const ended = client.query("commit");
  const answers = await Promise.allSettled([begun, ...sent, ended]);
  // The first to fail is the reason; those behind it were only told that there had been one.
  const failed = answers.find((answer) => answer.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return Promise.all(sent);
}

function charsOf(statements: readonly Prepared[]): number {
  return statements.reduce((sum, { values }) => sum + values.reduce((all, value) => all + (value?.length ?? 0), 0), 0);
}

export async function rows<Row extends object>(
  connection: Connection,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return (await connection.run(sql, values)).rows as readonly Row[];
}

/** The columns of a list of rows, as `unnest` takes them. */
export function columns<Item>(items: readonly Item[], ...fields: readonly (keyof Item)[]): readonly unknown[][] {
  return fields.map((field) => items.map((item) => item[field]));
}

/** Once there is nothing under way on it. */
function giveBack(client: PoolClient, following: readonly Promise<unknown>[]): void {
  if (following.length === 0) client.release();
  else void Promise.allSettled(following).then(() => client.release());
}

const names = new Map<string, string>();

/** Named, so that a connection parses and plans it once. */
function prepared({ sql, values }: Statement): { name: string; text: string; values: (string | null)[] } {
  let name = names.get(sql);
  if (name === undefined) names.set(sql, (name = `millrace_${names.size}`));
  return {
    name,
    text: sql,
    values: values.map((value) => literal(value as Scalar | readonly Scalar[] | undefined)),
  };
}

function literal(value: Scalar | readonly Scalar[] | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "object") return arrayLiteral(value);
  return String(value);
}
