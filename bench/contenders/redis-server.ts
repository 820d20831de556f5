import { createClient } from "@redis/client";

export type Fsync = "everysec" | "always";

/** Empties the Redis, sets how it syncs, and tells its process. */
export async function prepareRedis(url: string, appendfsync: Fsync): Promise<number> {
  const client = createClient({ url });
  await client.connect();
  await client.flushAll();
  // More than any turn needs: what is kept of finished work is part of what is measured.
  await client.configSet({ appendfsync, maxmemory: "8gb" });
  const server = await client.info("server");
  client.destroy();
  return Number(/process_id:(\d+)/.exec(server)![1]);
}
