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

/** What a Redis says of itself that would break a promise. */
export async function redisFaults(
  url: string,
  settings: Pick<SafetySettings, "redisDurability" | "redisSocketTimeout">,
): Promise<readonly Unsafe[]> {
  const { createClient, ErrorReply } = await import("@redis/client");
  const connectTimeout = settings.redisSocketTimeout * 1_000;
  const socket = { reconnectStrategy: false, connectTimeout } as const;
  // With notifications of moves it takes an IPv6 address for a name.
  const client = createClient({ url, maintNotifications: "disabled", socket });
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw unreachable(error);
  }
  try {
    const config = await client.configGet(["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"]);
    return judgeRedis(config, settings.redisDurability);
  } catch (error) {
    if (!(error instanceof ErrorReply)) throw unreachable(error);
    return [{ code: "REDIS_SETTINGS_HIDDEN", told: "this Redis does not tell its settings" }];
  } finally {
    client.destroy();
  }
}

/** It dies as we speak, or does not let us in. */
function unreachable(reason: unknown): StoreError {
  const told = reason instanceof Error ? reason.message || reason.name : String(reason);
  return new StoreError("STORE_UNAVAILABLE", `The store cannot be reached: ${told}`, { cause: reason });
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
