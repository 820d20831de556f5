import { inject } from "vitest";
import { startPostgres } from "../../scripts/services/postgres.ts";
import { startRedis } from "../../scripts/services/redis.ts";
import { givenService, type Service } from "../../scripts/services/service.ts";

/** The run's server if the global setup started one, else one for this file. A server that cannot be had is a failure. */
export async function redisService(): Promise<Service> {
  const url: string | undefined = inject("redisUrl");
  return url === undefined ? startRedis() : givenService(url);
}

export async function postgresService(): Promise<Service> {
  const url: string | undefined = inject("postgresUrl");
  return url === undefined ? startPostgres() : givenService(url);
}
