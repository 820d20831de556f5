import assert from "node:assert/strict";
import {
  assertStillWaiting,
  type Case,
  durableTasks,
  inVain,
  LONG_MS,
  PAST_SHORT_MS,
  SHORT_MS,
  soon,
  volatileTasks,
  WAIT_MS,
} from "./harness.ts";
import { acquire } from "./owner.ts";
import { inboxTexts, lease, leaseRequest, leaseTokens, settlement, task } from "./things.ts";

const role = "tasks";

const leaseCases: readonly Case[] = [
  {
    role,
    name: "a task is leased as it was committed",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const given = task("t", { entity: "execution/x", priority: 3, text: '{"input":1}' });
      await owner.commit({ tasks: [given] });
      const leased = await lease(store);
      assert.equal(leased.length, 1);
      const { ref, ...rest } = leased[0]!;
      assert.ok(ref.length > 0);
      assert.deepEqual(rest, given);
    },
  },
  {
    role,
    name: "the tasks of a fenced commit never appear",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ tasks: [task("t")] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual(await leaseTokens(store), []);
    },
  },
  {
    role,
    name: "tasks of one queue are leased oldest first, over several commits",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("d"), task("c")] });
      await owner.commit({ tasks: [task("b"), task("a")] });
      assert.deepEqual(await leaseTokens(store, { max: 3 }), ["d", "c", "b"]);
      assert.deepEqual(await leaseTokens(store), ["a"]);
    },
  },
  {
    role,
    name: "tasks of higher priority are leased first, those of one priority oldest first",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const given = [0, 10, 0, 2, 10].map((priority, i) => task(`t${i}`, { priority }));
      await owner.commit({ tasks: given });
      assert.deepEqual(await leaseTokens(store), ["t1", "t4", "t3", "t0", "t2"]);
    },
  },
  {
    role,
    name: "a lease takes from its queues in the order given, and at most max in all",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const tasks = ["a", "b", "c"].flatMap((queue) => [1, 2, 3].map((i) => task(`${queue}${i}`, { queue })));
      await owner.commit({ tasks });
      assert.deepEqual(await leaseTokens(store, { queues: ["b", "a"], max: 4 }), ["b1", "b2", "b3", "a1"]);
      assert.deepEqual(await leaseTokens(store, { queues: ["b", "a"] }), ["a2", "a3"]);
      assert.deepEqual(await leaseTokens(store, { queues: ["c"], max: 1 }), ["c1"]);
    },
  },
  {
    role,
    name: "a leased task is given to nobody else, and has a name of its own",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      const first = await lease(store, { max: 1 });
      const second = await lease(store, { worker: "another" });
      assert.deepEqual([...first, ...second].map(({ token }) => token).sort(), ["a", "b"]);
      assert.notEqual(first[0]?.ref, second[0]?.ref);
      assert.deepEqual(await leaseTokens(store, { worker: "another" }), []);
    },
  },
  {
    role,
    name: "a task whose lease ran out is given to nobody",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a")] });
      assert.deepEqual(await leaseTokens(store, { leaseMs: SHORT_MS }), ["a"]);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await leaseTokens(store), []);
    },
  },
  {
    role,
    name: "those who lease at the same moment get different tasks, and together all of them",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const tokens = Array.from({ length: 20 }, (_, i) => `t${i}`);
      await owner.commit({ tasks: tokens.map((token) => task(token)) });
      const leased = await Promise.all([1, 2, 3, 4, 5].map(() => leaseTokens(store, { max: 4 })));
      assert.deepEqual(leased.flat().sort(), [...tokens].sort());
    },
  },
  {
    role,
    name: "a token committed again while its task is there is one task",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("queued"), task("leased", { queue: "other" })] });
      assert.deepEqual(await leaseTokens(store, { queues: ["other"] }), ["leased"]);
      await owner.commit({ tasks: [task("queued"), task("leased", { queue: "other" })] });
      assert.deepEqual(await leaseTokens(store, { queues: ["queue", "other"] }), ["queued"]);
    },
  },
];

