import { describe, expect, test } from "vitest";
import { openMemory } from "../../src/drivers/memory/memory-store.ts";
import { WAIT_MS } from "../../src/store/conformance/harness.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import {
  appendTexts,
  ENTITY,
  inboxTexts,
  leaseRequest,
  leaseTokens,
  message,
  readRequest,
  record,
  reply,
  task,
} from "../../src/store/conformance/things.ts";
import { createManualHost } from "./manual-host.ts";

/** What this driver does beyond the contract: for the simulator, and against our own bugs. */
describe("the memory store", () => {
  const open = (options: { readonly maxReplies?: number } = {}) => {
    const host = createManualHost();
    return { host, store: openMemory({ host, ...options }) };
  };

  test("every operation takes effect at the moment of its call", async () => {
    const { store } = open();
    const owner = await acquire(store);
    const appending = store.inbox.append([message('"a"')]);
    expect(store.data.partitions[0]?.inbox.length).toBe(1);
    const committing = store.journal.commit([owner.batch({ tasks: [task("t")] })]);
    expect(store.data.tasks.byToken.has("t")).toBe(true);
    const leasing = store.tasks.lease(leaseRequest({ waitMs: WAIT_MS }));
    expect(store.data.tasks.leased).toBe(1);
    await Promise.all([appending, committing, leasing]);
  });

  test("a purge in one batch with new records of the entity rejects the commit, and nothing is written", async () => {
    const { store } = open();
    const owner = await acquire(store);
    const before = store.dump();
    const batch = owner.batch({ records: [record(ENTITY, 1)], purge: [ENTITY] });
    await expect(store.journal.commit([batch])).rejects.toThrow(ENTITY);
    expect(store.data).toEqual(before);
  });

  test.each(["as it is", "copied and put back", "with a lease that was found to last longer"])(
    "forgets leases that are over, however many, and none that is not: %s",
    async (how) => {
      const { host, store } = open();
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("kept")] });
      const [kept] = await store.tasks.lease(leaseRequest({ max: 1, leaseMs: 50 }));
      if (how.startsWith("with")) {
        await store.tasks.heartbeat([kept!], 60);
        await host.advance(50);
        expect(await store.tasks.lapse(10)).toBe(0);
      }
      for (let round = 0; round < 6; round++) {
        if (round === 3 && how.startsWith("copied")) store.restore(store.dump());
        await owner.commit({ tasks: Array.from({ length: 500 }, (_, i) => task(`${round}-${i}`)) });
        const leased = await store.tasks.lease(leaseRequest({ max: 500, leaseMs: 1_000 }));
        await store.tasks.settle(
          leased.map(({ ref, token }) => ({ ref, token, partition: 0, outcome: "completed" as const, text: '"done"' })),
        );
      }
      expect(store.data.tasks.lapses.length).toBeLessThan(1_100);
      await host.advance(60);
      expect(await store.tasks.lapse(10)).toBe(1);
      expect(store.data.tasks.byToken.has("kept")).toBe(false);
    },
  );

  test("restore puts back a state of before, also in another store, and later changes touch no copy", async () => {
    const { store } = open();
    const owner = await acquire(store);
    await owner.commit({ tasks: [task("a")], records: [record(ENTITY, 1)] });
    const before = store.dump();
    await owner.commit({ tasks: [task("b")], records: [record(ENTITY, 2)] });
    await owner.commit({ purge: [ENTITY] });
    await leaseTokens(store);
    const other = open().store;
    for (const target of [store, other]) {
      target.restore(before);
      expect(target.dump()).toEqual(before);
      expect(await leaseTokens(target)).toEqual(["a"]);
      expect(await target.journal.watch(0, ENTITY, 0, 0)).toBe(1);
    }
  });

  test("a store that went back fences the owner that knew more, and takes the batch it has forgotten", async () => {
    const { store } = open();
    const owner = await acquire(store);
    const before = store.dump();
    await owner.commit();
    const lost = owner.batch();
    store.restore(before);
    expect(await owner.send(lost)).toEqual({ kind: "fenced" });
    expect(await owner.send({ ...lost, fence: { ...lost.fence, seq: 0 } })).toEqual({ kind: "committed" });
  });

  test("a store that went back takes nothing that was decided from messages it has forgotten", async () => {
    const { store } = open();
    const owner = await acquire(store);
    const before = store.dump();
    await appendTexts(store, ["a"]);
    const [read] = await store.inbox.read([readRequest()], 0);
    store.restore(before);
    await appendTexts(store, ["b", "c"]);
    const batch = owner.batch({ consumed: read!.position, tasks: [task("t")] });
    const [outcome] = await store.journal.commit([batch]);
    expect(outcome).toEqual({ kind: "fenced" });
    expect(await inboxTexts(store)).toEqual(["b", "c"]);
  });

  test("whoever waits looks again when the store went back", async () => {
    const { store } = open();
    const empty = store.dump();
    await appendTexts(store, ['"a"']);
    const before = store.dump();
    store.restore(empty);
    const reading = store.inbox.read([readRequest()], WAIT_MS);
    store.restore(before);
    expect((await reading)[0]?.messages).toEqual(['"a"']);
  });

  test("what has begun is read before a flood of starts, and some of them with every read", async () => {
    const { store } = open();
    const owner = await acquire(store);
    const append = (prefix: string, count: number, start: boolean): Promise<unknown> =>
      store.inbox.append(Array.from({ length: count }, (_, i) => message(`${prefix}${i}`, { start })));
    await append("s", 30, true);
    await append("o", 20, false);
    const next = async (): Promise<string> => {
      const [read] = await store.inbox.read([readRequest({ limit: 16 })], 0);
      await owner.commit({ consumed: read!.position });
      return read!.messages.join(" ");
    };
    expect(await next()).toBe("s0 s1 o0 o1 o2 o3 o4 o5 o6 o7 o8 o9 o10 o11 o12 o13");
    expect(await next()).toBe("s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 o14 o15 o16 o17 o18 o19");
    await append("p", 3, false);
    expect(await next()).toBe("s12 s13 s14 s15 s16 s17 s18 s19 s20 s21 s22 s23 s24 p0 p1 p2");
    expect(await next()).toBe("s25 s26 s27 s28 s29");
  });

  test("a task wakes one who waits, the one who came first", async () => {
    const { host, store } = open();
    const owner = await acquire(store);
    const names = ["first", "second", "third"];
    const served: string[] = [];
    const waiting = names.map(async (worker) => {
      const leased = await store.tasks.lease(leaseRequest({ worker, max: 1, waitMs: WAIT_MS }));
      if (leased.length > 0) served.push(worker);
    });
    await owner.commit({ tasks: [task("a")] });
    await host.advance(1);
    expect(served).toEqual(["first"]);
    await owner.commit({ tasks: [task("b")] });
    await host.advance(1);
    expect(served).toEqual(["first", "second"]);
    await store.close();
    await Promise.all(waiting);
  });

  test("a process that does not read loses its oldest replies", async () => {
    const { store } = open({ maxReplies: 2 });
    const owner = await acquire(store);
    await owner.commit({ replies: ["1", "2", "3"].map((request) => reply(request)) });
    expect(await store.inbox.replies("process", 0)).toEqual([reply("2"), reply("3")]);
  });

  test("an append can be seen after ones that took their ids later", async () => {
    const { store } = open();
    const id = store.inbox.reserve(0);
    await appendTexts(store, ['"b"']);
    expect(await inboxTexts(store)).toEqual(['"b"']);
    expect(store.inbox.appendAt(id, message('"a"'))).toBe("appended");
    expect(await inboxTexts(store)).toEqual(['"a"', '"b"']);
  });

  test("leases do not run out while the process or its machine stands still, nor by a wall clock that is set", async () => {
    const { host, store } = open();
    const owner = await acquire(store, 0, 15_000);
    await owner.commit({ tasks: [task("a")] });
    await leaseTokens(store, { leaseMs: 15_000 });
    const isHeld = async (): Promise<boolean> =>
      (await store.tasks.lapse(10)) === 0 && (await store.partitions.acquire(0, "other", 1)).kind === "held";
    for (let i = 0; i < 4; i++) {
      await host.advance(3_600_000);
      expect(await isHeld()).toBe(true);
    }
    host.setWallBack(-3_600_000);
    expect(await isHeld()).toBe(true);
    // It runs, and looks once a second.
    for (let i = 0; i < 2; i++) {
      await host.advance(1_000);
      expect(await isHeld()).toBe(true);
    }
    await host.advance(1_000);
    expect(await store.tasks.lapse(10)).toBe(1);
    expect(await store.partitions.acquire(0, "other", 1)).toMatchObject({ kind: "acquired" });
  });

  /** It takes seconds; if any of it looked at everything each time, more than a test is given. */
  test("100,000 entities, wake times and tasks stay cheap", async () => {
    const { host, store } = open();
    const owner = await acquire(store);
    for (let i = 0; i < 100; i++) {
      const numbers = Array.from({ length: 1000 }, (_, k) => i * 1000 + k);
      await owner.commit({
        records: numbers.map((k) => record(`execution/${k}`, 1)),
        wakes: numbers.map((k) => ({ entity: `execution/${k}`, atMs: (k * 7919) % 100_003 })),
        tasks: numbers.map((k) => task(`t${k}`, { priority: k % 3 })),
      });
    }
    for (let i = 0; i < 1000; i++) expect((await store.journal.due(0, 1e9, 10)).length).toBe(10);
    for (let i = 0; i < 1000; i++) expect((await leaseTokens(store, { max: 100, leaseMs: 1 })).length).toBe(100);
    await host.advance(1);
    for (let i = 0; i < 100; i++) expect(await store.tasks.lapse(1000)).toBe(1000);
  });
});
