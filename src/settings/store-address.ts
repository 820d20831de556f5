import { isIPv6 } from "node:net";
import type { Settings } from "./declarations.ts";

/** Where a store is. */
export type StoreAddress =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres" | "redis"; readonly url: string };

const FORMS = "sqlite:PATH, postgres://…, redis://… or memory:";

/** Reads `MILLRACE_STORE`. Addresses of other applications never choose the store; they only complete the word for it. */
export function storeAddress(settings: Settings): StoreAddress | { readonly fault: string } {
  const { store } = settings;
  if (store === "memory:" || store === "memory") {
    if (settings.environment !== "prod") return { kind: "memory" };
    return {
      fault: "MILLRACE_STORE=memory: is not possible with MILLRACE_ENV=prod: everything is lost when the process ends.",
    };
  }
  if (store === "redis") return { kind: "redis", url: settings.redisUrl ?? redisUrl(settings) };
  if (store === "postgres") return { kind: "postgres", url: settings.postgresUrl ?? postgresUrl(settings) };
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(store)?.[1];
  if (file !== undefined) return { kind: "sqlite", file };
  const scheme = /^(postgres|postgresql|redis|rediss):\/\/./.exec(store)?.[1];
  if (scheme === undefined)
    return { fault: `MILLRACE_STORE must be ${FORMS}, not ${JSON.stringify(withoutPassword(store))}.` };
  return { kind: scheme.startsWith("postgres") ? "postgres" : "redis", url: store };
}

/** Where the archive is; undefined if there is none. */
export function archiveAddress(settings: Settings): string | { readonly fault: string } | undefined {
  const { archive } = settings;
  if (archive === undefined || /^postgres(ql)?:\/\/./.test(archive)) return archive;
  if (archive === "postgres") return settings.postgresUrl ?? postgresUrl(settings);
  return {
    fault: `MILLRACE_ARCHIVE must be postgres or postgres://…, not ${JSON.stringify(withoutPassword(archive))}.`,
  };
}

/** The address as it may be shown. */
export function shownAddress(address: StoreAddress): string {
  switch (address.kind) {
    case "memory":
      return "memory";
    case "sqlite":
      return `sqlite:${address.file}`;
    case "postgres":
    case "redis":
      return withoutPassword(address.url);
  }
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//…@");
}

function redisUrl({ redisHost, redisPort }: Settings): string {
  return isPath(redisHost) ? `unix://${pathInUrl(redisHost)}` : `redis://${inUrl(redisHost)}:${redisPort}`;
}

function postgresUrl(settings: Settings): string {
  const { postgresHost, postgresPort, postgresUser, postgresPassword, postgresDatabase } = settings;
  const password = postgresPassword === undefined ? "" : `:${encodeURIComponent(postgresPassword)}`;
  const user = encodeURIComponent(postgresUser) + password;
  const database = encodeURIComponent(postgresDatabase);
  if (!isPath(postgresHost)) return `postgres://${user}@${inUrl(postgresHost)}:${postgresPort}/${database}`;
  return `postgres://${user}@/${database}?host=${pathInUrl(postgresHost)}&port=${postgresPort}`;
}

/** As clients of both have it: of Redis that of the socket, of Postgres that of its folder. */
function isPath(host: string): boolean {
  return host.startsWith("/");
}

function pathInUrl(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

function inUrl(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}
