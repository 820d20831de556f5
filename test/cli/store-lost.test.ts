import { createClient } from "@redis/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { cleanUp, serve, start } from "./program.ts";

let server: OwnRedis;
beforeAll(async () => {
  server = await startOwnRedis();
});
afterAll(async () => {
  cleanUp();
  await server.stop();
});

test("a server, an API without an engine and a worker end by name when their Redis has lost its data", async () => {
  const all = await serve(server.url);
  const api = await serve(server.url, ["--roles", "api"]);
  const worker = start(["worker", "--store", server.url]);
  await worker.says(/"started"/);
  const client = createClient({ url: server.url });
  client.on("error", () => {});
  await client.connect();
  await client.flushAll();
  for (const program of [all.program, api.program, worker]) {
    const { code, stdout, stderr } = await program.ended;
    expect([code, stderr]).toEqual([6, expect.stringContaining("(STORE_LOST)")]);
    expect(stdout).toContain('"code":"STORE_LOST"');
  }
  expect(await client.keys("*")).toEqual([]);
  client.destroy();
});
