import { afterAll, beforeAll } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { apiStory } from "../support/api-story.ts";
import { postgresService } from "../support/services.ts";

const schema = `test_api_${nodeHost.id()}`;
let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

apiStory("Postgres", () => openPostgres({ url: service.url, schema, host: nodeHost, partitions: 4 }), true);
