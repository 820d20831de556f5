import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json } from "../../src/json/json.ts";
import type { Heartbeats } from "../../src/worker/heartbeat-thread.ts";

/** Runs in a thread of the worker, with a connection of its own. */
export async function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { url, prefix } = options as { readonly url: string; readonly prefix: string };
  return (await openRedis({ url, prefix, partitions: 1, host: nodeHost })).tasks;
}
