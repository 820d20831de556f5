import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres.ts";
import { startRedis } from "./redis.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly redisUrl: string;
    readonly postgresUrl: string;
  }
}

/** One Redis and one Postgres for all files of the vitest project that names this in `globalSetup`. */
export default async function globalSetup(project: TestProject): Promise<() => Promise<void>> {
  const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  project.provide("redisUrl", redis.url);
  project.provide("postgresUrl", postgres.url);
  return async () => {
    await Promise.all([redis.stop(), postgres.stop()]);
  };
}
