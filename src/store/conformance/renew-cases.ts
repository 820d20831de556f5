import assert from "node:assert/strict";
import { type Case, LONG_MS, PAST_SHORT_MS, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire, assertHeld } from "./owner.ts";
import { WRONG_HOLDERS } from "./partition-cases.ts";

const role = "partitions";

export const renewCases: readonly Case[] = [
  {
    role,
    name: "renew makes the lease longer",
    run: async ({ store, advance }) => {
      const owner = await acquire(store, 0, SHORT_MS, "first");
      const { partitions } = await store.partitions.renew([owner.fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "held", partition: 0, seq: 0 }]);
      await advance(PAST_SHORT_MS);
      await assertHeld(store, "first");
    },
  },
  {
    role,
    name: "renew answers the number the store has, whatever number the fence says",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const { fence } = owner;
      await owner.commit();
      await owner.commit();
      const { partitions } = await store.partitions.renew([fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "held", partition: 0, seq: 2 }]);
    },
  },
  {
    role,
    name: "renew answers the store's time, the same clock that acquire shows",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await advance(SHORT_MS);
      const { storeTimeMs } = await store.partitions.renew([owner.fence], LONG_MS);
      const passedMs = storeTimeMs - owner.tenure.storeTimeMs;
      assert.ok(passedMs >= SHORT_MS - 50 && passedMs < SHORT_MS + 5000, `${passedMs} ms have passed`);
    },
  },
  {
    role,
    name: "renew after the lease ran out holds the partition again, if nobody else took it",
    run: async ({ store, advance }) => {
      const owner = await acquire(store, 0, SHORT_MS, "first");
      await advance(PAST_SHORT_MS);
      const { partitions } = await store.partitions.renew([owner.fence], LONG_MS);
      assert.equal(partitions[0]?.kind, "held");
      await assertHeld(store, "first");
    },
  },
  {
    role,
    name: "renew of a partition somebody else took answers lost, and does not make their lease longer",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS);
      await advance(PAST_SHORT_MS);
      await acquire(store, 0, SHORT_MS);
      const { partitions } = await store.partitions.renew([first.fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "lost", partition: 0 }]);
      await advance(PAST_SHORT_MS);
      await acquire(store);
    },
  },
  {
    role,
    name: "renew after a release answers lost, and the partition stays free",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await store.partitions.release(owner.fence);
      const { partitions } = await store.partitions.renew([owner.fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "lost", partition: 0 }]);
      await acquire(store);
    },
  },
  ...WRONG_HOLDERS.map(([what, change]): Case => ({
    role,
    name: `renew with ${what} answers lost`,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const { partitions } = await store.partitions.renew([change(owner.fence)], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "lost", partition: 0 }]);
    },
  })),
  {
    role,
    name: "renew answers for each partition of the call, in order",
    requires: severalPartitions,
    run: async ({ store }) => {
      const first = await acquire(store, 0);
      const second = await acquire(store, 1);
      await second.commit();
      await store.partitions.release(first.fence);
      const { partitions } = await store.partitions.renew([second.fence, first.fence], LONG_MS);
      assert.deepEqual(partitions, [
        { kind: "held", partition: 1, seq: 1 },
        { kind: "lost", partition: 0 },
      ]);
    },
  },
  {
    role,
    name: "renew of nothing answers the time",
    run: async ({ store }) => {
      const { tenure } = await acquire(store);
      const { storeTimeMs, partitions } = await store.partitions.renew([], LONG_MS);
      assert.deepEqual(partitions, []);
      assert.ok(storeTimeMs >= tenure.storeTimeMs);
    },
  },
  {
    role,
    name: "release with a stale fence changes nothing",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS, "first");
      await advance(PAST_SHORT_MS);
      const second = await acquire(store, 0, LONG_MS, "second");
      await store.partitions.release(first.fence);
      await assertHeld(store, "second");
      await second.commit();
    },
  },
  ...WRONG_HOLDERS.map(([what, change]): Case => ({
    role,
    name: `release with ${what} changes nothing`,
    run: async ({ store }) => {
      const owner = await acquire(store, 0, LONG_MS, "first");
      await store.partitions.release(change(owner.fence));
      await assertHeld(store, "first");
    },
  })),
  {
    role,
    name: "release twice does not release the next owner",
    run: async ({ store }) => {
      const first = await acquire(store);
      await store.partitions.release(first.fence);
      await acquire(store, 0, LONG_MS, "second");
      await store.partitions.release(first.fence);
      await assertHeld(store, "second");
    },
  },
];
