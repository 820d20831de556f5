import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { BusAddress } from "../settings/bus-address.ts";
import type { Heartbeats } from "../worker/heartbeat-thread.ts";
import { openBusStore } from "./bus-worker.ts";

/** What the thread that keeps the leases of a worker on the bus calls: a connection of its own to the same brokers. */
export async function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { address, partitions, worker } = options as unknown as {
    readonly address: BusAddress;
    readonly partitions: number;
    readonly worker: string;
  };
  const { bus } = await openBusStore({ address, partitions, worker, host: nodeHost });
  return bus.store.tasks;
}
