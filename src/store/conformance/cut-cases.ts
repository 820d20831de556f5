import assert from "node:assert/strict";
import type { JournalRecord, Store } from "../contract.ts";
import { type Case, canReopen } from "./harness.ts";
import { acquire } from "./owner.ts";
import { ENTITY, OTHER, record, snapshot } from "./things.ts";

const role = "journal";

async function all(store: Store, entity = ENTITY): Promise<readonly JournalRecord[]> {
  const [loaded] = await store.journal.load([{ partition: 0, entity, aboveVersion: 0 }]);
  return loaded!.records;
}

export const cutCases: readonly Case[] = [
  {
    role,
    name: "a cut removes the records of its entity that end before its version, and leaves the others whole",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 2), record(OTHER, 1, 2)] });
      await owner.commit({ records: [record(ENTITY, 3, 2), record(OTHER, 3)] });
      await owner.commit({ records: [record(ENTITY, 5, 4)] });
      await owner.commit({ records: [record(ENTITY, 9)], cut: [{ entity: ENTITY, belowVersion: 7 }] });
      assert.deepEqual(await all(store), [record(ENTITY, 5, 4), record(ENTITY, 9)]);
      assert.deepEqual(await all(store, OTHER), [record(OTHER, 1, 2), record(OTHER, 3)]);
    },
  },
  {
    role,
    name: "a record that ends with the version before a cut goes, and one that begins with its version stays",
    run: async ({ store }) => {
      const owner = await acquire(store);
      for (const version of [1, 2, 3]) await owner.commit({ records: [record(ENTITY, version)] });
      await owner.commit({ cut: [{ entity: ENTITY, belowVersion: 3 }] });
      assert.deepEqual(await all(store), [record(ENTITY, 3)]);
      await owner.commit({ cut: [{ entity: ENTITY, belowVersion: 2 }] });
      assert.deepEqual(await all(store), [record(ENTITY, 3)]);
    },
  },
  {
    role,
    name: "a journal that was cut goes on with its versions, and with the snapshot it had",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 3)], snapshots: [snapshot(ENTITY, 3)] });
      await owner.commit({ records: [record(ENTITY, 4, 3)], cut: [{ entity: ENTITY, belowVersion: 5 }] });
      await assert.rejects(owner.send(owner.batch({ records: [record(ENTITY, 8)] })));
      await owner.commit({ records: [record(ENTITY, 7)] });
      assert.equal(await store.journal.watch(0, ENTITY, 0, 0), 7);
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual(loaded?.snapshot, snapshot(ENTITY, 3));
      assert.deepEqual(loaded?.records, [record(ENTITY, 4, 3), record(ENTITY, 7)]);
    },
  },
  {
    role,
    name: "a journal of which there is nothing begins where it is cut, and nowhere else",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const cut = [{ entity: ENTITY, belowVersion: 40 }];
      await assert.rejects(owner.send(owner.batch({ records: [record(ENTITY, 41)], cut })));
      await assert.rejects(owner.send(owner.batch({ records: [record(ENTITY, 40), record(OTHER, 40)], cut })));
      await owner.commit({ records: [record(ENTITY, 40, 2), record(ENTITY, 42)], cut });
      await owner.commit({ records: [record(ENTITY, 43)] });
      assert.deepEqual(await all(store), [record(ENTITY, 40, 2), record(ENTITY, 42), record(ENTITY, 43)]);
      assert.equal(await store.journal.watch(0, ENTITY, 0, 0), 43);
      await assert.rejects(
        owner.send(owner.batch({ records: [record(ENTITY, 50)], cut: [{ entity: ENTITY, belowVersion: 50 }] })),
      );
    },
  },
  {
    role,
    name: "a journal may be cut by the batch that begins it",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const cut = [{ entity: ENTITY, belowVersion: 3 }];
      await owner.commit({ records: [record(ENTITY, 1, 3), record(OTHER, 1)], cut });
      await owner.commit({ records: [record(ENTITY, 4)], cut });
      assert.deepEqual(await all(store), [record(ENTITY, 1, 3), record(ENTITY, 4)]);
    },
  },
  {
    role,
    name: "what was cut stays cut when the process is gone",
    requires: canReopen,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1), record(ENTITY, 2)] });
      await owner.commit({ records: [record(ENTITY, 3)], cut: [{ entity: ENTITY, belowVersion: 3 }] });
      const store = await harness.reopen!();
      assert.deepEqual(await all(store), [record(ENTITY, 3)]);
      assert.equal(await store.journal.watch(0, ENTITY, 0, 0), 3);
    },
  },
];
