import { type Redis, send } from "./redis.ts";

/**
 * How much of `maxmemory` is used, counted as Redis does before it refuses a write: what waits to be written to the AOF
 * or sent to a replica does not count. Unknown without a limit, or where we may not ask.
 */
export async function fillOf(redis: Redis): Promise<number | undefined> {
  const text = await send<string>(redis, "INFO", "memory");
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1] ?? 0);
  const limit = figure("maxmemory");
  return limit === 0 ? undefined : (figure("used_memory") - figure("mem_not_counted_for_evict")) / limit;
}
