import assert from "node:assert/strict";
import type { CommitBatch, CommitOutcome, Store } from "../contract.ts";
import { type Case, queuesCommits, type Requirement } from "./harness.ts";
import { acquire, reacquire } from "./owner.ts";
import { appendTexts, ENTITY, inboxTexts, message, numbered, read, record } from "./things.ts";

const role = "journal";

const queuesAndRefuses: Requirement = {
  reason: "one batch of a partition is under way at a time, or nobody here can make the store refuse a commit",
  isMet: (harness) => queuesCommits.isMet(harness) && harness.refuseCommits !== undefined,
};

/** Each in a call of its own, before any is answered; and the order in which the answers came. */
async function sendAll(
  store: Store,
  batches: readonly CommitBatch[],
): Promise<{ readonly outcomes: readonly CommitOutcome["kind"][]; readonly answered: readonly string[] }> {
  const answered: string[] = [];
  const outcomes = await Promise.all(
    batches.map(async (batch) => {
      const [outcome] = await store.journal.commit([batch]);
      answered.push(batch.id);
      return outcome!.kind;
    }),
  );
  return { outcomes, answered };
}

async function versionOf(store: Store, entity: string): Promise<number> {
  const [loaded] = await store.journal.load([{ partition: 0, entity }]);
  return loaded!.records.reduce((sum, { count }) => sum + count, 0);
}

export const queuedCases: readonly Case[] = [
  {
    role,
    name: "batches sent behind each other are committed and answered in the order in which they were sent",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const first = owner.batch({ records: [record(ENTITY, 1)], mail: [message('"first"')] });
      const second = owner.behind(first, { records: [record(ENTITY, 2)], mail: [message('"second"')] });
      const third = owner.behind(second, { records: [record(ENTITY, 3)], mail: [message('"third"')] });
      const { outcomes, answered } = await sendAll(store, [first, second, third]);
      assert.deepEqual(outcomes, ["committed", "committed", "committed"]);
      assert.deepEqual(answered, [first.id, second.id, third.id]);
      assert.equal(await versionOf(store, ENTITY), 3);
      assert.deepEqual(await inboxTexts(store), ['"first"', '"second"', '"third"']);
    },
  },
  {
    role,
    name: "a batch behind one that was fenced is fenced, and nothing of it is written",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const first = owner.batch({ records: [record(ENTITY, 1)] });
      const second = owner.behind(first, { mail: [message('"second"')] });
      await reacquire(store, owner);
      assert.deepEqual((await sendAll(store, [first, second])).outcomes, ["fenced", "fenced"]);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "a batch is fenced that comes when another than it was sent behind has taken the number before it",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const never = owner.batch({ mail: [message('"never"')] });
      const behind = owner.behind(never, { mail: [message('"behind"')] });
      await owner.commit({ mail: [message('"instead"')] });
      assert.deepEqual(await owner.send(behind), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), ['"instead"']);
      // Nor was a number used up.
      await owner.commit();
    },
  },
  {
    role,
    name: "a batch that comes before the one it was sent behind is fenced",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const first = owner.batch({ mail: [message('"first"')] });
      const second = owner.behind(first, { mail: [message('"second"')] });
      assert.deepEqual((await sendAll(store, [second, first])).outcomes, ["fenced", "committed"]);
      assert.deepEqual(await inboxTexts(store), ['"first"']);
    },
  },
  {
    role,
    name: "a batch sent again is alreadyApplied also if it was sent behind another",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const first = owner.batch({ mail: [message('"first"')] });
      const second = owner.behind(first, { mail: [message('"second"')] });
      assert.deepEqual((await sendAll(store, [first, second])).outcomes, ["committed", "committed"]);
      assert.deepEqual(await owner.send(structuredClone(second)), { kind: "alreadyApplied" });
      assert.deepEqual(await inboxTexts(store), ['"first"', '"second"']);
    },
  },
  {
    role,
    name: "a batch behind one that was refused is not committed, also once the store takes commits again",
    requires: queuesAndRefuses,
    run: async ({ store, refuseCommits }) => {
      const owner = await acquire(store);
      const first = owner.batch({ mail: [message('"first"')] });
      const second = owner.behind(first, { mail: [message('"second"')] });
      await refuseCommits!(true);
      assert.equal((await owner.send(first)).kind, "refused");
      await refuseCommits!(false);
      assert.deepEqual(await owner.send(second), { kind: "fenced" });
      await owner.commit({ mail: [message('"instead"')] });
      assert.deepEqual(await owner.send(second), { kind: "fenced" });
      assert.deepEqual(await inboxTexts(store), ['"instead"']);
    },
  },
  {
    role: "inbox",
    name: "a read behind a position that was read behind another leaves out what both name",
    requires: queuesCommits,
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(7));
      const first = await read(store, { limit: 2 });
      const second = await read(store, { limit: 2, after: first.position });
      const third = await read(store, { limit: 2, after: second.position });
      assert.deepEqual([second.messages, third.messages], [numbered(4).slice(2), numbered(6).slice(4)]);
      await owner.commit({ consumed: first.position });
      assert.deepEqual((await read(store, { after: third.position })).messages, ['"m6"']);
      await owner.commit({ consumed: second.position });
      // What each names is consumed with it, and nothing that was read before or after.
      assert.deepEqual(await inboxTexts(store), ['"m4"', '"m5"', '"m6"']);
    },
  },
];
