import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@redis/client";
import { openRedis, type RedisOptions } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Harness } from "../../src/store/conformance/harness.ts";
import type { Store } from "../../src/store/contract.ts";

const INBOX_LIMIT = 60;

export async function openRedisHarness(url: string, more: Partial<RedisOptions> = {}): Promise<Harness> {
  const prefix = `test-${nodeHost.id()}`;
  const open = (): Promise<Store> =>
    openRedis({ url, prefix, host: nodeHost, partitions: 4, maxInbox: INBOX_LIMIT, ...more });
  const stores = [await open()];
  return {
    store: stores[0]!,
    inboxLimit: INBOX_LIMIT,
    advance: (ms) => sleep(ms),
    setClockBack: async (ms) => {
      // The store learns of it by looking at the clock before and after, as it does all the time where there is traffic.
      await stores[0]!.tasks.lapse(0);
      await moveTimes(url, prefix, ms);
      await stores[0]!.tasks.lapse(0);
    },
    reopen: async () => {
      await stores[0]!.close();
      stores[0] = await open();
      return stores[0];
    },
    close: async () => {
      await stores[0]!.close();
      await removeKeys(url, prefix);
    },
  };
}

/** Nobody can set the server's clock back; but all times it has written can be as if it had been ahead until now. */
async function moveTimes(url: string, prefix: string, ms: number): Promise<void> {
  const client = await createClient({ url }).connect();
  await client.hIncrBy(`${prefix}:clock`, "wall", ms);
  await client.hIncrBy(`${prefix}:partition:0`, "until", ms);
  const alive = `${prefix}:registrations:until`;
  for (const member of await client.zRange(alive, 0, -1)) await client.zIncrBy(alive, ms, member);
  for (const leases of await client.keys(`${prefix}:leases:*`)) {
    for (const token of await client.zRange(leases, 0, -1)) await client.zIncrBy(leases, ms, token);
  }
  client.destroy();
}

async function removeKeys(url: string, prefix: string): Promise<void> {
  const client = await createClient({ url }).connect();
  for await (const keys of client.scanIterator({ MATCH: `${prefix}:*`, COUNT: 1000 })) {
    if (keys.length > 0) await client.unlink(keys);
  }
  client.destroy();
}
