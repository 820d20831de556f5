import type { NetConnectOpts } from "node:net";
import { Client } from "pg";
import { faultOf } from "./faults.ts";
import { LONG_MS, LONG_TRANSACTIONS, type LongTransaction } from "./long-transactions.ts";

/** What can be seen of a server without changing anything. */
export interface Inspection {
  readonly version: string;
  /** Somebody stands between us and the server, and has a connection of his own to it. */
  readonly isPooled: boolean;
  /** A hint that one connection sends gets to another. */
  readonly hearsHints: boolean;
  readonly longTransactions: readonly LongTransaction[];
}

const HINT_MS = 2_000;
const SAFETY_SETTINGS = ["fsync", "synchronous_commit", "full_page_writes"];

const SQL = {
  settings: `select name, setting from pg_settings where name = any ($1)`,
  server: `select current_setting('server_version') as version, pg_backend_pid() as pid`,
};

/** Where an address leads, as the driver reads it: its query may say so too, and a folder has a socket in it. */
export function endpointOf(url: string): NetConnectOpts {
  const { host, port } = new Client({ connectionString: url });
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}

/** The settings on which it depends whether the server keeps what it has acknowledged. */
export async function postgresSettings(url: string, connectMs: number): Promise<Readonly<Record<string, string>>> {
  return connected(url, connectMs, async (client) => {
    const { rows } = await client.query<{ name: string; setting: string }>(SQL.settings, [SAFETY_SETTINGS]);
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  });
}

export async function inspectPostgres(url: string, connectMs: number, longMs = LONG_MS): Promise<Inspection> {
  return connected(url, connectMs, (listener) =>
    connected(url, connectMs, async (speaker) => {
      const { rows } = await listener.query<{ version: string; pid: number }>(SQL.server);
      const { version, pid } = rows[0]!;
      // A pooler gives each of its clients a number of its own.
      const isPooled = (listener as { readonly processID?: number }).processID !== pid;
      const hearsHints = await getsThrough(listener, speaker, `millrace_doctor_${pid}`);
      const { rows: longTransactions } = await speaker.query<LongTransaction>(LONG_TRANSACTIONS, [longMs]);
      return { version, isPooled, hearsHints, longTransactions };
    }),
  );
}

/** Tried, not guessed: what a pooler does with LISTEN depends on how it is set up. */
async function getsThrough(listener: Client, speaker: Client, channel: string): Promise<boolean> {
  const { promise: heard, resolve } = Promise.withResolvers<boolean>();
  listener.on("notification", () => resolve(true));
  await listener.query(`listen ${channel}`);
  await speaker.query(`notify ${channel}`);
  const timer = setTimeout(() => resolve(false), HINT_MS);
  try {
    return await heard;
  } finally {
    clearTimeout(timer);
    await listener.query(`unlisten ${channel}`);
  }
}

async function connected<Result>(
  url: string,
  connectMs: number,
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectMs, query_timeout: connectMs });
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw faultOf(error);
  } finally {
    client.end().catch(() => {});
  }
}
