import { createClient, type RedisClientType } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRedis } from "../../scripts/services/redis.ts";
import type { Service } from "../../scripts/services/service.ts";
import { KnownPartitions } from "../../src/drivers/redis/known-partitions.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { Random } from "../../src/simulator/random.ts";
import { acquire, type BatchParts, type Owner } from "../../src/store/conformance/owner.ts";
import { header, inboxTexts, lease, message, read, record, reply, task } from "../../src/store/conformance/things.ts";
import type { Store, Task } from "../../src/store/contract.ts";

// A server of its own: its counts of commands are asked for, and it is emptied.
describe("commits of a Redis store that are transactions", () => {
  let service: Service;
  let client: RedisClientType;
  let store: Store;
  let prefix: string;
  const others: Store[] = [];
  beforeAll(async () => {
    service = await startRedis({ shared: false });
    client = createClient({ url: service.url });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await service.stop();
  });
  beforeEach(async () => {
    prefix = `test-${nodeHost.id()}`;
    store = await open();
  });
  afterEach(async () => {
    for (const one of [store, ...others.splice(0)]) await one.close();
    await client.flushAll();
  });

  function open(transactionsFrom: number | "usual" = 0, name = prefix, url = service.url): Promise<Store> {
    const from = transactionsFrom === "usual" ? {} : { transactionsFrom };
    return openRedis({ url, host: nodeHost, prefix: name, partitions: 4, ...from });
  }

  async function another(...given: Parameters<typeof open>): Promise<Store> {
    const one = await open(...given);
    others.push(one);
    return one;
  }

  /** How many transactions the server has run or refused, and how many commits by scripts there were meanwhile. */
  async function transactions(): Promise<number> {
    return Number(/cmdstat_exec:calls=(\d+)/.exec(await client.info("commandstats"))?.[1] ?? 0);
  }

  /** An owner whose next commit is a transaction, if it is plain. */
  async function watched(parts: BatchParts = {}): Promise<Owner> {
    const owner = await acquire(store);
    await owner.commit({ records: [record("execution/e", 1)], headers: [header("execution/e")] });
    await owner.commit({ records: [record("execution/e", 2)], ...parts });
    return owner;
  }

  function dispatched(owner: Owner, name: string, parts: Partial<Task> = {}): Task {
    return task(`${owner.tenure.nonce}:${name}`, parts);
  }

  test("a commit that follows on what is known is one, and not before somebody has looked", async () => {
    const owner = await acquire(store);
    await owner.commit({ records: [record("execution/e", 1)] });
    expect(await transactions()).toBe(0);
    await owner.commit({ records: [record("execution/e", 2)] });
    await owner.commit({ records: [record("execution/e", 3)] });
    const count = await transactions();
    expect(count).toBeGreaterThan(0);
    const [loaded] = await store.journal.load([{ partition: 0, entity: "execution/e" }]);
    expect(loaded!.records.map(({ version }) => version)).toEqual([1, 2, 3]);
  });

  test("a step by itself is a script, and a flood is not", async () => {
    const one = await another("usual", `${prefix}-usual`);
    const owner = await acquire(one);
    const before = await transactions();
    for (let version = 1; version <= 4; version++) await owner.commit({ records: [record("execution/e", version)] });
    expect(await transactions()).toBe(before);
    const many = (version: number): BatchParts => ({
      records: Array.from({ length: 20 }, (_, i) => record(`execution/f${i}`, version)),
    });
    for (let version = 1; version <= 4; version++) await owner.commit(many(version));
    expect(await transactions()).toBeGreaterThan(before);
  });

  test("it leaves exactly what scripts would have left", { timeout: 120_000 }, async () => {
    let swift = 0;
    for (let seed = 1; seed <= 12; seed++) {
      const names = [`${prefix}-t${seed}`, `${prefix}-s${seed}`];
      const before = await transactions();
      const left: unknown[] = [];
      for (const [i, name] of names.entries()) {
        const one = await another(i === 0 ? 0 : Infinity, name);
        left.push(await runHistory(one, seed, name));
      }
      expect(left[0], `seed ${seed}`).toEqual(left[1]);
      swift += (await transactions()) - before;
    }
    expect(swift).toBeGreaterThan(100);
  });

  /** What a partition's owner might do, drawn from a seed, and everything that is there afterwards. */
  async function runHistory(one: Store, seed: number, name: string): Promise<unknown> {
    const random = new Random(seed);
    const below = (count: number): number => Math.floor(random.next() * count);
    const owners = [await acquire(one, 0), await acquire(one, 1)];
    const versions = new Map<string, number>();
    let position: Awaited<ReturnType<typeof read>>["position"] | null = null;
    for (let round = 0; round < 30; round++) {
      const owner = owners[below(2)]!;
      const { partition, nonce } = owner.tenure;
      const entities = Array.from({ length: 1 + below(3) }, () => `execution/${partition}-${below(8)}`);
      await one.journal.load(entities.map((entity) => ({ partition, entity })));
      const records = entities.flatMap((entity) => {
        const version = (versions.get(entity) ?? 0) + 1;
        const count = 1 + below(2);
        versions.set(entity, version + count - 1);
        return [record(entity, version, count)];
      });
      if (below(2) === 0) await one.inbox.append([message(`"${seed} ${round}"`, { partition })]);
      const result = await read(one, { partition, limit: 1 + below(3) });
      position = result.position;
      const kinds = ["open", "open", "endedWell", "endedBadly"] as const;
      const headers = entities
        .filter(() => below(2) === 0)
        .map((entity) =>
          header(entity, { class: kinds[below(4)]!, workflow: `w f${below(2)}`, createdAtMs: below(3) }),
        );
      const tasks = Array.from({ length: below(4) }, (_, i) => {
        const [queue, priority] = [`q${below(3)}`, below(3) === 0 ? 5 : 0];
        return task(`${nonce}:${round}-${i}`, { partition, queue, priority });
      });
      const batch = owner.batch({
        records,
        headers,
        tasks,
        consumed: below(3) === 0 ? null : position,
        wakes: entities.map((entity) => ({ entity, atMs: below(2) === 0 ? null : below(1000) })),
        replies: Array.from({ length: below(3) }, (_, i) => reply(`${round}-${i}`, `process${below(2)}`)),
        timeMs: round,
        // Now and then something that only a script does.
        mail: below(8) === 0 ? [message('"mail"', { partition: 1 - partition })] : [],
      });
      await owner.commit(batch);
    }
    // Those who look now find the same.
    const leased = await lease(one, { queues: ["q0", "q1", "q2"], max: 5 });
    const named = (text: string): string =>
      owners
        .reduce((all, { tenure }, i) => all.replaceAll(tenure.nonce, `nonce${i}`), text)
        .replaceAll(name, "store")
        .replaceAll(/\d{13}-\d+|\b\d{13}(\.\d+)?\b/g, "time");
    return {
      leased: leased.map(({ token, text, queue, priority }) => named([token, text, queue, priority].join(" "))),
      keys: await everything(name, named),
    };
  }

  /** In an order that goes by no nonce. */
  async function everything(name: string, named: (text: string) => string): Promise<unknown> {
    const keys = (await client.keys(`${name}:*`)).filter((key) => !/:(clock|store)$/.test(key)).sort();
    const linesOf = async (key: string): Promise<readonly string[]> => {
      const told = (values: readonly unknown[]): string[] => values.map((value) => named(JSON.stringify(value)));
      switch (await client.type(key)) {
        case "hash":
          return told(Object.entries(await client.hGetAll(key))).sort();
        case "zset":
          return told(await client.zRangeWithScores(key, 0, -1)).sort();
        case "list":
          return told(await client.lRange(key, 0, -1));
        case "stream":
          return told(((await client.xRange(key, "-", "+")) ?? []).map((entry) => entry.message));
        case "set":
          return told(await client.sMembers(key)).sort();
        default:
          return told([await client.get(key)]);
      }
    };
    return Promise.all(keys.map(async (key) => [named(key), await linesOf(key)]));
  }

  test("one whose partition somebody else has taken is fenced, and writes nothing", async () => {
    const owner = await watched();
    await owner.commit({ tasks: [dispatched(owner, "a")] });
    await owner.commit({ tasks: [dispatched(owner, "b")] });
    const other = await another();
    await client.hSet(`${prefix}:partition:0`, "until", "0");
    await acquire(other, 0);
    const count = await transactions();
    const batch = owner.batch({ records: [record("execution/e", 3)], tasks: [dispatched(owner, "t")] });
    expect(await owner.send(batch)).toEqual({ kind: "fenced" });
    expect(await transactions()).toBe(count + 1);
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(2);
    expect(await client.hLen(`${prefix}:tasks`)).toBe(2);
  });

  test("one that was delayed until its owner has become another is refused by the server", async () => {
    const owner = await watched();
    const batch = owner.batch({ records: [record("execution/e", 3)] });
    // The same tenure goes on behind its back, as after an answer that was lost.
    await client.hIncrBy(`${prefix}:partition:0`, "seq", 1);
    expect(await owner.send(batch)).toEqual({ kind: "fenced" });
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(2);
  });

  test("the same bytes once more are known to be there", async () => {
    const owner = await watched();
    const batch = owner.batch({ records: [record("execution/e", 3)] });
    const count = await transactions();
    expect(await owner.send(batch)).toEqual({ kind: "committed" });
    expect(await transactions()).toBe(count + 1);
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(3);
  });

  test("nothing is written into a Redis that was emptied", async () => {
    const owner = await watched();
    await client.flushAll();
    const batch = owner.batch({ records: [record("execution/e", 3)] });
    await expect(owner.send(batch)).rejects.toMatchObject({ code: "STORE_LOST" });
    expect(await client.dbSize()).toBe(0);
  });

  test("nothing is written into another store that has come in the place of this one", async () => {
    const owner = await watched();
    await client.hSet(`${prefix}:store`, "id", "another");
    const batch = owner.batch({ records: [record("execution/e", 3)] });
    await expect(owner.send(batch)).rejects.toMatchObject({ code: "STORE_LOST" });
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(2);
  });

  test("messages that a server has lost since they were read are looked for", async () => {
    const owner = await watched();
    const neighbour = await acquire(store, 1);
    await store.inbox.append([message('"lost"')]);
    const { position } = await read(store);
    // What a server does that is started again: it has neither the connections nor the last second.
    await client.sendCommand(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    await client.xTrim(`${prefix}:inbox:0`, "MAXLEN", 0);
    await expect.poll(() => neighbour.send(neighbour.batch()).catch(() => undefined)).toBeDefined();
    const batch = owner.batch({ records: [record("execution/e", 3)], consumed: position });
    expect(await owner.send(batch)).toEqual({ kind: "fenced" });
  });

  test("a task is found although its queue was forgotten meanwhile", async () => {
    const owner = await watched();
    await owner.commit({ tasks: [dispatched(owner, "a")] });
    await owner.commit({ tasks: [dispatched(owner, "b")] });
    expect((await lease(store)).length).toBe(2);
    await client.del(`${prefix}:queues`);
    await owner.commit({ tasks: [dispatched(owner, "c")] });
    expect((await lease(store)).map(({ token }) => token)).toEqual([`${owner.tenure.nonce}:c`]);
  });

  test("a priority that nobody knows yet becomes known", async () => {
    const owner = await watched();
    for (const name of ["a", "b", "c"]) await owner.commit({ tasks: [dispatched(owner, name)] });
    await owner.commit({ tasks: [dispatched(owner, "d", { priority: 9 })] });
    expect((await lease(store)).map(({ token }) => token.at(-1))).toEqual(["d", "a", "b", "c"]);
  });

  test("a task that was out before is not sent out twice", async () => {
    const owner = await watched();
    const again = task("another tenure's:t");
    for (let i = 0; i < 3; i++) await owner.commit({ tasks: [again] });
    expect((await lease(store)).length).toBe(1);
  });

  test("messages that were not read from the oldest on are the only ones to go", async () => {
    const owner = await watched();
    await store.inbox.append(["a", "b", "c"].map((text) => message(`"${text}"`)));
    const first = await read(store, { limit: 1 });
    const second = await read(store, { limit: 1, after: first.position });
    await owner.commit({ records: [record("execution/e", 3)], consumed: second.position });
    expect(await inboxTexts(store)).toEqual(['"a"', '"c"']);
    await owner.commit({ records: [record("execution/e", 4)], consumed: first.position });
    expect(await inboxTexts(store)).toEqual(['"c"']);
  });

  test("what follows on messages that were not the oldest leaves those that are", async () => {
    const owner = await watched();
    await store.inbox.append(["a", "b", "c"].map((text) => message(`"${text}"`)));
    const first = await read(store, { limit: 1 });
    const second = await read(store, { limit: 1, after: first.position });
    const third = await read(store, { limit: 1, after: second.position });
    await owner.commit({ records: [record("execution/e", 3)], consumed: second.position });
    await owner.commit({ records: [record("execution/e", 4)] });
    await owner.commit({ records: [record("execution/e", 5)], consumed: third.position });
    expect(await inboxTexts(store)).toEqual(['"a"']);
  });

  test("a version that is not the next one is an error as ever", async () => {
    const owner = await watched();
    for (const version of [2, 4]) {
      await expect(owner.send(owner.batch({ records: [record("execution/e", version)] }))).rejects.toThrow(
        /VERSION|next/,
      );
    }
    await owner.commit({ records: [record("execution/e", 3)] });
  });

  test("a server that refuses it is given a script", async () => {
    const owner = await watched();
    await client.configSet("maxmemory", "1");
    try {
      await owner.commit({ records: [record("execution/e", 3)] });
      await owner.commit({ records: [record("execution/e", 4)] });
    } finally {
      await client.configSet("maxmemory", "0");
    }
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(4);
  });

  test("a user who may not publish commits as well", async () => {
    const rights = ["on", ">secret", "~*", "+@all", "resetchannels"];
    await client.sendCommand(["ACL", "SETUSER", "quiet", "reset", ...rights]);
    const url = new URL(service.url);
    Object.assign(url, { username: "quiet", password: "secret" });
    const one = await another(0, prefix, url.href);
    const owner = await acquire(one, 2);
    for (let version = 1; version <= 5; version++) await owner.commit({ records: [record("execution/q", version)] });
    expect(await client.lLen(`${prefix}:journal:execution/q`)).toBe(5);
  });

  test.each([true, false])(
    "a user without transactions commits by scripts, and is fenced by them: %s",
    async (isTaken) => {
      await client.sendCommand(["ACL", "SETUSER", "plain", "reset", "on", ">secret", "~*", "&*", "+@all", "-multi"]);
      const url = new URL(service.url);
      Object.assign(url, { username: "plain", password: "secret" });
      await store.close();
      store = await open(0, prefix, url.href);
      const owner = await watched();
      await owner.commit({ records: [record("execution/e", 3)] });
      if (isTaken) {
        await client.hSet(`${prefix}:partition:0`, "until", "0");
        await acquire(await another(), 0);
      }
      const outcome = await owner.send(owner.batch({ records: [record("execution/e", 4)] }));
      expect(outcome).toEqual({ kind: isTaken ? "fenced" : "committed" });
      expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(isTaken ? 3 : 4);
    },
  );

  test("one that loses the right to transactions on the way gives the store up", async () => {
    await client.sendCommand(["ACL", "SETUSER", "fallen", "reset", "on", ">secret", "~*", "&*", "+@all"]);
    const url = new URL(service.url);
    Object.assign(url, { username: "fallen", password: "secret" });
    await store.close();
    store = await open(0, prefix, url.href);
    const owner = await watched();
    await client.sendCommand(["ACL", "SETUSER", "fallen", "-multi"]);
    const sending = owner.send(owner.batch({ records: [record("execution/e", 3)] }));
    await expect(sending).rejects.toMatchObject({ code: "STORE_LOST" });
  });

  test("a place that another owner has changed is not taken for what it was", async () => {
    const known = new KnownPartitions();
    const loaded = { entity: "execution/n", snapshot: null, wakeAtMs: null };
    known.begin(0);
    known.loaded(0, { ...loaded, records: [] }, false);
    expect(known.of(0).entities.get("execution/n")).toMatchObject({ version: 0, place: null });
    known.loaded(0, { ...loaded, records: [record("execution/n", 1)] }, true);
    expect(known.of(0).entities.get("execution/n")).toMatchObject({ version: 1, place: undefined });
    // What is read in a partition of others takes no room.
    known.loaded(1, { ...loaded, records: [] }, false);
    expect(known.of(1).entities.size).toBe(0);
    known.begin(0);
    expect(known.of(0).entities.size).toBe(0);
  });

  test("a batch that cannot be made of what it is given lets those go who wait for another's tasks", async () => {
    const owner = await watched();
    const neighbour = await acquire(store, 1);
    const leasing = lease(store, { queues: ["q"], max: 1, waitMs: 1500 });
    await nodeHost.sleep(300);
    const good = owner.batch({ tasks: [dispatched(owner, "t", { queue: "q" })] });
    const bad = neighbour.batch({ consumed: { driver: "another", value: null } });
    await expect(store.journal.commit([good, bad])).rejects.toThrow("a position of another");
    expect((await leasing).length).toBeLessThanOrEqual(1);
  });

  test("a look that finds another's value is not overruled by one that did not look for it", async () => {
    const owner = await watched();
    await client.set(`${prefix}:headers:open`, "somebody's");
    await nodeHost.sleep(1100);
    const renewing = [1, 2].map(() => store.partitions.renew([owner.fence], 60_000));
    await Promise.all(renewing);
    await store.journal.load([{ partition: 0, entity: "execution/f" }]);
    const batch = owner.batch({ records: [record("execution/f", 1)], headers: [header("execution/f")] });
    await expect(owner.send(batch)).rejects.toThrow(/FOREIGN/);
  });

  test("a key that was replaced by another's value is found before a second has passed, and nothing is written", async () => {
    const owner = await watched();
    await client.set(`${prefix}:headers:open`, "somebody's");
    await nodeHost.sleep(1100);
    // A renewal has everything looked at anew.
    await store.partitions.renew([owner.fence], 60_000);
    const batch = owner.batch({
      records: [record("execution/e", 3), record("execution/f", 1)],
      headers: [header("execution/f")],
    });
    await store.journal.load([{ partition: 0, entity: "execution/f" }]);
    await expect(owner.send(batch)).rejects.toThrow(/FOREIGN/);
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(2);
  });

  test("another's value where a new journal has to be is found by whoever loads it, and the store goes on", async () => {
    const owner = await watched();
    await client.set(`${prefix}:journal:execution/f`, "somebody's");
    await store.journal.load([{ partition: 0, entity: "execution/f" }]);
    const records = [record("execution/e", 3), record("execution/f", 1)];
    await expect(owner.send(owner.batch({ records }))).rejects.toThrow(/FOREIGN/);
    await owner.commit({ records: [record("execution/e", 3)] });
    expect(await client.lLen(`${prefix}:journal:execution/e`)).toBe(3);
  });

  test("a store in which another's value was met half way is given up", async () => {
    const owner = await watched();
    await client.set(`${prefix}:journals`, "somebody's");
    const batch = owner.batch({ records: [record("execution/e", 3)] });
    await expect(owner.send(batch)).rejects.toMatchObject({ code: "STORE_LOST" });
    await expect(store.lost).resolves.toMatchObject({ code: "STORE_LOST" });
  });
});
