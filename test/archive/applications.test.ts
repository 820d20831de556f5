import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { embedded, StoreError, worker, workflow } from "../../src/sdk/index.ts";
import { postgresService } from "../support/services.ts";

const waiting = (() => {
  const wf = workflow("waiting");
  const paid = wf.signal("paid");
  return wf.output({ paid });
})();

const folder = mkdtempSync(join(tmpdir(), "millrace-application-"));
const database = `application_${nodeHost.id().replaceAll("-", "_").toLowerCase()}`;
let redis: Service;
let postgres: Service;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([startRedis({ shared: false }), postgresService()]);
  await sql(postgres.url, `create database ${database}`);
});
afterAll(async () => {
  await sql(postgres.url, `drop database if exists ${database} with (force)`);
  await Promise.all([redis.stop(), postgres.stop()]);
  rmSync(folder, { recursive: true });
});

async function sql<Row>(url: string, text: string): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}

test("an engine in an application whose archive is another store's stops, and tells everybody why", async () => {
  const url = new URL(postgres.url);
  url.pathname = `/${database}`;
  vi.stubEnv("MILLRACE_ARCHIVE", url.href);
  vi.stubEnv("ORCHESTRATOR_CHECKPOINT_INTERVAL", "0.05");
  const first = await embedded({ dataDir: join(folder, "first") });
  const { id } = await first.start(waiting);
  const shipped = (): Promise<unknown[]> =>
    sql(url.href, `select entity from millrace_archive.headers where entity = 'execution/${id}'`).catch(() => []);
  await expect.poll(shipped).toHaveLength(1);
  await first.close();

  const second = await embedded({ dataDir: join(folder, "second") });
  const heard = await second.run(waiting).catch((error: unknown) => error);
  const why = { code: "STORE_LOST", message: expect.stringContaining("another store") };
  expect(heard).toBeInstanceOf(StoreError);
  expect(heard).toMatchObject(why);
  expect(await second.lost).toBe(heard);
  await expect(second.start(waiting)).rejects.toMatchObject(why);
  await second.close();
  vi.unstubAllEnvs();
});

test("a worker in an application whose Redis was emptied stops, and tells why", async () => {
  const store = await openRedis({ url: redis.url, host: nodeHost });
  const remote = worker({ store: redis.url, handlers: { echo: (config) => config } });
  await remote.start();
  const client = await createClient({ url: redis.url }).connect();
  await client.flushAll();
  client.destroy();
  expect(await remote.lost).toMatchObject({ code: "STORE_LOST" });
  await remote.stop();
  await store.close();
});
