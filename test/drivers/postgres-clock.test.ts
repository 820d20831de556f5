import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { LEASE_NOW_MS } from "../../src/drivers/postgres/clock.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

test("statements that do not call lease_ms() have the same time", async () => {
  const schema = `test_${nodeHost.id()}`;
  const store = await openPostgres({ url: service.url, schema, host: nodeHost, partitions: 1 });
  const options = { url: service.url, schema, maxConnections: 1, connectMs: 10_000, statementMs: 10_000 };
  const database = new Database(nodeHost, options);
  // A wall clock that was set back stands still for leases: so both are exact.
  await database.run(`update clock set wall_ms = wall_ms() + 1000000, offset_ms = 123`);
  const { rows } = await database.run(`select lease_ms() as called, ${LEASE_NOW_MS} as written, wall_ms from clock`);
  const { called, written, wall_ms: wallMs } = rows[0] as { called: number; written: number; wall_ms: number };
  expect(written).toBe(called);
  expect(written).toBe(wallMs + 123);
  await database.close();
  await store.close();
});