const waitingCases: readonly Case[] = [
  {
    role,
    name: "a lease that finds nothing waits for a task",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leasing = harness.store.tasks.lease(leaseRequest({ queues: ["other", "queue"], waitMs: WAIT_MS }));
      await assertStillWaiting(harness, leasing);
      await owner.commit({ tasks: [task("t")] });
      assert.deepEqual(
        (await soon(harness, leasing)).map(({ token }) => token),
        ["t"],
      );
      assert.deepEqual(await leaseTokens(harness.store), []);
    },
  },
  {
    role,
    name: "a lease that waits in vain gets nothing, and takes nothing later",
    run: async (harness) => {
      const { store } = harness;
      const owner = await acquire(store);
      assert.deepEqual(await inVain(harness, store.tasks.lease(leaseRequest({ waitMs: SHORT_MS }))), []);
      await owner.commit({ tasks: [task("t")] });
      assert.deepEqual(await leaseTokens(store), ["t"]);
    },
  },
  {
    role,
    name: "a lease is not ended by a task in a queue it did not name",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leasing = harness.store.tasks.lease(leaseRequest({ queues: ["unknown"], waitMs: WAIT_MS }));
      await owner.commit({ tasks: [task("t")] });
      await assertStillWaiting(harness, leasing);
      assert.deepEqual(await leaseTokens(harness.store), ["t"]);
      await owner.commit({ tasks: [task("u", { queue: "unknown" })] });
      assert.deepEqual(
        (await soon(harness, leasing)).map(({ token }) => token),
        ["u"],
      );
    },
  },
  {
    role,
    name: "of two who wait each gets one of two tasks",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leasing = [1, 2].map(() => harness.store.tasks.lease(leaseRequest({ max: 1, waitMs: WAIT_MS })));
      await owner.commit({ tasks: [task("a")] });
      const first = await soon(harness, Promise.race(leasing));
      assert.deepEqual(
        first.map(({ token }) => token),
        ["a"],
      );
      await owner.commit({ tasks: [task("b")] });
      const both = await soon(harness, Promise.all(leasing));
      assert.deepEqual(
        both
          .flat()
          .map(({ token }) => token)
          .sort(),
        ["a", "b"],
      );
    },
  },
  {
    role,
    name: "two tasks in one commit wake two who wait for one each",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const leasing = [1, 2].map(() => harness.store.tasks.lease(leaseRequest({ max: 1, waitMs: WAIT_MS })));
      await owner.commit({ tasks: [task("a"), task("b")] });
      const both = await soon(harness, Promise.all(leasing));
      assert.deepEqual(both.flatMap((leased) => leased.map(({ token }) => token)).sort(), ["a", "b"]);
    },
  },
];

const restartCases: readonly Case[] = [
  {
    role,
    name: "tasks and leases outlive the process",
    requires: durableTasks,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ tasks: [task("leased"), task("queued")] });
      const [leased] = await lease(harness.store, { max: 1 });
      const store = await harness.reopen!();
      assert.deepEqual(await leaseTokens(store), ["queued"]);
      assert.deepEqual(await store.tasks.settle([settlement(leased!, "completed", '"done"')]), ["settled"]);
      assert.deepEqual(await inboxTexts(store), ['"done"']);
    },
  },
  {
    role,
    name: "a restart drops tasks, and restore puts them back",
    requires: volatileTasks,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ tasks: [task("leased"), task("queued")] });
      await lease(harness.store, { max: 1, leaseMs: LONG_MS });
      const store = await harness.reopen!();
      assert.deepEqual(await leaseTokens(store), []);
      await store.tasks.restore([task("leased"), task("queued")]);
      assert.deepEqual(await leaseTokens(store), ["leased", "queued"]);
    },
  },
  {
    role,
    name: "restore leaves tasks alone that are still there, queued or leased",
    requires: volatileTasks,
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("leased"), task("queued")] });
      await lease(store, { max: 1 });
      await store.tasks.restore([task("leased"), task("queued"), task("dropped")]);
      assert.deepEqual(await leaseTokens(store), ["queued", "dropped"]);
    },
  },
  {
    role,
    name: "restore wakes those who wait",
    requires: volatileTasks,
    run: async (harness) => {
      const leasing = harness.store.tasks.lease(leaseRequest({ waitMs: WAIT_MS }));
      await harness.store.tasks.restore([task("t")]);
      assert.deepEqual(
        (await soon(harness, leasing)).map(({ token }) => token),
        ["t"],
      );
    },
  },
];

export const taskLeaseCases: readonly Case[] = [...leaseCases, ...waitingCases, ...restartCases];
