import { createClient } from "@redis/client";
import { Client } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { joinStore } from "../../src/process/join-store.ts";
import type { Role } from "../../src/settings/declarations.ts";
import { readSettings } from "../../src/settings/read-settings.ts";
import type { Store } from "../../src/store/contract.ts";
import { millrace } from "../cli/program.ts";
import { postgresService } from "../support/services.ts";

const SCHEMA = `missing_${nodeHost.id().replaceAll("-", "_").toLowerCase()}`;

async function inRedis(url: string): Promise<boolean> {
  const client = await createClient({ url }).connect();
  const found = await client.exists("millrace:store");
  client.destroy();
  return found === 1;
}

async function inPostgres(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(`select from pg_namespace where nspname = $1`, [SCHEMA]);
  await client.end();
  return rows.length === 1;
}

async function dropSchema(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`drop schema if exists ${SCHEMA} cascade`);
  await client.end();
}

const STORES = [
  ["redis", () => startRedis({ shared: false }), inRedis, () => Promise.resolve()],
  ["postgres", postgresService, inPostgres, dropSchema],
] as const;

describe.each(STORES)("a %s in which there is no store", (kind, begin, isThere, cleanUp) => {
  let service: Service;
  beforeAll(async () => {
    service = await begin();
  });
  afterAll(async () => {
    await cleanUp(service.url);
    await service.stop();
  });

  function join(roles: readonly Role[], patienceMs: number): Promise<Store> {
    const { settings } = readSettings({ env: { POSTGRES_SCHEMA: SCHEMA, MILLRACE_PARTITIONS: "2" } });
    const address = { kind, url: service.url };
    const log = pino({ level: "silent" });
    return joinStore({ settings, address, roles, archive: undefined, host: nodeHost, log, patienceMs });
  }

  test("is left alone by who lists or revokes keys", async () => {
    const env = { POSTGRES_SCHEMA: SCHEMA, MILLRACE_PARTITIONS: "2" };
    for (const args of [
      ["keys", "ls"],
      ["keys", "revoke", "k"],
    ]) {
      const { code, stderr } = await millrace([...args, "--store", service.url], { env });
      expect([args, code, stderr]).toEqual([
        args,
        6,
        expect.stringMatching(/There is no store in .+ \(STORE_MISSING\)/),
      ]);
    }
    expect(await isThere(service.url)).toBe(false);
  });

  test("is left alone by a worker, which says what is missing, and joins what an engine has made", async () => {
    const refused = { code: "STORE_MISSING", message: expect.stringContaining("a worker does not make one") };
    await expect(join(["worker"], 0)).rejects.toMatchObject(refused);
    expect(await isThere(service.url)).toBe(false);

    const waiting = join(["worker"], 60_000);
    const made = await join(["api", "engine"], 0);
    const joined = await waiting;
    expect(joined.capabilities.incarnation).toBe(made.capabilities.incarnation);
    await Promise.all([made.close(), joined.close()]);
  });
});
