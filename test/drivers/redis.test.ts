import { afterAll, beforeAll, describe } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { conformance } from "../../src/store/conformance/conformance.ts";
import { redisService } from "../support/services.ts";
import { openRedisHarness } from "./redis-harness.ts";

let service: Service;
beforeAll(async () => {
  service = await redisService();
});
afterAll(() => service.stop());

// Most cases wait for a lease to run out, so several at once cost nothing.
describe.concurrent("", () => conformance("redis", { open: () => openRedisHarness(service.url) }));

// Wherever they can be, and not only in a flood.
describe.concurrent("", () =>
  conformance("redis by transactions", { open: () => openRedisHarness(service.url, { transactionsFrom: 0 }) }));
