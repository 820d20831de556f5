import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient, type RedisClientType, RESP_TYPES } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import {
  header,
  inboxTexts,
  lease,
  leaseOne,
  message,
  numbered,
  QUEUE,
  read,
  record,
  settlement,
  snapshot,
  task,
} from "../../src/store/conformance/things.ts";
import type { CommitBatch, Header, Store } from "../../src/store/contract.ts";
import { redisService } from "../support/services.ts";

const SCRIPTS = join(import.meta.dirname, "../../src/drivers/redis/lua");
const DAY_MS = 86_400_000;
const NAMES: Readonly<Record<string, string>> = {
  zset: "sorted set",
  hash: "hash",
  list: "list",
  stream: "stream",
  set: "set",
};
const TYPES = new Set(["string", ...Object.values(NAMES)]);

describe("what the Redis driver does to its keys", () => {
  let service: Service;
  let client: RedisClientType;
  let store: Store;
  let prefix: string;
  beforeAll(async () => {
    service = await redisService();
    client = createClient({ url: service.url });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await service.stop();
  });
  beforeEach(async () => {
    prefix = `test-${nodeHost.id()}`;
    store = await openRedis({ url: service.url, host: nodeHost, prefix, partitions: 4 });
  });
  afterEach(async () => {
    await store.close();
    for (const key of await client.keys(`${prefix}:*`)) await client.unlink(key);
  });

  test("every script says in its first line that full memory does not stop it, or that it writes nothing", () => {
    const firsts = readdirSync(SCRIPTS)
      .filter((name) => name !== "library.lua")
      .map((name) => [name, readFileSync(join(SCRIPTS, name), "utf8").split("\n")[0]] as const);
    const others = firsts.filter(([, first]) => !/^#!lua flags=(allow-oom|no-writes)$/.test(first!));
    // A store that is not there yet need not be made in a full Redis.
    expect(others).toEqual([["create.lua", "#!lua"]]);
  });

  // ── index writes ──────────────────────────────────────────────────────────────────────────────────────────────────

  test("an execution is written to the lists three times in its life, however long that is", async () => {
    const monitor = client.duplicate();
    await monitor.connect();
    const writes: string[] = [];
    await monitor.monitor((line) => {
      const found = /"(zadd|zrem)" "([^"]*)"/i.exec(line);
      if (found?.[2]?.startsWith(`${prefix}:headers`) === true) writes.push(found[1]!);
    });
    const owner = await acquire(store);
    const entity = "execution/e";
    const write = (version: number, parts: Partial<Header>): Promise<unknown> =>
      owner.commit({ records: [record(entity, version)], headers: [header(entity, parts)] });
    await write(1, { class: "open" });
    for (let version = 2; version < 20; version++) await write(version, { class: "open", status: `${version}` });
    await write(20, { class: "endedWell" });
    await expect.poll(() => writes).toEqual(["ZADD", "ZREM", "ZADD"]);
    await owner.commit({ purge: [entity] });
    await expect.poll(() => writes.length).toBe(4);
    monitor.destroy();
  });

  test("the header of an execution is found under its present class only", async () => {
    const owner = await acquire(store);
    const entity = "execution/e";
    for (const one of ["open", "endedBadly", "open", "endedWell"] as const) {
      await owner.commit({ headers: [header(entity, { class: one })] });
      const classes = ["open", "endedWell", "endedBadly"] as const;
      const found = await Promise.all(classes.map((given) => store.queries.headers({ class: given, limit: 5 })));
      expect(found.map(({ items }) => items.length)).toEqual(classes.map((given) => (given === one ? 1 : 0)));
    }
  });

  test("lists of several classes are one list, newest first, over pages", async () => {
    const owner = await acquire(store);
    const classes = ["open", "endedWell", "endedBadly"] as const;
    const all = Array.from({ length: 450 }, (_, i) =>
      header(`execution/${i % 7}-${i}`, {
        class: classes[i % 5 === 0 ? 0 : (i % 2) + 1]!,
        createdAtMs: 1000 + Math.floor(i / 3),
        workflow: `w${i % 4}`,
      }),
    );
    for (let i = 0; i < all.length; i += 150) await owner.commit({ headers: all.slice(i, i + 150) });
    const newest = (headers: readonly Header[]): readonly string[] =>
      [...headers]
        .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.entity < b.entity ? 1 : -1))
        .map(({ entity }) => entity);
    const paged = async (query: { readonly workflow?: string }): Promise<readonly string[]> => {
      const found: string[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const page = await store.queries.headers({ ...query, limit: 40, ...(cursor !== "" && { cursor }) });
        found.push(...page.items.map(({ entity }) => entity));
        cursor = page.cursor;
      }
      return found;
    };
    expect(await paged({})).toEqual(newest(all));
    expect(await paged({ workflow: "w1" })).toEqual(newest(all.filter(({ workflow }) => workflow === "w1")));
  });

  test("a due list whose front is taken away while it is read leaves nobody out", async () => {
    const owner = await acquire(store);
    const names = Array.from({ length: 400 }, (_, i) => `execution/${String(i).padStart(4, "0")}`);
    // Many have the same time, so a place in the list is a time and a name.
    await owner.commit({ wakes: names.map((entity, i) => ({ entity, atMs: 1000 + Math.floor(i / 150) })) });
    const seen: string[] = [];
    let after: { readonly atMs: number; readonly entity: string } | undefined;
    for (;;) {
      const due = await store.journal.due(0, DAY_MS, 130, after);
      if (due.length === 0) break;
      seen.push(...due.map(({ entity }) => entity));
      after = due.at(-1)!;
      await owner.commit({ wakes: seen.slice(-50).map((entity) => ({ entity, atMs: null })) });
    }
    expect(seen).toEqual(names);
  });

  // ── guards before writes ──────────────────────────────────────────────────────────────────────────────────────────

  const everything: Partial<CommitBatch> = {
    records: [record("execution/e", 1)],
    headers: [header("execution/e")],
    wakes: [{ entity: "execution/e", atMs: 5 }],
    snapshots: [{ entity: "execution/f", version: 1, format: 1, text: "{}" }],
    tasks: [task("t", { priority: 3 })],
    mail: [message('"mail"', { partition: 1 })],
    replies: [{ process: "p", request: "r", text: "1" }],
    deadLetters: [{ id: "l", class: "poison", queue: "q", entity: "execution/e", atMs: 1, text: "{}" }],
    listings: [{ list: "reviews", id: "1", entity: "execution/g", atMs: 1, text: "{}" }],
    revoke: ["queued", "leased"],
    purge: ["execution/h"],
  };
  /** What the batch takes away. */
  const earlier: Partial<CommitBatch> = {
    records: [record("execution/h", 1)],
    headers: [header("execution/h", { class: "endedBadly" })],
    listings: [
      { list: "old", id: "1", entity: "execution/h", atMs: 1, text: "{}" },
      { list: "reviews", id: "1", entity: "execution/i", atMs: 1, text: "{}" },
    ],
    tasks: [task("queued", { priority: 7 }), task("leased", { queue: "other" })],
  };
  const KEYS = [
    "journals",
    "journal:execution/e",
    "headers",
    "places",
    "snapshots",
    "headers:open",
    "headers:endedBadly",
    "wakes:0",
    "tasks",
    "queues",
    "line:3:queue",
    "leases:3:queue",
    "leases:0:other",
    "gone",
    "revoked",
    "bell:queue",
    "inbox:0",
    "inbox:1",
    "replies:p",
    "letters",
    "letters:at",
    "list:reviews",
    "listing:reviews",
    "listed:execution/g",
    "listed:execution/i",
    "list:old",
    "listing:old",
    "listed:execution/h",
  ];

  test.each(KEYS)("a commit that would meet a foreign value at %s writes nothing", async (name) => {
    const owner = await acquire(store);
    await owner.commit({ ...earlier, snapshots: [snapshot("execution/h", 1)] });
    await lease(store, { queues: ["other"] });
    await store.inbox.append([message('"read"')]);
    const consumed = (await read(store)).position;
    const kept = await dumped(name);
    // Of a type that the driver does not use.
    await client.set(`${prefix}:${name}`, "somebody's");
    const before = await snapshotOf();
    const batch = owner.batch({ ...everything, consumed });
    await expect(store.journal.commit([batch])).rejects.toThrow(/FOREIGN/);
    expect(await snapshotOf()).toEqual(before);
    await client.unlink(`${prefix}:${name}`);
    if (kept !== null) await client.restore(`${prefix}:${name}`, 0, kept);
    expect(await store.journal.commit([batch])).toEqual([{ kind: "committed" }]);
  });

  test("a journal that is found foreign after others were written to leaves those as they were", async () => {
    const owner = await acquire(store);
    await owner.commit({ records: [record("execution/a", 1)] });
    await client.set(`${prefix}:journal:execution/c`, "somebody's");
    const before = await snapshotOf();
    const records = [record("execution/a", 2), record("execution/b", 1), record("execution/c", 1)];
    await expect(store.journal.commit([owner.batch({ records })])).rejects.toThrow(/FOREIGN/);
    expect(await snapshotOf()).toEqual(before);
    await client.unlink(`${prefix}:journal:execution/c`);
    await owner.commit({ records });
    const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/a" }]);
    expect(loaded!.records).toEqual([record("execution/a", 1), record("execution/a", 2)]);
  });

  test("a task whose line or leases somebody removed can be withdrawn", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("a"), task("b", { priority: 1 })] });
    await lease(store, { max: 1 });
    await client.del(`${prefix}:line:0:queue`);
    await client.del(`${prefix}:leases:1:queue`);
    await owner.commit({ records: [record("execution/e", 1)], revoke: ["a", "b"] });
    expect(await lease(store)).toEqual([]);
    expect(await client.exists(`${prefix}:tasks`)).toBe(0);
  });

  test("what was consumed is gone and nothing else, whether or not it was the oldest", async () => {
    const owner = await acquire(store);
    await store.inbox.append(["a", "b", "c", "d", "e"].map((text) => message(`"${text}"`)));
    const request = { partition: 0, limit: 2, maxChars: 1e6 };
    const [first] = await store.inbox.read([{ ...request, after: null }], 0);
    const [second] = await store.inbox.read([{ ...request, after: first!.position }], 0);
    await owner.commit({ consumed: second!.position });
    expect(await inboxTexts(store)).toEqual(['"a"', '"b"', '"e"']);
    await owner.commit({ consumed: first!.position });
    expect(await inboxTexts(store)).toEqual(['"e"']);
  });

  async function dumped(name: string): Promise<Buffer | null> {
    const raw = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    return raw.dump(`${prefix}:${name}`);
  }

  /** Every key with what is in it. */
  async function snapshotOf(): Promise<unknown> {
    const keys = (await client.keys(`${prefix}:*`)).filter((key) => !key.endsWith(":clock")).sort();
    return Promise.all(keys.map(async (key) => [key, await client.sendCommand(["DUMP", key])]));
  }

  test("a commit of messages that are not there any more is fenced, and writes nothing", async () => {
    const owner = await acquire(store);
    await store.inbox.append([message('"a"'), message('"b"')]);
    const { position } = await read(store);
    const stored = await client.xRange(`${prefix}:inbox:0`, "-", "+");
    await client.xDel(`${prefix}:inbox:0`, stored!.at(-1)!.id);
    const batch = owner.batch({ consumed: position, records: [record("execution/one", 1)] });
    expect(await owner.send(batch)).toEqual({ kind: "fenced" });
    expect(await inboxTexts(store)).toEqual(['"a"']);
    const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/one" }]);
    expect(loaded!.records).toEqual([]);
  });

  test("a time that is no number is refused before anything is sent", async () => {
    const owner = await acquire(store);
    const wakes = [{ entity: "execution/e", atMs: Number.NaN }];
    await expect(store.journal.commit([owner.batch({ records: [record("execution/e", 1)], wakes })])).rejects.toThrow();
    await owner.commit({ records: [record("execution/e", 1)] });
  });

  test("a batch with more of everything than Lua can hand over at once is committed", async () => {
    const MANY = 9000;
    const owner = await acquire(store);
    const messages = Array.from({ length: MANY }, (_, i) => message(`"${i}"`));
    await store.inbox.append(messages);
    const read = await store.inbox.read([{ partition: 0, after: null, limit: MANY, maxChars: 1e9 }], 0);
    const tasks = Array.from({ length: MANY }, (_, i) => task(`t${i}`));
    await owner.commit({ consumed: read[0]!.position, tasks });
    const leased = await lease(store, { max: MANY });
    expect(leased).toHaveLength(MANY);
    const outcomes = await store.tasks.settle(leased.map((one) => settlement(one, "completed")));
    expect(new Set(outcomes)).toEqual(new Set(["settled"]));
    expect(await store.queries.counts()).toMatchObject({ inbox: MANY, leased: 0, queued: { queue: 0 } });
  });

  // ── tasks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  test("a task is on its line or among its leases, and its text is gone with it", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("t"), task("u")] });
    const found = async (): Promise<unknown> => [
      await client.lRange(`${prefix}:line:0:queue`, 0, -1),
      await client.zRange(`${prefix}:leases:0:queue`, 0, -1),
      (await client.hKeys(`${prefix}:tasks`)).sort(),
    ];
    expect(await found()).toEqual([["t", "u"], [], ["t", "u"]]);
    const [leased] = await lease(store, { max: 1 });
    expect(await found()).toEqual([["u"], ["t"], ["t", "u"]]);
    await owner.commit({ revoke: ["t"] });
    await store.tasks.settle([settlement(leased!, "completed")]);
    expect(await found()).toEqual([["u"], [], ["u"]]);
    expect(await client.exists(`${prefix}:revoked`)).toBe(0);
  });

  test("what was withdrawn leaves a line that nobody serves, and what is left stays in its order", async () => {
    const owner = await acquire(store);
    const tokens = Array.from({ length: 2_400 }, (_, i) => `t${i}`);
    for (let i = 0; i < tokens.length; i += 400)
      await owner.commit({ tasks: tokens.slice(i, i + 400).map((token) => task(token)) });
    const line = `${prefix}:line:0:queue`;
    for (let i = 0; i < 1_600; i += 400) await owner.commit({ revoke: tokens.slice(400 + i, 800 + i) });
    expect(await client.lLen(line)).toBe(2_400);
    await store.tasks.lapse(10);
    expect(await client.lRange(line, 0, -1)).toEqual([...tokens.slice(0, 400), ...tokens.slice(2_000)]);
    expect((await store.queries.counts()).queued).toEqual({ queue: 800 });
    await owner.commit({ revoke: [...tokens.slice(0, 400), ...tokens.slice(2_000)] });
    await store.tasks.lapse(10);
    expect([await client.exists(line), await client.exists(`${prefix}:gone`)]).toEqual([0, 0]);
  });

  test("who takes one task passes all that were withdrawn before it", async () => {
    const owner = await acquire(store);
    const tokens = Array.from({ length: 900 }, (_, i) => `t${i}`);
    for (let i = 0; i < tokens.length; i += 300)
      await owner.commit({ tasks: tokens.slice(i, i + 300).map((token) => task(token)) });
    for (let i = 0; i < 899; i += 300) await owner.commit({ revoke: tokens.slice(i, Math.min(899, i + 300)) });
    const leased = await lease(store, { max: 1 });
    expect(leased.map(({ token }) => token)).toEqual(["t899"]);
    expect((await store.queries.counts()).queued).toEqual({ queue: 0 });
    expect(await client.hGet(`${prefix}:gone`, "0:queue")).toBe("0");
  });

  test("what was withdrawn while it waited is counted nowhere, and nobody is given less for it", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: ["a", "b", "c", "d", "e"].map((token) => task(token)) });
    await owner.commit({ revoke: ["a", "b", "d"] });
    expect(await store.queries.counts()).toMatchObject({ queued: { queue: 2 }, leased: 0 });
    expect((await lease(store, { max: 2 })).map(({ token }) => token)).toEqual(["c", "e"]);
    await owner.commit({ tasks: [task("f")] });
    expect(await store.queries.counts()).toMatchObject({ queued: { queue: 1 }, leased: 2 });
  });

  test("tasks are not taken off a line from which they cannot be leased", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("a")] });
    await client.set(`${prefix}:leases:0:queue`, "somebody's");
    expect(await lease(store)).toEqual([]);
    await client.unlink(`${prefix}:leases:0:queue`);
    expect((await lease(store)).map(({ token }) => token)).toEqual(["a"]);
  });

  test("a result that cannot be posted leaves the task where it is, and those that came with it", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("t"), task("u", { partition: 1 })] });
    const results = (await lease(store, { max: 2 })).map((one) => settlement(one, "completed"));
    await client.set(`${prefix}:inbox:1`, "somebody's");
    await expect(store.tasks.settle(results)).rejects.toThrow(/FOREIGN/);
    expect(await inboxTexts(store)).toEqual([]);
    await client.unlink(`${prefix}:inbox:1`);
    expect(await store.tasks.settle(results)).toEqual(["settled", "settled"]);
  });

  test("results that come at the same time are settled together, each with its own answer", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: Array.from({ length: 60 }, (_, i) => task(`t${i}`)) });
    const leased = await lease(store, { max: 60 });
    const monitor = client.duplicate();
    await monitor.connect();
    let scripts = 0;
    let results = 0;
    await monitor.monitor((line) => {
      if (line.includes(prefix) && /"(evalsha|eval)"/i.test(line)) scripts++;
      if (line.includes(`${prefix}:inbox:0`) && /"xadd"/i.test(line)) results++;
    });
    const settling = leased.map((one, i) =>
      store.tasks.settle([settlement({ ...one, token: i % 2 === 0 ? one.token : "another" }, "failed")]),
    );
    const outcomes = (await Promise.all(settling)).flat();
    expect(outcomes).toEqual(leased.map((_, i) => (i % 2 === 0 ? "settled" : "stale")));
    await expect.poll(() => results).toBe(30);
    // The first alone, the others together; twice as many if the server has to be told the script.
    expect(scripts).toBeLessThanOrEqual(4);
    monitor.destroy();
  });

  test("who has seen the end of a queue looks again when there is something, and not before", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("a"), task("b"), task("c")] });
    const monitor = client.duplicate();
    await monitor.connect();
    const calls: string[] = [];
    await monitor.monitor((line) => {
      const found = /\[\d+ [^l][^\]]*\] "(evalsha|eval|blpop|echo)"/i.exec(line);
      if (line.includes(prefix) && found !== null) calls.push(found[1]!.toLowerCase());
    });
    // There may be more: it looks at once.
    expect(await lease(store, { max: 2, waitMs: 5_000 })).toHaveLength(2);
    expect(await lease(store, { max: 2, waitMs: 5_000 })).toHaveLength(1);
    await client.echo(prefix);
    await expect.poll(() => calls.at(-1)).toBe("echo");
    expect(calls).not.toContain("blpop");
    calls.length = 0;
    const leasing = lease(store, { max: 2, waitMs: 5_000 });
    await expect.poll(() => calls[0]).toBe("blpop");
    await owner.commit({ tasks: [task("d")] });
    expect(await leasing).toMatchObject([{ token: "d" }]);
    monitor.destroy();
  });

  test("a queue has no more than a hundred bells, of whichever priority its tasks are", async () => {
    const owner = await acquire(store);
    const bell = `${prefix}:bell:${QUEUE}`;
    await owner.commit({ tasks: numbered(70).map((token) => task(token)) });
    expect(await client.lLen(bell)).toBe(70);
    const urgent = numbered(20, "urgent").map((token) => task(token, { priority: 5 }));
    await owner.commit({ tasks: [...numbered(20, "n").map((token) => task(token)), ...urgent] });
    expect(await client.lLen(bell)).toBe(100);
    await owner.commit({ tasks: numbered(20, "o").map((token) => task(token)) });
    expect(await client.lLen(bell)).toBe(100);
  });

  test("one load knows the wake time of each by its partition", async () => {
    const names = ["execution/a", "execution/b", "execution/c", "execution/d"];
    for (const partition of [1, 2]) {
      const owner = await acquire(store, partition);
      await owner.commit({ wakes: names.map((entity, i) => ({ entity, atMs: 100 * partition + i })) });
    }
    const requests = [1, 1, 2, 1].map((partition, i) => ({ partition, entity: names[i]! }));
    const loaded = await store.journal.load([{ partition: 3, entity: names[0]! }, ...requests]);
    expect(loaded.map(({ wakeAtMs }) => wakeAtMs)).toEqual([null, 100, 101, 202, 103]);
  });

  test("a queue whose line somebody removed serves what comes next", async () => {
    const owner = await acquire(store);
    const line = `${prefix}:line:0:queue`;
    await owner.commit({ tasks: [task("lost")] });
    await client.del(line);
    expect(await lease(store)).toEqual([]);
    expect(await store.tasks.lapse(10)).toBe(0);
    await owner.commit({ tasks: [task("a")] });
    expect((await lease(store)).map(({ token }) => token)).toEqual(["a"]);
  });

  test("a lease of which somebody removed the task lapses without a word", async () => {
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("a")] });
    await lease(store, { leaseMs: 0 });
    await client.del(`${prefix}:tasks`);
    expect(await store.tasks.lapse(10)).toBe(0);
    expect(await client.exists(`${prefix}:leases:0:queue`)).toBe(0);
    expect(await inboxTexts(store)).toEqual([]);
  });

  test("a queue that nobody uses leaves no key", async () => {
    const owner = await acquire(store);
    const leased = await leaseOne(store, owner, "t");
    await owner.commit({ tasks: [task("u", { priority: 4 })] });
    await store.tasks.settle([settlement(leased, "completed")]);
    await store.tasks.lapse(10);
    expect(await client.hGetAll(`${prefix}:queues`)).toEqual({ queue: "4" });
    await store.tasks.settle((await lease(store)).map((one) => settlement(one, "completed")));
    await store.tasks.lapse(10);
    expect((await store.queries.counts()).queued).toEqual({ queue: 0 });
    // As if it had been so for two minutes.
    await client.hIncrBy(`${prefix}:unused`, "queue", -120_000);
    await owner.commit({ tasks: [task("v")] });
    await store.tasks.lapse(10);
    expect(await client.hGetAll(`${prefix}:queues`)).toEqual({ queue: "0" });
    await store.tasks.settle((await lease(store)).map((one) => settlement(one, "completed")));
    await store.tasks.lapse(10);
    await client.hIncrBy(`${prefix}:unused`, "queue", -120_000);
    await store.tasks.lapse(10);
    expect(await client.exists([`${prefix}:queues`, `${prefix}:unused`, `${prefix}:bell:queue`])).toBe(0);
    expect((await store.queries.counts()).queued).toEqual({});
  });

  // ── nothing grows for ever ────────────────────────────────────────────────────────────────────────────────────────

  test("after everything was purged the keys are those of an empty store", async () => {
    const owner = await acquire(store);
    const live = async (from: number): Promise<void> => {
      const names = Array.from({ length: 30 }, (_, i) => `execution/${from + i}`);
      await store.inbox.append(names.map(() => message('"start"', { start: true })));
      const read = await store.inbox.read([{ partition: 0, after: null, limit: 100, maxChars: 1e6 }], 0);
      await owner.commit({
        consumed: read[0]!.position,
        records: names.map((entity) => record(entity, 1)),
        headers: names.map((entity) => header(entity)),
        wakes: names.map((entity) => ({ entity, atMs: 1 })),
        snapshots: names.map((entity) => ({ entity, version: 1, format: 1, text: "{}" })),
        tasks: names.map((entity) => task(`t:${entity}`, { entity })),
        deadLetters: names.map((entity) => ({
          id: entity,
          class: "poison" as const,
          queue: "q",
          entity,
          atMs: 1,
          text: "{}",
        })),
        listings: names.map((entity) => ({ list: "reviews", id: entity, entity, atMs: 1, text: "{}" })),
      });
      await store.records.put(names.map((scope) => ({ scope, hash: "h", text: "1" })));
      const leased = await lease(store, { max: 100 });
      await store.tasks.settle(leased.map((one) => settlement(one, "completed")));
      const results = await store.inbox.read([{ partition: 0, after: null, limit: 100, maxChars: 1e6 }], 0);
      const ended = names.map((entity) => header(entity, { class: "endedWell" }));
      await owner.commit({ consumed: results[0]!.position, headers: ended });
      await owner.commit({ purge: names, discard: names });
    };
    const sizes = async (): Promise<unknown> => {
      const keys = (await client.keys(`${prefix}:*`)).sort();
      return Promise.all(keys.map(async (key) => [key, await sizeOf(key)]));
    };
    await live(0);
    const first = await sizes();
    await live(1000);
    expect(await sizes()).toEqual(first);
    expect(JSON.stringify(first)).not.toContain("execution/");
  });

  // ── what docs/redis.md says ───────────────────────────────────────────────────────────────────────────────────────

  const page = readFileSync(join(import.meta.dirname, "../../docs/redis.md"), "utf8");

  test("docs/redis.md has every script, and none that is not there", () => {
    const table = page.slice(page.indexOf("| Script | Does |"), page.indexOf("`library` stands"));
    const told = [...table.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, names]) =>
      [...names!.matchAll(/`([^`]+)`/g)].map((found) => found[1]!),
    );
    const scripts = readdirSync(SCRIPTS).map((name) => name.replace(".lua", ""));
    expect([...told, "library"].sort()).toEqual(scripts.sort());
  });

  test("docs/redis.md has every key with its type, and none that is not there", async () => {
    const owner = await acquire(store);
    await owner.commit({ ...everything, tasks: [task("a"), task("b"), task("c")], revoke: [], purge: [] });
    await lease(store, { max: 1 });
    await owner.commit({ revoke: ["a", "b"] });
    await owner.commit({ tasks: [task("d", { queue: "idle" })], revoke: ["d"] });
    await lease(store, { queues: ["idle"] });
    await store.tasks.lapse(1);
    await store.records.put([{ scope: "execution/e", hash: "h", text: "1" }]);
    await store.records.publish("name", "hash");
    await store.records.register({ process: "p", role: "worker", text: "{}" }, 60_000);
    const found = new Map<string, string>([["run", "string"]]);
    for (const key of await client.keys(`${prefix}:*`)) {
      const [kind, rest] = key.slice(prefix.length + 1).split(":") as [string, string?];
      // What follows is a name, or tells one of two keys of a kind from the other.
      const name = rest === undefined ? kind : `${kind}:${rest === "at" || rest === "until" ? rest : ""}`;
      found.set(name, NAMES[await client.type(key)]!);
    }
    const rows = [...page.matchAll(/^\| `([^`]+)`[^|]*\| ([a-z ]+) \|/gm)].filter(([, , type]) => TYPES.has(type!));
    expect(Object.fromEntries(rows.map(([, key, type]) => [key, type]))).toEqual(Object.fromEntries(found));
  });

  async function sizeOf(key: string): Promise<number> {
    const type = await client.type(key);
    const command = { stream: "XLEN", hash: "HLEN", list: "LLEN", zset: "ZCARD", set: "SCARD", string: "STRLEN" }[
      type
    ]!;
    return client.sendCommand<number>([command, key]);
  }
});
