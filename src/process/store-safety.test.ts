import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { checkStoreSafety, judgePostgres, judgeRedis } from "./store-safety.ts";

describe("the settings of a store", () => {
  const redis: readonly [config: Record<string, string>, durability: "strict" | "fast", codes: readonly string[]][] = [
    [{ appendonly: "yes", appendfsync: "always", maxmemory: "1", "maxmemory-policy": "noeviction" }, "strict", []],
    [{ appendonly: "yes", appendfsync: "everysec", maxmemory: "1" }, "strict", ["REDIS_FSYNC"]],
    [{ appendonly: "yes", appendfsync: "everysec", maxmemory: "1" }, "fast", []],
    [{ appendonly: "yes", appendfsync: "no", maxmemory: "1" }, "fast", ["REDIS_FSYNC"]],
    [{ appendonly: "no", appendfsync: "always", maxmemory: "1" }, "strict", ["REDIS_NOT_APPENDONLY"]],
    [
      { appendonly: "no", maxmemory: "1", "maxmemory-policy": "allkeys-lru" },
      "fast",
      ["REDIS_NOT_APPENDONLY", "REDIS_EVICTION"],
    ],
    [{ appendonly: "yes", appendfsync: "always", maxmemory: "0" }, "strict", ["REDIS_NO_MAXMEMORY"]],
    [{}, "strict", ["REDIS_NOT_APPENDONLY", "REDIS_NO_MAXMEMORY"]],
  ];
  test.each(redis)("of Redis %j under %s are refused by %j", (config, durability, codes) => {
    expect(judgeRedis(config, durability).map(({ code }) => code)).toEqual(codes);
  });

  const postgres: readonly [settings: Record<string, string>, codes: readonly string[]][] = [
    [{ fsync: "on", synchronous_commit: "on", full_page_writes: "on" }, []],
    [{ fsync: "on", synchronous_commit: "local", full_page_writes: "on" }, []],
    [{ fsync: "off", synchronous_commit: "off" }, ["POSTGRES_FSYNC", "POSTGRES_ASYNC_COMMIT"]],
    [{ fsync: "on", synchronous_commit: "on", full_page_writes: "off" }, ["POSTGRES_PAGE_WRITES"]],
  ];
  test.each(postgres)("of Postgres %j are refused by %j", (settings, codes) => {
    expect(judgePostgres(settings).map(({ code }) => code)).toEqual(codes);
  });
});

const refusals: readonly (readonly [what: string, meet: (socket: Socket) => void])[] = [
  ["dies while it is asked", (socket) => void socket.destroy()],
  [
    "wants a password first",
    (socket) => void socket.on("data", () => void socket.write("-NOAUTH Authentication required.\r\n")),
  ],
];
test.each(refusals)("a Redis that %s is one that cannot be reached", async (_, meet) => {
  const server = createServer(meet);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const settings = {
    redisDurability: "strict" as const,
    allowUnsafeStore: [],
    redisSocketTimeout: 5,
    postgresConnectTimeout: 5,
  };
  const checked = checkStoreSafety({ kind: "redis", url: `redis://127.0.0.1:${port}` }, settings);
  await expect(checked).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  server.close();
});
