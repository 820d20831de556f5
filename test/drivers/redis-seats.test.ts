import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@redis/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../scripts/services/redis.ts";
import { Line } from "../../src/drivers/redis/connection.ts";
import { linesOf } from "../../src/drivers/redis/commit-arguments.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { scripts } from "../../src/drivers/redis/scripts.ts";
import { Seats } from "../../src/drivers/redis/seats.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import { leaseRequest, task } from "../../src/store/conformance/things.ts";
import type { LeasedTask, LeaseRequest, Store } from "../../src/store/contract.ts";

const LONG_MS = 20_000;
const tokensOf = (tasks: readonly LeasedTask[]): readonly string[] => tasks.map(({ token }) => token);

describe("workers that wait beside the one who commits to Redis", () => {
  let server: OwnRedis;
  let client: ReturnType<typeof createClient>;
  let prefix: string;
  let store: Store;
  let other: Store;
  let owner: Owner;
  /** Hashes of the scripts that were called by this process. */
  const called: string[] = [];
  /** Between the next commit and its answer. */
  let behindCommit: (() => Promise<void>) | undefined;
  /** Ends commands that wait for a bell. */
  let broken = Promise.withResolvers<never>();
  const send = Line.prototype["send"] as (this: Line, command: readonly string[]) => Promise<unknown>;

  beforeAll(async () => {
    server = await startOwnRedis({ appendfsync: "no" });
    client = createClient({ url: server.url });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await server.stop();
  });
  beforeEach(async () => {
    prefix = nodeHost.id();
    const open = (): Promise<Store> => openRedis({ url: server.url, host: nodeHost, prefix, partitions: 4 });
    store = await open();
    other = await open();
    owner = await acquire(store);
    vi.spyOn(Line.prototype, "send").mockImplementation(async function (this: Line, command) {
      called.push(command[1]!);
      const sent = send.call(this, command);
      const answer = await (command[0] === "BLPOP" ? Promise.race([sent, broken.promise]) : sent);
      const behind = behindCommit;
      if (command[1] === scripts.commit.sha && behind !== undefined) {
        behindCommit = undefined;
        await behind();
      }
      return answer;
    });
    called.length = 0;
    behindCommit = undefined;
    broken = Promise.withResolvers();
    broken.promise.catch(() => {});
    // From here on the server knows the script.
    await owner.commit({});
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await store.close();
    await other.close();
  });

  const lease = (from: Store, parts: Partial<LeaseRequest> = {}): Promise<readonly LeasedTask[]> =>
    from.tasks.lease(leaseRequest({ leaseMs: 60_000, ...parts }));
  const key = (name: string): string => `${prefix}:${name}`;
  const LINE = `0:${task("t").queue}`;

  /** It has looked once, in vain. */
  async function waiting(parts: Partial<LeaseRequest> = {}): Promise<{ leased: Promise<readonly LeasedTask[]> }> {
    called.length = 0;
    const leased = lease(store, { waitMs: LONG_MS, ...parts });
    await expect.poll(() => called.filter((name) => name === scripts.lease.sha).length).toBe(1);
    await sleep(50);
    return { leased };
  }

  const loseAnswer = async (): Promise<void> => {
    throw new Error("the connection is gone");
  };

  test("are given its tasks by the commit itself: leased in the store, whole, and never on a line", async () => {
    const { leased } = await waiting();
    await owner.commit({ tasks: [task("t")] });
    const [given] = await leased;
    expect(given).toEqual({ ...task("t"), ref: `t ${LINE}` });
    expect(called.filter((name) => name === scripts.lease.sha)).toHaveLength(1);
    expect(await client.exists(key(`line:${LINE}`))).toBe(0);
    const until = await client.zScore(key(`leases:${LINE}`), "t");
    expect(until! - Date.now()).toBeGreaterThan(50_000);
    expect(await store.tasks.heartbeat([given!], 60_000)).toEqual({ lost: [], cancelled: [] });
    const result = { ref: given!.ref, token: "t", partition: 0, outcome: "failed" as const, text: '"failed"' };
    expect(await store.tasks.settle([result])).toEqual(["settled"]);
    expect(await client.exists([key("tasks"), key(`leases:${LINE}`)])).toBe(0);
  });

  test("lose them like anybody else when their lease runs out", async () => {
    const { leased } = await waiting({ leaseMs: 50 });
    await owner.commit({ tasks: [task("t")] });
    expect(tokensOf(await leased)).toEqual(["t"]);
    await expect.poll(() => other.tasks.lapse(10)).toBe(1);
  });

  test("are given no more than they have room for; the rest goes on its line and rings", async () => {
    const { leased } = await waiting({ max: 2 });
    const elsewhere = lease(other, { waitMs: LONG_MS });
    await sleep(50);
    await owner.commit({ tasks: ["a", "b", "c"].map((token) => task(token)) });
    expect(tokensOf(await leased)).toEqual(["a", "b"]);
    expect(tokensOf(await elsewhere)).toEqual(["c"]);
  });

  test("look for themselves where something waits that was there before", async () => {
    const { leased } = await waiting({ max: 1 });
    await client.hSet(key("tasks"), "older", `["${task("t").queue}","e",0,0]\n"older"`);
    await client.hSet(key("queues"), task("t").queue, "0");
    await client.rPush(key(`line:${LINE}`), "older");
    await owner.commit({ tasks: [task("t")] });
    expect(tokensOf(await leased)).toEqual(["older"]);
    expect(tokensOf(await lease(store, { waitMs: LONG_MS }))).toEqual(["t"]);
  });

  test("look for themselves where the queue has another priority as well", async () => {
    const { leased } = await waiting({ max: 1 });
    await client.hSet(key("queues"), task("t").queue, "5");
    await owner.commit({ tasks: [task("t")] });
    expect(tokensOf(await leased)).toEqual(["t"]);
    expect(called.filter((name) => name === scripts.lease.sha)).toHaveLength(2);
  });

  test("are not given what the same batch withdraws", async () => {
    const { leased } = await waiting({ waitMs: 300 });
    await owner.commit({ tasks: [task("t")], revoke: ["t"] });
    expect(await leased).toEqual([]);
    expect(await client.exists([key("tasks"), key("revoked"), key(`leases:${LINE}`)])).toBe(0);
  });

  test("are given nothing that is out already, and it stays as it is", async () => {
    await owner.commit({ tasks: [task("t")] });
    expect(tokensOf(await lease(other, { waitMs: 0 }))).toEqual(["t"]);
    const before = await client.zScore(key(`leases:${LINE}`), "t");
    const { leased } = await waiting({ waitMs: 300, leaseMs: 600_000 });
    await owner.commit({ tasks: [task("t", { text: '"another"' })] });
    expect(await leased).toEqual([]);
    expect(await client.zScore(key(`leases:${LINE}`), "t")).toBe(before);
  });

  test("are given nothing by a commit that is fenced", async () => {
    const { leased } = await waiting({ waitMs: 300 });
    const batch = owner.batch({ tasks: [task("t")] });
    expect(await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).toEqual({ kind: "fenced" });
    expect(await leased).toEqual([]);
    expect(await client.exists(key("tasks"))).toBe(0);
  });

  test("have the tasks of a commit whose answer was lost, once it is known that it is there", async () => {
    const { leased } = await waiting();
    const batch = owner.batch({ tasks: ["a", "b"].map((token) => task(token)) });
    behindCommit = loseAnswer;
    await expect(owner.send(batch)).rejects.toThrow("gone");
    expect(await client.zCard(key(`leases:${LINE}`))).toBe(2);
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    expect(tokensOf(await leased)).toEqual(["a", "b"]);
  });

  test("keep what they took off its line while the answer of the commit was lost that put it there", async () => {
    // Of another urgency than what the queue has had so far: it is not leased by the commit.
    await owner.commit({ tasks: [task("before")] });
    expect(tokensOf(await lease(other))).toEqual(["before"]);
    const { leased } = await waiting();
    const batch = owner.batch({ tasks: [task("t", { priority: 5 })] });
    behindCommit = loseAnswer;
    await expect(owner.send(batch)).rejects.toThrow("gone");
    expect(tokensOf(await leased)).toEqual(["t"]);
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    expect(await lease(other)).toEqual([]);
  });

  test("do not have what was withdrawn while the answer was lost: it lapses without a word", async () => {
    const { leased } = await waiting({ waitMs: 500, leaseMs: 100 });
    const batch = owner.batch({ tasks: [task("t")] });
    behindCommit = loseAnswer;
    await expect(owner.send(batch)).rejects.toThrow("gone");
    await client.sAdd(key("revoked"), "t");
    expect(await owner.send(batch)).toEqual({ kind: "alreadyApplied" });
    expect(await leased).toEqual([]);
    await expect.poll(() => store.tasks.lapse(10)).toBe(1);
    expect(await client.xLen(key("inbox:0"))).toBe(0);
  });

  test("are given what was leased for them although their own wait has failed", async () => {
    const { leased } = await waiting();
    behindCommit = async () => {
      broken.reject(new Error("the connection is gone"));
      await sleep(50);
    };
    await owner.commit({ tasks: [task("t")] });
    expect(tokensOf(await leased)).toEqual(["t"]);
  });

  test("are given nothing when the store is closed", async () => {
    const { leased } = await waiting();
    await store.close();
    expect(await leased).toEqual([]);
  });

  test("do not miss the one a bell has rung for while they were given another", async () => {
    const { leased } = await waiting();
    const batch = owner.batch({ tasks: [task("here")] });
    // Somebody else puts a task there and rings.
    behindCommit = async () => {
      await client.hSet(key("tasks"), "there", `["${task("t").queue}","e",0,0]\n"there"`);
      await client.rPush(key(`line:${LINE}`), "there");
      await client.rPush(key(`bell:${task("t").queue}`), "");
      await sleep(100);
    };
    await owner.send(batch);
    expect(tokensOf(await leased)).toEqual(["here"]);
    const startedMs = performance.now();
    expect(tokensOf(await lease(store, { waitMs: LONG_MS }))).toEqual(["there"]);
    expect(performance.now() - startedMs).toBeLessThan(500);
  });
});

