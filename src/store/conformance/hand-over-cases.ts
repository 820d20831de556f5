import assert from "node:assert/strict";
import type { LeasedTask, ReadResult, SettleOutcome } from "../contract.ts";
import {
  assertStillWaiting,
  type Case,
  type Harness,
  LONG_MS,
  PAST_SHORT_MS,
  SHORT_MS,
  soon,
  WAIT_MS,
} from "./harness.ts";
import { acquire, type Owner, reacquire } from "./owner.ts";
import {
  inboxBodies,
  inboxTexts,
  leaseOne,
  leaseRequest,
  leaseTokens,
  read,
  readRequest,
  settlement,
  task,
} from "./things.ts";

const role = "tasks";

/** A result that came while its owner waited, as it was read, and what its worker will hear. */
interface Awaited {
  readonly owner: Owner;
  readonly leased: LeasedTask;
  readonly first: ReadResult;
  readonly settling: Promise<readonly SettleOutcome[]>;
}

async function settledWhileWaiting(harness: Harness): Promise<Awaited> {
  const { store } = harness;
  const owner = await acquire(store);
  const leased = await leaseOne(store, owner, "t");
  const reading = store.inbox.read([readRequest()], WAIT_MS);
  await assertStillWaiting(harness, reading);
  const settling = store.tasks.settle([settlement(leased, "completed", '"result"')]);
  // Whoever is not asked yet must not fail the case before it looks.
  settling.catch(() => {});
  const [first] = await soon(harness, reading);
  assert.deepEqual(first!.messages, ['"result"']);
  return { owner, leased, first: first!, settling };
}

async function waitingLease(
  harness: Harness,
  parts: Parameters<typeof leaseRequest>[0] = {},
): Promise<() => Promise<readonly LeasedTask[]>> {
  const leasing = harness.store.tasks.lease(leaseRequest({ waitMs: WAIT_MS, ...parts }));
  await assertStillWaiting(harness, leasing);
  return () => soon(harness, leasing);
}

/**
 * A worker and an owner that use the same store may be in one process, where a driver may let results and tasks go from hand
 * to hand. Nobody must see a difference.
 */
export const handOverCases: readonly Case[] = [
  {
    role,
    name: "a result that came while its owner waited is consumed by one commit, and its task is gone",
    run: async (harness) => {
      const { store } = harness;
      const { owner, leased, first, settling } = await settledWhileWaiting(harness);
      await owner.commit({ consumed: first.position });
      assert.deepEqual(await soon(harness, settling), ["settled"]);
      assert.deepEqual(await inboxTexts(store), []);
      assert.equal((await store.queries.counts()).leased, 0);
      const { lost } = await store.tasks.heartbeat([{ ref: leased.ref, token: "t" }], LONG_MS);
      assert.deepEqual(lost, ["t"]);
    },
  },
  {
    role,
    name: "a result that came while its owner waited is there for the next if that owner is fenced",
    run: async (harness) => {
      const { store } = harness;
      const { owner, first, settling } = await settledWhileWaiting(harness);
      await reacquire(store, owner);
      assert.deepEqual(await owner.send(owner.batch({ consumed: first.position })), { kind: "fenced" });
      assert.deepEqual(await soon(harness, settling), ["settled"]);
      assert.deepEqual(await inboxTexts(store), ['"result"']);
    },
  },
  {
    role,
    name: "a result that came while its owner waited is not lost if nobody commits it",
    run: async (harness) => {
      const { store } = harness;
      const { settling } = await settledWhileWaiting(harness);
      assert.deepEqual(await soon(harness, settling), ["settled"]);
      assert.deepEqual(await inboxTexts(store), ['"result"']);
      assert.equal((await store.queries.counts()).leased, 0);
    },
  },
  {
    role,
    name: "a result that came while its owner waited is read once in a row, and again from the beginning",
    run: async (harness) => {
      const { store } = harness;
      const { owner, first, settling } = await settledWhileWaiting(harness);
      assert.deepEqual((await read(store, { after: first.position })).messages, []);
      const again = await read(store);
      assert.deepEqual(again.messages, ['"result"']);
      await owner.commit({ consumed: again.position });
      assert.deepEqual(await soon(harness, settling), ["settled"]);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "results that come again and again hide nobody else's messages",
    run: async (harness) => {
      const { store } = harness;
      const owner = await acquire(store);
      await owner.commit({ tasks: Array.from({ length: 20 }, (_, i) => task(`t${i}`)) });
      const leased = await store.tasks.lease(leaseRequest());
      const seen: string[] = [];
      for (const one of leased) {
        const reading = store.inbox.read([readRequest()], WAIT_MS);
        const settling = store.tasks.settle([settlement(one, "completed", `"${one.token}"`)]);
        if (one.token === "t2") await store.inbox.append([{ partition: 0, start: false, text: '"other"' }]);
        const [found] = await soon(harness, reading);
        seen.push(...found!.messages);
        await owner.commit({ consumed: found!.position });
        await soon(harness, settling);
        if (seen.includes('"other"')) return;
        await harness.advance(2);
      }
      assert.fail("nobody has read the other message");
    },
  },
  {
    role,
    name: "one who waits is given the task of the highest priority of a commit",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leased = await waitingLease(harness, { max: 1 });
      await owner.commit({ tasks: [task("low"), task("high", { priority: 5 }), task("lowest", { priority: -5 })] });
      assert.deepEqual(
        (await leased()).map(({ token }) => token),
        ["high"],
      );
      assert.deepEqual(await leaseTokens(harness.store), ["low", "lowest"]);
    },
  },
  {
    role,
    name: "one who waits is given the tasks of a commit queue by queue, as it asks",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leased = await waitingLease(harness, { queues: ["first", "second"] });
      const tasks = [task("b", { queue: "second", priority: 5 }), task("a", { queue: "first" })];
      await owner.commit({ tasks });
      const given = await leased();
      assert.equal(given[0]!.token, "a");
    },
  },
  {
    role,
    name: "one who waits is not given what a commit both sends out and withdraws",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leased = await waitingLease(harness);
      await owner.commit({ tasks: [task("gone"), task("there")], revoke: ["gone"] });
      assert.deepEqual(
        (await leased()).map(({ token }) => token),
        ["there"],
      );
    },
  },
  {
    role,
    name: "what one who waited was given has its lease, and lapses",
    run: async (harness) => {
      const { store, advance } = harness;
      const owner = await acquire(store);
      const leased = await waitingLease(harness, { leaseMs: SHORT_MS });
      await owner.commit({ tasks: [task("t")] });
      const [one] = await leased();
      const { lost } = await store.tasks.heartbeat([{ ref: one!.ref, token: "t" }], SHORT_MS);
      assert.deepEqual(lost, []);
      assert.equal((await store.queries.counts()).leased, 1);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      assert.deepEqual(await inboxBodies(store), [{ kind: "deliveryLost", token: "t" }]);
    },
  },
  {
    role,
    name: "one who waits is given nothing by a commit that is fenced, and takes the next",
    run: async (harness) => {
      const { store } = harness;
      const owner = await acquire(store);
      const leased = await waitingLease(harness);
      const next = await reacquire(store, owner);
      assert.deepEqual(await owner.send(owner.batch({ tasks: [task("never")] })), { kind: "fenced" });
      await next.commit({ tasks: [task("t")] });
      assert.deepEqual(
        (await leased()).map(({ token }) => token),
        ["t"],
      );
    },
  },
];
