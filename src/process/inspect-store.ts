import type { NetConnectOpts } from "node:net";
import { nodeHost } from "../host/node-host.ts";
import type { Settings } from "../settings/declarations.ts";
import type { StoreAddress } from "../settings/store-address.ts";
import { StoreError } from "../store/store-error.ts";
import { judgePostgres, redisFaults, type Unsafe } from "./store-safety.ts";

/** What was found out about a server that keeps a store. `note` is neither good nor bad. */
export interface StoreFinding {
  readonly state: "ok" | "note" | "bad";
  readonly told: string;
  readonly fix?: string;
}

/** What to connect to for a look whether anybody is there; undefined if the address cannot be read. */
export async function postgresEndpoint(url: string): Promise<NetConnectOpts | undefined> {
  const { endpointOf } = await import("../drivers/postgres/inspect.ts");
  try {
    return endpointOf(url);
  } catch {
    return undefined;
  }
}

/** Looks at what commonly stands in the way of a store on Postgres, and changes nothing. */
export async function inspectPostgresStore(
  address: StoreAddress & { readonly kind: "postgres" },
  settings: Pick<Settings, "postgresConnectTimeout" | "allowUnsafeStore">,
): Promise<readonly StoreFinding[]> {
  const { inspectPostgres, postgresSettings } = await import("../drivers/postgres/inspect.ts");
  const { toldOf } = await import("../drivers/postgres/long-transactions.ts");
  const connectMs = settings.postgresConnectTimeout * 1_000;
  try {
    const { version, isPooled, hearsHints, longTransactions } = await inspectPostgres(address.url, connectMs);
    const unsafe = judgePostgres(await postgresSettings(address.url, connectMs));
    return [
      { state: "ok", told: `Postgres ${version} answers` },
      ...(hearsHints ? [] : [deaf(isPooled)]),
      ...(hearsHints && isPooled ? [POOLED] : []),
      ...longTransactions.map((one): StoreFinding => ({ state: "bad", told: toldOf(one), fix: endIt(one.pid) })),
      ...unsafe.map((one) => unsafeFinding(one, settings.allowUnsafeStore, "docs/postgres.md")),
    ];
  } catch (error) {
    return [refusal(error, "docs/postgres.md")];
  }
}

/** Looks at a Redis as a start does, which refuses one that would lose what it has acknowledged; changes nothing. */
export async function inspectRedisStore(
  address: StoreAddress & { readonly kind: "redis" },
  settings: Pick<Settings, "redisDurability" | "allowUnsafeStore" | "redisSocketTimeout">,
): Promise<readonly StoreFinding[]> {
  try {
    const unsafe = await redisFaults(address.url, settings);
    const version = await redisVersion(address.url, settings.redisSocketTimeout * 1_000);
    return [
      { state: "ok", told: `Redis ${version} answers` },
      ...unsafe.map((one) => unsafeFinding(one, settings.allowUnsafeStore, "docs/redis.md")),
    ];
  } catch (error) {
    return [refusal(error, "docs/redis.md")];
  }
}

/** Of a server that can keep a store. */
async function redisVersion(url: string, timeoutMs: number): Promise<string> {
  const { Connection } = await import("../drivers/redis/connection.ts");
  const { checkServer, readFacts } = await import("../drivers/redis/server.ts");
  const times = { connectMs: timeoutMs, commandMs: timeoutMs };
  let version = "";
  const connection = new Connection({ url, host: nodeHost, ...times }, async (line) => {
    const facts = await readFacts(line);
    checkServer(facts);
    version = facts.get("redis_version") ?? "";
  });
  try {
    await connection.line();
    return version;
  } finally {
    connection.close();
  }
}

function unsafeFinding({ code, told }: Unsafe, accepted: readonly string[], fix: string): StoreFinding {
  return { state: accepted.includes(code) ? "note" : "bad", told: `${code}: ${told}`, fix };
}

function refusal(error: unknown, fix: string): StoreFinding {
  if (!(error instanceof StoreError)) throw error;
  return { state: "bad", told: `${error.message} (${error.code})`, fix };
}

const POOLED: StoreFinding = {
  state: "note",
  told: "a pooler stands between, and lets wake-ups through: it must hand out whole sessions",
};

function deaf(isPooled: boolean): StoreFinding {
  return {
    state: "bad",
    told: `wake-ups (LISTEN) do not get through${isPooled ? ": a pooler stands between, such as PgBouncer by transactions" : ""}; everything waits for a look once a second`,
    fix: "connect to Postgres itself, or to a pooler that hands out whole sessions",
  };
}

function endIt(pid: number): string {
  return `find out what left it open, or end it: select pg_terminate_backend(${pid})`;
}
