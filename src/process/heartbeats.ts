import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { Heartbeats } from "../worker/heartbeat-thread.ts";
import type { StoreAddress } from "../settings/store-address.ts";
import { openStore } from "./open-store.ts";

/** What the thread that keeps a worker's leases calls: a connection of its own to the same store. */
export async function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { address, ...rest } = options as unknown as {
    address: StoreAddress;
    partitions: number;
    redisSocketTimeout: number;
  };
  const { tasks } = await openStore(address, { ...rest, host: nodeHost });
  return tasks;
}
