import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { Service } from "../../scripts/services/service.ts";
import { connect, worker, workflow } from "../../src/sdk/index.ts";
import { MillraceProcess } from "../../src/process/process.ts";
import { readSettings } from "../../src/settings/read-settings.ts";
import { storeAddress, type StoreAddress } from "../../src/settings/store-address.ts";
import { pino } from "pino";
import { postgresService } from "../support/services.ts";

let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

test("a worker of the SDK runs on a store that it shares with a server", async () => {
  const wf = workflow("shared", { input: z.object({ n: z.number() }) });
  const twice = wf.node("twice", ({ input }) => input.n * 2);
  const far = wf.node("far", { after: { twice }, queue: "gpu" }, ({ twice }) => twice + 1);
  const built = wf.output({ far });

  const { settings } = readSettings({ env: {}, flags: { store: service.url, port: 0 } });
  const server = await MillraceProcess.start({
    settings,
    address: storeAddress(settings) as StoreAddress,
    env: {},
    roles: ["engine", "api"],
    user: { handlers: new Map(), entries: new Map() },
    log: pino({ level: "silent" }),
    version: "test",
    loopback: true,
  });
  await using client = connect({ url: server.url! });
  await using beside = worker({ store: service.url, workflows: [built], concurrency: 2 });
  await beside.start();
  expect(await client.run(built, { n: 20 }, { timeout: "30s" })).toEqual({ far: 41 });
  await beside.stop();
  await client.close();
  await server.stop();
});
