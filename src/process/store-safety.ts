import { nodeHost } from "../host/node-host.ts";
import type { Settings } from "../settings/declarations.ts";
import type { StoreAddress } from "../settings/store-address.ts";
import { StoreError } from "../store/store-error.ts";

/** A setting of the store under which it would break a promise. */
export interface Unsafe {
  readonly code: string;
  readonly told: string;
}

export type SafetySettings = Pick<
  Settings,
  "redisDurability" | "allowUnsafeStore" | "redisSocketTimeout" | "postgresConnectTimeout"
>;

/**
 * Refuses a store whose own settings would lose what was acknowledged, unless the operator accepts each by its name.
 * SQLite is set up by its driver, and memory promises nothing.
 */
export async function checkStoreSafety(address: StoreAddress, settings: SafetySettings): Promise<void> {
  if (address.kind === "memory" || address.kind === "sqlite") return;
  const found =
    address.kind === "redis" ? await redisFaults(address.url, settings) : await postgresFaults(address.url, settings);
  const refused = found.filter(({ code }) => !settings.allowUnsafeStore.includes(code));
  if (refused.length === 0) return;
  const sentences = refused.map(({ code, told }) => `${code}: ${told}`).join("; ");
  const accept = `MILLRACE_ALLOW_UNSAFE_STORE=${refused.map(({ code }) => code).join(",")}`;
  throw new StoreError(
    "STORE_INVALID",
    `The store can lose what it has acknowledged. ${sentences}. To accept that: ${accept}`,
  );
}

const JUDGED = ["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"];

/** What a Redis says of itself that would break a promise. */
export async function redisFaults(
  url: string,
  settings: Pick<SafetySettings, "redisDurability" | "redisSocketTimeout">,
): Promise<readonly Unsafe[]> {
  const { Connection } = await import("../drivers/redis/connection.ts");
  const { readFacts } = await import("../drivers/redis/server.ts");
  const { ErrorReply } = await import("../drivers/redis/wire/reply-reader.ts");
  const times = { connectMs: settings.redisSocketTimeout * 1_000, commandMs: settings.redisSocketTimeout * 1_000 };
  // A server that tells us nothing at all does not hide its settings: it has not let us in.
  const connection = new Connection({ url, host: nodeHost, ...times }, async (line) => void (await readFacts(line)));
  try {
    const line = await connection.line();
    const told = await line.send<readonly string[]>(["CONFIG", "GET", ...JUDGED]);
    const config = Object.fromEntries(Array.from({ length: told.length / 2 }, (_, i) => told.slice(2 * i, 2 * i + 2)));
    return judgeRedis(config as Record<string, string>, settings.redisDurability);
  } catch (error) {
    if (!(error instanceof ErrorReply)) throw error;
    return [{ code: "REDIS_SETTINGS_HIDDEN", told: "this Redis does not tell its settings" }];
  } finally {
    connection.close();
  }
}

/** By what `CONFIG GET` says. */
export function judgeRedis(
  config: Readonly<Record<string, string | undefined>>,
  durability: Settings["redisDurability"],
): readonly Unsafe[] {
  const { appendonly, appendfsync, maxmemory, "maxmemory-policy": eviction } = config;
  const found: Unsafe[] = [];
  if (appendonly !== "yes")
    found.push({ code: "REDIS_NOT_APPENDONLY", told: "appendonly is off, so a restart loses everything" });
  else if (appendfsync === "no" || (durability === "strict" && appendfsync !== "always")) {
    const told = `appendfsync is ${appendfsync}; the ${durability} profile needs ${durability === "strict" ? "always" : "everysec or always"}`;
    found.push({ code: "REDIS_FSYNC", told });
  }
  if (maxmemory === undefined || Number(maxmemory) === 0) {
    const told =
      "maxmemory is not set, so nothing makes room or refuses new work before the machine has no memory left";
    found.push({ code: "REDIS_NO_MAXMEMORY", told });
  }
  if (eviction !== undefined && eviction !== "noeviction") {
    found.push({
      code: "REDIS_EVICTION",
      told: `maxmemory-policy is ${eviction}, so a full Redis throws journals away`,
    });
  }
  return found;
}

async function postgresFaults(url: string, settings: SafetySettings): Promise<readonly Unsafe[]> {
  const { postgresSettings } = await import("../drivers/postgres/inspect.ts");
  return judgePostgres(await postgresSettings(url, settings.postgresConnectTimeout * 1_000));
}

/** By what `pg_settings` says. */
export function judgePostgres(settings: Readonly<Record<string, string | undefined>>): readonly Unsafe[] {
  const off = (name: string, code: string, told: string): Unsafe[] =>
    settings[name] === "off" ? [{ code, told }] : [];
  return [
    ...off("fsync", "POSTGRES_FSYNC", "fsync is off, so a power cut can lose or damage everything"),
    ...off(
      "synchronous_commit",
      "POSTGRES_ASYNC_COMMIT",
      "synchronous_commit is off, so a crash loses the last commits",
    ),
    ...off("full_page_writes", "POSTGRES_PAGE_WRITES", "full_page_writes is off, so a power cut can damage pages"),
  ];
}