describe("a seat", () => {
  const seatOn = (seats: Seats, parts: Partial<LeaseRequest> = {}) => {
    const seat = seats.take(leaseRequest(parts));
    seat.wait(() => {});
    return seat;
  };

  test("is given tasks queue by queue as it asks, the more urgent first, and no more than it has room for", async () => {
    const seats = new Seats();
    const seat = seatOn(seats, { queues: ["a", "b"], max: 3 });
    const lines = linesOf([
      task("b9", { queue: "b", priority: 9 }),
      task("a0", { queue: "a" }),
      task("c", { queue: "c", priority: 10 }),
      task("b1", { queue: "b", priority: 1 }),
      task("a5", { queue: "a", priority: 5 }),
    ]);
    const reserved = seats.reserve(lines, []);
    expect(Object.fromEntries(reserved.counts)).toEqual({ "5:a": 1, "0:a": 1, "9:b": 1 });
    seats.decide(reserved, "leased");
    expect(seat.rise()).toBe(true);
    expect(tokensOf(await seat.given())).toEqual(["a5", "a0", "b9"]);
    expect(seats.reserve(lines, []).counts.size).toBe(0);
  });

  test("takes what others have left, if its leases are as long as theirs", () => {
    const seats = new Seats();
    seatOn(seats, { max: 1 });
    const longer = seatOn(seats, { max: 1, leaseMs: 999_999 });
    const second = seatOn(seats, { max: 5 });
    const { given, counts } = seats.reserve(linesOf([task("a"), task("b"), task("c")]), []);
    expect([...counts.values()]).toEqual([3]);
    expect(tokensOf(given.get(second)!)).toEqual(["b", "c"]);
    expect(given.has(longer)).toBe(false);
    expect(longer.rise()).toBe(false);
  });

  test("waits for a second commit that has reserved for it before it rose from the first", async () => {
    const seats = new Seats();
    const seat = seatOn(seats, { max: 2 });
    const first = seats.reserve(linesOf([task("first")]), []);
    const second = seats.reserve(linesOf([task("second")]), []);
    seats.decide(first, "leased");
    expect(seat.rise()).toBe(true);
    const rising = seat.given();
    await sleep(10);
    seats.decide(second, "leased");
    expect(tokensOf(await rising)).toEqual(["first", "second"]);
  });
});
