import assert from "node:assert/strict";
import type { Fence } from "../contract.ts";
import { type Case, LONG_MS, PAST_SHORT_MS, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire, reacquire } from "./owner.ts";
import { WRONG_HOLDERS } from "./partition-cases.ts";
import { appendTexts, ENTITY, inboxTexts, message, numbered, record, reply, task } from "./things.ts";
import { createWorld, observe } from "./world.ts";

const role = "journal";

const WRONG_FENCES: typeof WRONG_HOLDERS = [
  ...WRONG_HOLDERS,
  ["a number that was used", (fence: Fence): Fence => ({ ...fence, seq: fence.seq - 1 })],
  ["a number that is not yet due", (fence: Fence): Fence => ({ ...fence, seq: fence.seq + 1 })],
];

export const fenceCases: readonly Case[] = [
  {
    role,
    name: "a commit with the right fence writes everything it says, and takes one number",
    run: async ({ store }) => {
      const { owner, parts } = await createWorld(store);
      const before = await observe(store);
      await owner.commit(parts);
      const after = await observe(store);
      for (const [corner, value] of Object.entries(before as Record<string, unknown>)) {
        if (corner !== "leased") assert.notDeepEqual((after as Record<string, unknown>)[corner], value, corner);
      }
      const { partitions } = await store.partitions.renew([owner.fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "held", partition: 0, seq: 2 }]);
    },
  },
  ...WRONG_FENCES.map(([what, change]): Case => ({
    role,
    name: `a commit with ${what} is fenced, and nothing of it is written`,
    run: async ({ store }) => {
      const { owner, parts } = await createWorld(store);
      const before = await observe(store);
      const batch = owner.batch(parts);
      assert.deepEqual(await owner.send({ ...batch, fence: change(batch.fence) }), { kind: "fenced" });
      assert.deepEqual(await observe(store), before);
      // Nor was a number used up.
      await owner.commit(parts);
    },
  })),
  {
    role,
    name: "a batch sent again is alreadyApplied, and nothing happens twice",
    run: async ({ store }) => {
      const { owner, parts } = await createWorld(store);
      const batch = owner.batch(parts);
      assert.deepEqual(await owner.send(batch), { kind: "committed" });
      const before = { ...((await observe(store)) as object), replies: [] };
      assert.deepEqual(await owner.send(batch), { kind: "alreadyApplied" });
      assert.deepEqual(await owner.send(structuredClone(batch)), { kind: "alreadyApplied" });
      assert.deepEqual(await observe(store), before);
      const { partitions } = await store.partitions.renew([owner.fence], LONG_MS);
      assert.deepEqual(partitions, [{ kind: "held", partition: 0, seq: 2 }]);
    },
  },
  {
    role,
    name: "a batch sent again does not bring back what was taken since: messages, replies, tasks",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ mail: [message('"mail"')], replies: [reply("r")], tasks: [task("t")] });
      await owner.send(batch);
      assert.equal((await store.inbox.replies("process", 0)).length, 1);
      const request = { worker: "w", queues: ["queue"], max: 9, leaseMs: LONG_MS, waitMs: 0 };
      const [leased] = await store.tasks.lease(request);
      await store.tasks.settle([
        { ref: leased!.ref, token: "t", partition: 0, outcome: "completed", text: '"result"' },
      ]);
      assert.deepEqual(await owner.send(batch), { kind: "alreadyApplied" });
      assert.deepEqual(await store.inbox.replies("process", 0), []);
      assert.deepEqual(await store.tasks.lease(request), []);
      assert.deepEqual(await inboxTexts(store), ['"mail"', '"result"']);
    },
  },
  {
    role,
    name: "another batch for a number that was used is fenced",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const [a, b] = [owner.batch({ mail: [message('"a"')] }), owner.batch({ mail: [message('"b"')] })];
      assert.deepEqual(await owner.send(a), { kind: "committed" });
      assert.deepEqual(await owner.send(b), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), ['"a"']);
    },
  },
  {
    role,
    name: "a batch sent again after a later one is not committed again",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ mail: [message('"a"')] });
      await owner.send(batch);
      assert.deepEqual(await owner.send({ ...owner.batch(), fence: { ...owner.fence, seq: 1 } }), {
        kind: "committed",
      });
      assert.notEqual((await owner.send(batch)).kind, "committed");
      assert.deepEqual(await inboxTexts(store), ['"a"']);
    },
  },
  {
    role,
    name: "a commit that arrives after its owner reacquired is fenced, and the number goes to the new tenure",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const delayed = owner.batch({ mail: [message('"delayed"')] });
      const again = await reacquire(store, owner);
      await again.commit({ mail: [message('"new"')] });
      assert.deepEqual(await owner.send(delayed), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), ['"new"']);
    },
  },
  {
    role,
    name: "a batch that was committed is fenced when it is sent again after a reacquire",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ mail: [message('"a"')] });
      await owner.send(batch);
      const { tenure } = await reacquire(store, owner);
      assert.equal(tenure.seq, 1);
      assert.deepEqual(await owner.send(batch), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), ['"a"']);
    },
  },
  {
    role,
    name: "a commit that arrives after somebody else took over is fenced",
    run: async ({ store, advance }) => {
      const owner = await acquire(store, 0, SHORT_MS);
      await advance(PAST_SHORT_MS);
      await acquire(store);
      assert.deepEqual(await owner.send(owner.batch({ records: [record(ENTITY, 1)] })), { kind: "fenced" });
      assert.deepEqual((await store.journal.load([{ partition: 0, entity: ENTITY }]))[0]?.records, []);
    },
  },
  {
    role,
    name: "a commit after a release is fenced",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await store.partitions.release(owner.fence);
      assert.deepEqual(await owner.send(owner.batch({ mail: [message('"a"')] })), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "a commit after the lease ran out is committed as long as nobody else took over",
    run: async ({ store, advance }) => {
      const owner = await acquire(store, 0, SHORT_MS);
      await advance(PAST_SHORT_MS);
      await owner.commit();
    },
  },
  {
    role,
    name: "a partition's time is that of its last commit",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ timeMs: 1000 });
      await owner.commit({ timeMs: 2500 });
      await store.partitions.release(owner.fence);
      assert.equal((await acquire(store)).tenure.lastTimeMs, 2500);
    },
  },
  {
    role,
    name: "an empty batch is a commit, and an empty list of batches is nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit();
      assert.deepEqual(await store.journal.commit([]), []);
      await owner.commit();
      assert.equal((await reacquire(store, owner)).tenure.seq, 2);
    },
  },
  {
    role,
    name: "of two batches for one number sent at the same moment one is committed, whole, and the other leaves nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batches = ["a", "b"].map((name) =>
        owner.batch({ mail: [message(`"${name}"`)], tasks: [task(name)], records: [record(`execution/${name}`, 1)] }),
      );
      const outcomes = await Promise.all(batches.map((batch) => owner.send(batch)));
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["committed", "fenced"]);
      const [winner, loser] = outcomes[0]?.kind === "committed" ? ["a", "b"] : ["b", "a"];
      assert.deepEqual(await inboxTexts(store), [`"${winner}"`]);
      assert.equal((await store.queries.counts()).queued["queue"], 1);
      assert.equal(await store.journal.watch(0, `execution/${winner}`, 0, 0), 1);
      assert.equal(await store.journal.watch(0, `execution/${loser}`, 0, 0), 0);
    },
  },
  {
    role,
    name: "one batch sent twice at the same moment is committed once and alreadyApplied once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ mail: [message('"a"')] });
      const outcomes = await Promise.all([owner.send(batch), owner.send(batch)]);
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["alreadyApplied", "committed"]);
      assert.deepEqual(await inboxTexts(store), ['"a"']);
    },
  },
  {
    role,
    name: "a commit and a reacquire at the same moment agree: the new tenure counts the commit, or it was fenced",
    run: async ({ store }) => {
      for (let i = 0, owner = await acquire(store); i < 5; i++) {
        const before = owner;
        const batch = before.batch({ mail: [message('"a"')] });
        const [outcome, after] = await Promise.all([before.send(batch), reacquire(store, before)]);
        assert.equal(after.tenure.seq, before.fence.seq + (outcome.kind === "committed" ? 1 : 0));
        assert.equal((await inboxTexts(store)).length, after.tenure.seq);
        assert.equal((await before.send(batch)).kind, "fenced");
        owner = after;
      }
    },
  },
  {
    role,
    name: "several batches are committed in one call, each in its partition",
    requires: severalPartitions,
    run: async ({ store }) => {
      const owners = [await acquire(store, 1), await acquire(store, 0)];
      const batches = owners.map((owner) =>
        owner.batch({
          records: [record(`execution/${owner.tenure.partition}`, 1)],
          timeMs: 100 + owner.tenure.partition,
        }),
      );
      assert.deepEqual(await store.journal.commit(batches), [{ kind: "committed" }, { kind: "committed" }]);
      const loaded = await store.journal.load(
        [0, 1].map((partition) => ({ partition, entity: `execution/${partition}` })),
      );
      assert.deepEqual(
        loaded.map(({ records }) => records.length),
        [1, 1],
      );
      const times = await Promise.all(owners.map(async (owner) => (await reacquire(store, owner)).tenure.lastTimeMs));
      assert.deepEqual(times, [101, 100]);
    },
  },
  {
    role,
    name: "of several batches in one call a fenced one leaves nothing, and the others are committed; outcomes in order",
    requires: severalPartitions,
    run: async ({ store }) => {
      const zero = await createWorld(store, 0);
      const one = await createWorld(store, 1);
      const before = (await observe(store, 0)) as { readonly loaded: unknown; readonly inbox: unknown };
      const fenced = zero.owner.batch(zero.parts);
      const outcomes = await store.journal.commit([
        { ...fenced, fence: { ...fenced.fence, nonce: "another" } },
        one.owner.batch(one.parts),
      ]);
      assert.deepEqual(outcomes, [{ kind: "fenced" }, { kind: "committed" }]);
      const after = (await observe(store, 0)) as typeof before;
      assert.deepEqual([after.loaded, after.inbox], [before.loaded, before.inbox]);
      assert.deepEqual(await inboxTexts(store, 1), ['"mail"']);
      await zero.owner.commit(zero.parts);
    },
  },
  {
    role,
    name: "a batch as big as the driver says is committed whole",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const count = store.capabilities.maxBatchEntries;
      const records = Array.from({ length: count }, (_, i) => record(`execution/${i}`, 1));
      await owner.commit({ records });
      const loaded = await store.journal.load(records.map(({ entity }) => ({ partition: 0, entity })));
      // One by one: a difference between two lists of a thousand takes seconds to print.
      for (const [i, given] of records.entries()) assert.deepEqual(loaded[i]?.records, [given]);
      await appendTexts(store, numbered(1));
      const mail = Array.from({ length: count }, (_, i) => message(`"mail ${i}"`));
      await owner.commit({ mail });
      assert.equal((await store.queries.counts()).inbox, count + 1);
    },
  },
];
