import { createClient } from "@redis/client";
import { afterAll, beforeAll } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { conformance } from "../../src/store/conformance/conformance.ts";
import { canBeFull, type Harness, refusesCommits } from "../../src/store/conformance/harness.ts";
import { openRedisHarness } from "./redis-harness.ts";

// A server of its own, and one case at a time: full and read-only are states of the whole server.
let service: Service;
beforeAll(async () => {
  service = await startRedis({ shared: false });
});
afterAll(() => service.stop());

conformance("redis without room", {
  open: openHarness,
  only: ({ requires }) => requires === canBeFull || requires === refusesCommits,
});

async function openHarness(): Promise<Harness> {
  const { url } = service;
  const harness = await openRedisHarness(url);
  const setFull = (isFull: boolean): Promise<void> => configure(url, "maxmemory", isFull ? "1" : "0");
  // A server that needs a replica and has none refuses every write before it begins.
  const refuseCommits = (isRefusing: boolean): Promise<void> =>
    configure(url, "min-replicas-to-write", isRefusing ? "1" : "0");
  return {
    ...harness,
    setFull,
    refuseCommits,
    close: async () => {
      await setFull(false);
      await refuseCommits(false);
      await harness.close();
    },
  };
}

async function configure(url: string, name: string, value: string): Promise<void> {
  const client = await createClient({ url }).connect();
  await client.configSet(name, value);
  client.destroy();
}
