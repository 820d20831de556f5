import assert from "node:assert/strict";
import { type Case, durableTasks, LONG_MS, PAST_SHORT_MS, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import { inboxTexts, lease, leaseOne, leaseTokens, settlement, task } from "./things.ts";

const role = "tasks";

export const revokeCases: readonly Case[] = [
  {
    role,
    name: "a queued task that is revoked is never leased, and the others are",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: ["a", "b", "c"].map((token) => task(token)) });
      await owner.commit({ revoke: ["b"] });
      assert.equal((await store.queries.counts()).queued["queue"], 2);
      assert.deepEqual(await leaseTokens(store), ["a", "c"]);
    },
  },
  {
    role,
    name: "a task that is committed and revoked by one batch is never leased",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")], revoke: ["a"] });
      assert.deepEqual(await leaseTokens(store), ["b"]);
    },
  },
  {
    role,
    name: "a leased task that is revoked is told to its worker at every heartbeat, and no other is",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      const beats = (await lease(store)).map(({ ref, token }) => ({ ref, token }));
      await owner.commit({ revoke: ["b"] });
      assert.deepEqual(await store.tasks.heartbeat(beats, LONG_MS), { lost: [], cancelled: ["b"] });
      assert.deepEqual(await store.tasks.heartbeat(beats, LONG_MS), { lost: [], cancelled: ["b"] });
    },
  },
  {
    role,
    name: "a leased task that is revoked is still settled by its worker",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const leased = await leaseOne(store, owner, "t");
      await owner.commit({ revoke: ["t"] });
      assert.deepEqual(await store.tasks.settle([settlement(leased, "completed", '"done"')]), ["settled"]);
      assert.deepEqual(await inboxTexts(store), ['"done"']);
      const beat = await store.tasks.heartbeat([{ ref: leased.ref, token: "t" }], LONG_MS);
      assert.deepEqual(beat, { lost: ["t"], cancelled: [] });
      assert.equal((await store.queries.counts()).leased, 0);
    },
  },
  {
    role,
    name: "a revoked lease that runs out is removed without a word",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      await lease(store, { leaseMs: SHORT_MS });
      await owner.commit({ revoke: ["a"] });
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 2);
      const texts = await inboxTexts(store);
      assert.deepEqual(
        texts.map((text) => (JSON.parse(text) as { readonly body: unknown }).body),
        [{ kind: "deliveryLost", token: "b" }],
      );
      assert.equal((await store.queries.counts()).leased, 0);
    },
  },
  {
    role,
    name: "revoking what nobody knows, or what is gone, is nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const leased = await leaseOne(store, owner, "gone");
      await store.tasks.settle([settlement(leased, "completed")]);
      await owner.commit({ tasks: [task("t")], revoke: ["unknown", "gone"] });
      await owner.commit({ revoke: ["unknown", "gone"] });
      assert.deepEqual(await leaseTokens(store), ["t"]);
    },
  },
  {
    role,
    name: "revoking twice is revoking once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      await owner.commit({ revoke: ["a", "a"] });
      await owner.commit({ revoke: ["a"] });
      assert.equal((await store.queries.counts()).queued["queue"], 1);
      assert.deepEqual(await leaseTokens(store), ["b"]);
    },
  },
  {
    role,
    name: "a fenced commit revokes nothing, queued or leased",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const { ref } = await leaseOne(store, owner, "leased");
      await owner.commit({ tasks: [task("queued")] });
      const batch = owner.batch({ revoke: ["leased", "queued"] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual(await store.tasks.heartbeat([{ ref, token: "leased" }], LONG_MS), { lost: [], cancelled: [] });
      assert.deepEqual(await leaseTokens(store), ["queued"]);
    },
  },
  {
    role,
    name: "every partition's tasks go through the same queues",
    requires: severalPartitions,
    run: async ({ store }) => {
      await (await acquire(store, 1)).commit({ tasks: [task("one", { partition: 1 })] });
      await (await acquire(store, 0)).commit({ tasks: [task("zero")] });
      const leased = await lease(store);
      assert.deepEqual(
        leased.map(({ token, partition }) => [token, partition]),
        [
          ["one", 1],
          ["zero", 0],
        ],
      );
    },
  },
  {
    role,
    name: "a revoked lease stays revoked over a restart",
    requires: durableTasks,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const { ref } = await leaseOne(harness.store, owner, "t");
      await owner.commit({ revoke: ["t"] });
      const store = await harness.reopen!();
      assert.deepEqual(await store.tasks.heartbeat([{ ref, token: "t" }], LONG_MS), { lost: [], cancelled: ["t"] });
    },
  },
];
