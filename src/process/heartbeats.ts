import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { Heartbeats } from "../worker/heartbeat-thread.ts";
import type { StoreAddress } from "../settings/store-address.ts";
import { openStore, type StoreSettings } from "./open-store.ts";

/** What the thread that keeps a worker's leases calls: a connection of its own to the same store. */
export async function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { address, incarnation, settings } = options as unknown as {
    address: StoreAddress;
    incarnation?: string;
    settings: StoreSettings;
  };
  // Beats come one after the other, and a pool must have two.
  const only = { incarnation, existing: true };
  const { tasks } = await openStore(address, { ...settings, ...only, postgresMaxConnections: 2, host: nodeHost });
  return tasks;
}
