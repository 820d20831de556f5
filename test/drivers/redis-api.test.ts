import { afterAll, beforeAll } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { apiStory } from "../support/api-story.ts";
import { redisService } from "../support/services.ts";

const prefix = `test-api-${nodeHost.id()}`;
let service: Service;
beforeAll(async () => {
  service = await redisService();
});
afterAll(() => service.stop());

apiStory("Redis", () => openRedis({ url: service.url, prefix, host: nodeHost, partitions: 4 }), true);
