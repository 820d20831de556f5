import assert from "node:assert/strict";
import type { Fence } from "../contract.ts";
import {
  LONG_MS,
  PAST_SHORT_MS,
  SHORT_MS,
  exclusive,
  severalPartitions,
  sharedByProcesses,
  type Case,
} from "./harness.ts";
import { acquire, assertHeld, reacquire } from "./owner.ts";

const role = "partitions";

/** A fence with one part that is not the holder's. The sequence number is no part of who holds a partition. */
export const WRONG_HOLDERS: readonly (readonly [string, (fence: Fence) => Fence])[] = [
  ["another incarnation", (fence) => ({ ...fence, incarnation: `${fence.incarnation}x` })],
  ["an earlier epoch", (fence) => ({ ...fence, epoch: fence.epoch - 1 })],
  ["a later epoch", (fence) => ({ ...fence, epoch: fence.epoch + 1 })],
  ["another nonce", (fence) => ({ ...fence, nonce: `${fence.nonce}x` })],
];

export const partitionCases: readonly Case[] = [
  {
    role,
    name: "a free partition is acquired, with nothing behind it",
    run: async ({ store }) => {
      const { tenure } = await acquire(store);
      assert.equal(tenure.partition, 0);
      assert.ok(tenure.incarnation.length > 0);
      assert.equal(store.capabilities.incarnation ?? tenure.incarnation, tenure.incarnation);
      assert.ok(tenure.epoch >= 1);
      assert.ok(tenure.nonce.length > 0);
      assert.deepEqual([tenure.seq, tenure.lastTimeMs, tenure.strikes, tenure.suspect], [0, 0, 0, null]);
    },
  },
  {
    role,
    name: "a partition that is held is not given away, and the answer says who has it",
    run: async ({ store }) => {
      await acquire(store, 0, LONG_MS, "first");
      assert.deepEqual(await store.partitions.acquire(0, "second", LONG_MS), { kind: "held", by: "first" });
    },
  },
  {
    role,
    name: "a partition that is held is not given to its own holder's name either",
    run: async ({ store }) => {
      await acquire(store, 0, LONG_MS, "first");
      assert.equal((await store.partitions.acquire(0, "first", LONG_MS)).kind, "held");
    },
  },
  {
    role,
    name: "a partition whose lease ran out is acquired: the next epoch, another nonce, the same incarnation and number",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS);
      await first.commit();
      await advance(PAST_SHORT_MS);
      const { tenure } = await acquire(store);
      assert.equal(tenure.epoch, first.tenure.epoch + 1);
      assert.notEqual(tenure.nonce, first.tenure.nonce);
      assert.equal(tenure.incarnation, first.tenure.incarnation);
      assert.equal(tenure.seq, 1);
    },
  },
  {
    role,
    name: "a released partition is acquired at once: the next epoch, another nonce, the same number",
    run: async ({ store }) => {
      const first = await acquire(store);
      await first.commit();
      await store.partitions.release(first.fence);
      const { tenure } = await acquire(store);
      assert.equal(tenure.epoch, first.tenure.epoch + 1);
      assert.notEqual(tenure.nonce, first.tenure.nonce);
      assert.equal(tenure.seq, 1);
    },
  },
  {
    role,
    name: "of two who acquire at the same moment one gets the partition",
    run: async ({ store }) => {
      const outcomes = await Promise.all(["a", "b", "c"].map((name) => store.partitions.acquire(0, name, LONG_MS)));
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["acquired", "held", "held"]);
    },
  },
  {
    role,
    name: "partitions are held one by one",
    requires: severalPartitions,
    run: async ({ store }) => {
      const first = await acquire(store, 0, LONG_MS, "first");
      const second = await acquire(store, 1, LONG_MS, "second");
      assert.equal(second.tenure.partition, 1);
      assert.equal(second.tenure.incarnation, first.tenure.incarnation);
      await first.commit();
      await assertHeld(store, "second", 1);
      await store.partitions.release(second.fence);
      await assertHeld(store, "first", 0);
      assert.equal((await acquire(store, 1)).tenure.seq, 0);
    },
  },
  {
    role,
    name: "reacquire gives the holder the next epoch and another nonce, and keeps the number and the time",
    run: async ({ store }) => {
      const first = await acquire(store, 0, LONG_MS, "first");
      await first.commit({ timeMs: 4000 });
      const { tenure } = await reacquire(store, first);
      assert.equal(tenure.partition, 0);
      assert.equal(tenure.incarnation, first.tenure.incarnation);
      assert.equal(tenure.epoch, first.tenure.epoch + 1);
      assert.notEqual(tenure.nonce, first.tenure.nonce);
      assert.deepEqual([tenure.seq, tenure.lastTimeMs], [1, 4000]);
      await assertHeld(store, "first");
    },
  },
  {
    role,
    name: "reacquire makes the lease new",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS, "first");
      await reacquire(store, first, LONG_MS);
      await advance(PAST_SHORT_MS);
      await assertHeld(store, "first");
    },
  },
  {
    role,
    name: "reacquire works after the lease ran out, as long as nobody else took the partition",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS, "first");
      await advance(PAST_SHORT_MS);
      await reacquire(store, first);
      await assertHeld(store, "first");
    },
  },
  {
    role,
    name: "reacquire is refused once somebody else has the partition, and changes nothing for them",
    run: async ({ store, advance }) => {
      const first = await acquire(store, 0, SHORT_MS, "first");
      await advance(PAST_SHORT_MS);
      const second = await acquire(store, 0, LONG_MS, "second");
      const outcome = await store.partitions.reacquire(first.fence, LONG_MS);
      assert.ok(outcome.kind === "held" && outcome.by === "second");
      await second.commit();
    },
  },
  {
    role,
    name: "reacquire with a fence that was reacquired before is refused",
    run: async ({ store }) => {
      const first = await acquire(store);
      const second = await reacquire(store, first);
      assert.equal((await store.partitions.reacquire(first.fence, LONG_MS)).kind, "held");
      await second.commit();
    },
  },
  {
    role,
    name: "reacquire after a release is refused: the partition stays free",
    run: async ({ store }) => {
      const first = await acquire(store);
      await store.partitions.release(first.fence);
      assert.equal((await store.partitions.reacquire(first.fence, LONG_MS)).kind, "held");
      await acquire(store);
    },
  },
  ...WRONG_HOLDERS.map(([what, change]): Case => ({
    role,
    name: `reacquire with ${what} is refused`,
    run: async ({ store }) => {
      const owner = await acquire(store);
      assert.equal((await store.partitions.reacquire(change(owner.fence), LONG_MS)).kind, "held");
      await owner.commit();
    },
  })),
  {
    role,
    name: "of two reacquires of one fence at the same moment one works",
    run: async ({ store }) => {
      const { fence } = await acquire(store);
      const outcomes = await Promise.all([1, 2].map(() => store.partitions.reacquire(fence, LONG_MS)));
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["acquired", "held"]);
    },
  },
  {
    role,
    name: "the epoch only rises and no nonce comes twice, whatever way a tenure ends",
    run: async ({ store, advance }) => {
      const tenures = [await acquire(store)];
      tenures.push(await reacquire(store, tenures.at(-1)!, SHORT_MS));
      await advance(PAST_SHORT_MS);
      tenures.push(await acquire(store));
      await store.partitions.release(tenures.at(-1)!.fence);
      tenures.push(await acquire(store));
      const first = tenures[0]!.tenure.epoch;
      assert.deepEqual(
        tenures.map(({ tenure }) => tenure.epoch - first),
        [0, 1, 2, 3],
      );
      assert.equal(new Set(tenures.map(({ tenure }) => tenure.nonce)).size, 4);
    },
  },
  {
    role,
    name: "what a partition knows outlives the process: incarnation, epoch, number, time, holder",
    requires: sharedByProcesses,
    run: async (harness) => {
      const first = await acquire(harness.store, 0, LONG_MS, "first");
      await first.commit({ timeMs: 4000, suspect: "m" });
      const store = await harness.reopen!();
      await assertHeld(store, "first");
      const { tenure } = await reacquire(store, first);
      assert.equal(tenure.incarnation, first.tenure.incarnation);
      assert.equal(tenure.epoch, first.tenure.epoch + 1);
      assert.deepEqual([tenure.seq, tenure.lastTimeMs, tenure.suspect], [1, 4000, "m"]);
    },
  },
  {
    role,
    name: "where one process has the store, its partition is free once that is gone, with all else it knows and a strike",
    requires: exclusive,
    run: async (harness) => {
      const first = await acquire(harness.store, 0, LONG_MS, "first");
      await first.commit({ timeMs: 4000, suspect: "m" });
      const store = await harness.reopen!();
      const second = await acquire(store, 0, LONG_MS, "second");
      const { tenure } = second;
      assert.equal(tenure.incarnation, first.tenure.incarnation);
      assert.equal(tenure.epoch, first.tenure.epoch + 1);
      assert.deepEqual([tenure.seq, tenure.lastTimeMs, tenure.suspect, tenure.strikes], [1, 4000, "m", 1]);
      await assertHeld(store, "second");
      await second.commit();
    },
  },
];
