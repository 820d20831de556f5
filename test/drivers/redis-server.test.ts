import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createClient } from "@redis/client";
import { afterEach, describe, expect, test } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { freePort } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { checkServer } from "../../src/drivers/redis/server.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { checkStoreSafety } from "../../src/process/store-safety.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { inboxTexts, message, record, task } from "../../src/store/conformance/things.ts";

const PROFILE = {
  redisDurability: "strict",
  allowUnsafeStore: [] as string[],
  redisSocketTimeout: 5,
  postgresConnectTimeout: 5,
} as const;

describe("a Redis that the store may not use", () => {
  let servers: OwnRedis[] = [];
  afterEach(async () => {
    for (const server of servers) await server.stop();
    servers = [];
  });

  async function start(settings: Readonly<Record<string, string>> = {}): Promise<OwnRedis> {
    const server = await startOwnRedis(settings);
    servers.push(server);
    return server;
  }

  async function command(server: OwnRedis, ...words: readonly string[]): Promise<void> {
    const client = await createClient({ url: server.url }).connect();
    await client.sendCommand(words);
    client.destroy();
  }

  test("a cluster is refused by name", async () => {
    // Its second port would be ten thousand above the first, where the system gives ports to whoever asks for any.
    const { url } = await start({ "cluster-enabled": "yes", "cluster-port": String(await freePort()) });
    const opening = openRedis({ url, host: nodeHost });
    await expect(opening).rejects.toMatchObject({ code: "STORE_INVALID", message: /^REDIS_CLUSTER: / });
  });

  test("a replica is refused by name, and so is a primary that became one under an open store", async () => {
    const primary = await start({ "repl-diskless-sync-delay": "0" });
    const replica = await start({ replicaof: `127.0.0.1 ${primary.port}` });
    const opening = openRedis({ url: replica.url, host: nodeHost });
    await expect(opening).rejects.toMatchObject({ code: "STORE_INVALID", message: /^REDIS_REPLICA: / });
    const store = await openRedis({ url: primary.url, host: nodeHost });
    await command(primary, "REPLICAOF", "127.0.0.1", String(replica.port));
    await command(primary, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await expect(store.inbox.append([message("1")])).rejects.toMatchObject({ code: expect.stringMatching(/^STORE_/) });
    await expect(store.inbox.append([message("1")])).rejects.toMatchObject({ message: /^REDIS_REPLICA: / });
    await store.close();
  });

  const versions: readonly [facts: Readonly<Record<string, string>>, refused: boolean][] = [
    [{ redis_version: "6.2.14" }, true],
    [{ redis_version: "7.0.15" }, false],
    [{ redis_version: "8.2.1" }, false],
    [{ redis_version: "7.2.4", server_name: "valkey", valkey_version: "8.1.0" }, false],
    [{ redis_version: "10.0.0" }, false],
  ];
  test.each(versions)("a server that says %j is refused: %s", (facts, refused) => {
    const all = new Map(Object.entries({ role: "master", redis_mode: "standalone", cluster_enabled: "0", ...facts }));
    if (refused) expect(() => checkServer(all)).toThrow(/^REDIS_TOO_OLD: /);
    else checkServer(all);
  });

  test("a store of a later format is refused by name, and so is what is no store", async () => {
    const server = await start();
    await (await openRedis({ url: server.url, host: nodeHost })).close();
    const again = await openRedis({ url: server.url, host: nodeHost });
    await again.close();
    await command(server, "HSET", "millrace:store", "format", "3");
    const opening = openRedis({ url: server.url, host: nodeHost });
    await expect(opening).rejects.toMatchObject({ code: "STORE_TOO_NEW", message: /format 3/ });
    await command(server, "HDEL", "millrace:store", "format");
    await expect(openRedis({ url: server.url, host: nodeHost })).rejects.toMatchObject({ code: "STORE_INVALID" });
  });

  test("another number of partitions is refused by name", async () => {
    const { url } = await start();
    await (await openRedis({ url, host: nodeHost, partitions: 4 })).close();
    await expect(openRedis({ url, host: nodeHost, partitions: 5 })).rejects.toMatchObject({ code: "STORE_INVALID" });
  });

  test("settings that lose data, or no limit of memory, are refused by name and accepted by name", async () => {
    const server = await start({ maxmemory: "0", "maxmemory-policy": "allkeys-lru", appendfsync: "everysec" });
    const address = { kind: "redis", url: server.url } as const;
    const refused = checkStoreSafety(address, PROFILE);
    await expect(refused).rejects.toThrow(/REDIS_FSYNC: .*REDIS_NO_MAXMEMORY: .*REDIS_EVICTION: /);
    const accepted = ["REDIS_FSYNC", "REDIS_EVICTION"];
    const left = checkStoreSafety(address, { ...PROFILE, allowUnsafeStore: accepted });
    await expect(left).rejects.toThrow(/MILLRACE_ALLOW_UNSAFE_STORE=REDIS_NO_MAXMEMORY$/);
    await checkStoreSafety(address, { ...PROFILE, allowUnsafeStore: [...accepted, "REDIS_NO_MAXMEMORY"] });
  });

  test("an unclean start whose AOF may not be written anew is refused by name", async () => {
    const server = await start();
    await command(server, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", "-bgrewriteaof");
    const url = server.url.replace("redis://", "redis://limited:secret@");
    await expect(openRedis({ url, host: nodeHost })).rejects.toMatchObject({ code: "STORE_FORBIDDEN" });
    // Once somebody who may has seen to it, nothing is to be written anew.
    await (await openRedis({ url: server.url, host: nodeHost })).close();
    await (await openRedis({ url, host: nodeHost })).close();
  });

  test("a user who may not publish commits whole all the same", async () => {
    const server = await start();
    await command(server, "ACL", "SETUSER", "quiet", "on", ">secret", "~*", "resetchannels", "+@all");
    await (await openRedis({ url: server.url, host: nodeHost, partitions: 4 })).close();
    const store = await openRedis({
      url: server.url.replace("redis://", "redis://quiet:secret@"),
      host: nodeHost,
      partitions: 4,
    });
    const owner = await acquire(store);
    await owner.commit({ records: [record("execution/one", 1)], tasks: [task("t")] });
    const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/one" }]);
    expect([loaded!.records.length, (await store.queries.counts()).queued]).toEqual([1, { queue: 1 }]);
    // Nor may it hear what others publish: then it looks.
    const watching = store.journal.watch(0, "execution/one", 1, 20_000);
    await owner.commit({ records: [record("execution/one", 2)] });
    expect(await watching).toBe(2);
    await store.close();
  });

  // ── addresses ─────────────────────────────────────────────────────────────────────────────────────────────────────

  test("a password and the number of a database in the address are used by every connection", async () => {
    const server = await start({ requirepass: "p@ss:word/1" });
    const base = `redis://:${encodeURIComponent("p@ss:word/1")}@127.0.0.1:${server.port}`;
    await expect(openRedis({ url: server.url, host: nodeHost })).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    const second = await openRedis({ url: `${base}/2`, host: nodeHost, partitions: 4 });
    const zeroth = await openRedis({ url: base, host: nodeHost, partitions: 4 });
    // Whoever waits has a connection of its own.
    const reading = second.inbox.read([{ partition: 0, after: null, limit: 1, maxChars: 100 }], 20_000);
    await second.inbox.append([message('"two"')]);
    expect((await reading)[0]?.messages).toEqual(['"two"']);
    expect(await inboxTexts(zeroth)).toEqual([]);
    await second.close();
    await zeroth.close();
  });

  test("rediss:// is TLS, and a certificate nobody vouches for is refused", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-tls-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert];
    await promisify(execFile)("openssl", [...request, ...subject]);
    const tlsPort = await freePort();
    const tls = { "tls-port": String(tlsPort), "tls-cert-file": cert, "tls-key-file": key, "tls-auth-clients": "no" };
    await start({ ...tls, "tls-ca-cert-file": cert });
    const url = `rediss://127.0.0.1:${tlsPort}`;
    await expect(openRedis({ url, host: nodeHost })).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    const known = getCACertificates("default");
    setDefaultCACertificates([...known, await readFile(cert, "utf8")]);
    try {
      const store = await openRedis({ url, host: nodeHost, partitions: 4 });
      await store.inbox.append([message('"safe"')]);
      expect(await inboxTexts(store)).toEqual(['"safe"']);
      await store.close();
    } finally {
      setDefaultCACertificates(known);
      await rm(folder, { recursive: true });
    }
  });
});
