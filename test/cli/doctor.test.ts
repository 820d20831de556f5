import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startPostgresServer } from "../../scripts/services/postgres.ts";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import { cleanUp, folder, millrace } from "./program.ts";

afterAll(cleanUp);

// What a start says of the same settings is in src/process/store-safety.test.ts.
test("doctor tells of a Redis that no process would start on, and of one that is well", async () => {
  const bad = await startOwnRedis({ appendonly: "no", maxmemory: "0", "maxmemory-policy": "allkeys-lru" });
  const good = await startOwnRedis();
  const here = folder();
  const doctor = (url: string, env = {}) => millrace(["doctor", "--store", url], { cwd: here, env });
  try {
    const told = await doctor(bad.url);
    expect(told.code).toBe(1);
    for (const code of ["REDIS_NOT_APPENDONLY", "REDIS_NO_MAXMEMORY", "REDIS_EVICTION"])
      expect(told.stdout).toMatch(new RegExp(`✗ redis +${code}: .*\\n +fix: docs/redis\\.md`));
    const accepted = "REDIS_NOT_APPENDONLY,REDIS_NO_MAXMEMORY,REDIS_EVICTION";
    const known = await doctor(bad.url, { MILLRACE_ALLOW_UNSAFE_STORE: accepted });
    expect([known.code, known.stdout]).toEqual([0, expect.stringContaining("– redis      REDIS_EVICTION")]);
    const well = await doctor(good.url);
    expect([well.code, well.stdout]).toEqual([0, expect.stringMatching(/✓ redis +Redis \d\S+ answers/)]);
  } finally {
    await bad.stop();
    await good.stop();
  }
});

test("doctor finds a Postgres by its socket, as a start does", async () => {
  const server = await startPostgresServer({ unix_socket_directories: tmpdir() });
  try {
    const url = `postgres://postgres@/postgres?host=${tmpdir()}&port=${server.port}`;
    const here = folder();
    const { code, stdout } = await millrace(["doctor", "--store", url], { cwd: here, env: { MILLRACE_ARCHIVE: url } });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/✓ store .* answers\n.*✓ postgres +Postgres \d/s)]);
    expect(stdout).toMatch(/✓ archive .* answers/);
    const apart = { POSTGRES_HOST: tmpdir(), POSTGRES_PORT: String(server.port), POSTGRES_DATABASE: "postgres" };
    const env = { MILLRACE_STORE: "postgres", ...apart };
    expect((await millrace(["doctor"], { cwd: here, env })).stdout).toMatch(/✓ postgres +Postgres \d/);
    await server.end("SIGINT");
    const away = await millrace(["doctor", "--store", url], { cwd: here });
    expect([away.code, away.stdout]).toEqual([1, expect.stringMatching(/✗ store .*: ENOENT\n/)]);
  } finally {
    await server.stop();
  }
});

test.each([
  ["dev", "answer by a mock"],
  ["prod", "fail"],
])("doctor says what llm nodes do without a model in %s", async (environment, told) => {
  const { stdout } = await millrace(["doctor"], { cwd: folder(), env: { MILLRACE_ENV: environment } });
  expect(stdout).toContain(`no provider: llm nodes ${told}\n`);
});

const hasIPv6 = Object.values(networkInterfaces()).some((own) => own?.some(({ address }) => address === "::1"));

test("doctor finds a Redis by the path of its socket, and by an IPv6 address", async () => {
  const here = folder();
  const socket = join(here, "redis.sock");
  const server = await startOwnRedis({ unixsocket: socket, bind: "127.0.0.1 -::1" });
  try {
    for (const host of [socket, ...(hasIPv6 ? ["::1"] : [])]) {
      const env = { MILLRACE_STORE: "redis", REDIS_HOST: host, REDIS_PORT: String(server.port) };
      const { code, stdout } = await millrace(["doctor"], { cwd: here, env });
      expect([code, stdout]).toEqual([0, expect.stringMatching(/✓ store .* answers\n.*✓ redis +Redis \d/s)]);
    }
  } finally {
    await server.stop();
  }
});
