import assert from "node:assert/strict";
import type { JournalRecord } from "../contract.ts";
import {
  assertStillWaiting,
  type Case,
  canReopen,
  inVain,
  severalPartitions,
  SHORT_MS,
  soon,
  WAIT_MS,
} from "./harness.ts";
import { acquire } from "./owner.ts";
import { ENTITY, header, OTHER, record, snapshot } from "./things.ts";
import { createWorld, observe } from "./world.ts";

const role = "journal";

const loadCases: readonly Case[] = [
  {
    role,
    name: "an entity nobody knows is loaded empty",
    run: async ({ store }) => {
      assert.deepEqual(
        await store.journal.load([
          { partition: 0, entity: ENTITY },
          { partition: 0, entity: ENTITY, aboveVersion: 3 },
        ]),
        [
          { entity: ENTITY, snapshot: null, records: [], wakeAtMs: null },
          { entity: ENTITY, snapshot: null, records: [], wakeAtMs: null },
        ],
      );
    },
  },
  {
    role,
    name: "records are loaded as they were committed, in order",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const records = [
        { ...record(ENTITY, 1, 2), format: 7 },
        { ...record(ENTITY, 3), text: '["b"]' },
        { ...record(ENTITY, 4, 8), text: '["c"]' },
      ];
      await owner.commit({ records: [records[0]!, record(OTHER, 1)] });
      await owner.commit({ records: [records[1]!] });
      await owner.commit({ records: [records[2]!] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual(loaded, { entity: ENTITY, snapshot: null, records, wakeAtMs: null });
    },
  },
  {
    role,
    name: "many records come in order of their versions, not of their digits",
    run: async ({ store }) => {
      const owner = await acquire(store);
      for (let version = 1; version <= 12; version++) await owner.commit({ records: [record(ENTITY, version)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual(
        loaded?.records.map(({ version }) => version),
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
      );
    },
  },
  {
    role,
    name: "several entities are loaded in the order asked for, one even twice",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1), record(OTHER, 1)] });
      const loaded = await store.journal.load(
        [OTHER, "execution/none", ENTITY, OTHER].map((entity) => ({ partition: 0, entity })),
      );
      assert.deepEqual(
        loaded.map(({ entity, records }) => [entity, records.length]),
        [
          [OTHER, 1],
          ["execution/none", 0],
          [ENTITY, 1],
          [OTHER, 1],
        ],
      );
      assert.deepEqual(await store.journal.load([]), []);
    },
  },
  {
    role,
    name: "a load above a version gives what came after it and no snapshot",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 2)] });
      await owner.commit({
        records: [record(ENTITY, 3)],
        snapshots: [snapshot(ENTITY, 3)],
        wakes: [{ entity: ENTITY, atMs: 99 }],
      });
      await owner.commit({ records: [record(ENTITY, 4)] });
      const load = async (aboveVersion: number): Promise<unknown> =>
        (await store.journal.load([{ partition: 0, entity: ENTITY, aboveVersion }]))[0];
      const rest = { entity: ENTITY, snapshot: null, wakeAtMs: 99 };
      assert.deepEqual(await load(2), { ...rest, records: [record(ENTITY, 3), record(ENTITY, 4)] });
      assert.deepEqual(await load(3), { ...rest, records: [record(ENTITY, 4)] });
      assert.deepEqual(await load(4), { ...rest, records: [] });
      assert.deepEqual(await load(9), { ...rest, records: [] });
    },
  },
  {
    role,
    name: "what is loaded in parts is the same as a whole, and each part brings something",
    run: async ({ store }) => {
      const owner = await acquire(store);
      for (let version = 1; version <= 9; version += 2) await owner.commit({ records: [record(ENTITY, version, 2)] });
      const request = { partition: 0, entity: ENTITY, aboveVersion: 3 };
      const [whole] = await store.journal.load([request]);
      const parts: JournalRecord[] = [];
      for (let above = 3; above < 10; above = parts.at(-1)!.version + 1) {
        const [part] = await store.journal.load([{ ...request, aboveVersion: above, maxChars: 1 }]);
        assert.ok(part!.records.length > 0);
        assert.equal(part!.snapshot, null);
        parts.push(...part!.records);
      }
      assert.deepEqual(parts, whole!.records);
    },
  },
  {
    role,
    name: "a load above version 0 gives everything, although there is a snapshot",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1), record(ENTITY, 2)], snapshots: [snapshot(ENTITY, 2)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY, aboveVersion: 0 }]);
      assert.deepEqual(loaded?.records, [record(ENTITY, 1), record(ENTITY, 2)]);
      assert.equal(loaded?.snapshot, null);
    },
  },
  {
    role,
    name: "a record with events on both sides of the version comes whole",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 2)] });
      await owner.commit({ records: [record(ENTITY, 3, 4)] });
      await owner.commit({ records: [record(ENTITY, 7)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY, aboveVersion: 4 }]);
      assert.deepEqual(loaded?.records, [record(ENTITY, 3, 4), record(ENTITY, 7)]);
    },
  },
  {
    role,
    name: "the journal outlives the process",
    requires: canReopen,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({
        records: [record(ENTITY, 1), record(ENTITY, 2)],
        snapshots: [snapshot(ENTITY, 1)],
        wakes: [{ entity: ENTITY, atMs: 5 }],
      });
      const store = await harness.reopen!();
      assert.deepEqual(await store.journal.load([{ partition: 0, entity: ENTITY }]), [
        { entity: ENTITY, snapshot: snapshot(ENTITY, 1), records: [record(ENTITY, 2)], wakeAtMs: 5 },
      ]);
      assert.deepEqual(await store.journal.due(0, 5, 10), [{ entity: ENTITY, atMs: 5 }]);
    },
  },
];

const snapshotCases: readonly Case[] = [
  {
    role,
    name: "a snapshot is loaded as it was committed, with the records that came after it",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 3)], snapshots: [snapshot(ENTITY, 3)] });
      await owner.commit({ records: [record(ENTITY, 4, 2)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual(loaded?.snapshot, snapshot(ENTITY, 3));
      assert.deepEqual(loaded?.records, [record(ENTITY, 4, 2)]);
    },
  },
  {
    role,
    name: "a newer snapshot takes the place of an older one",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 9)], snapshots: [snapshot(ENTITY, 9)] });
      await owner.commit({ records: [record(ENTITY, 10)], snapshots: [snapshot(ENTITY, 10)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual([loaded?.snapshot, loaded?.records], [snapshot(ENTITY, 10), []]);
    },
  },
  {
    role,
    name: "an older snapshot does not take the place of a newer one",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 10)], snapshots: [snapshot(ENTITY, 10)] });
      await owner.commit({ snapshots: [snapshot(ENTITY, 9)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual([loaded?.snapshot, loaded?.records], [snapshot(ENTITY, 10), []]);
    },
  },
  {
    role,
    name: "a record that goes on after a snapshot comes whole",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 2)] });
      await owner.commit({ records: [record(ENTITY, 3, 4)], snapshots: [snapshot(ENTITY, 5)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual([loaded?.snapshot, loaded?.records], [snapshot(ENTITY, 5), [record(ENTITY, 3, 4)]]);
    },
  },
  {
    role,
    name: "a snapshot belongs to its entity",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1), record(OTHER, 1)], snapshots: [snapshot(OTHER, 1)] });
      const loaded = await store.journal.load([ENTITY, OTHER].map((entity) => ({ partition: 0, entity })));
      assert.deepEqual(
        loaded.map(({ snapshot }) => snapshot),
        [null, snapshot(OTHER, 1)],
      );
    },
  },
];

const watchCases: readonly Case[] = [
  {
    role,
    name: "watch answers at once when the entity is above the version, with the number of its last event",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1, 3)] });
      await owner.commit({ records: [record(ENTITY, 4, 2)] });
      assert.equal(await soon(harness, harness.store.journal.watch(0, ENTITY, 4, WAIT_MS)), 5);
    },
  },
  {
    role,
    name: "watch waits for a commit that brings the entity above the version",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1)] });
      const watching = harness.store.journal.watch(0, ENTITY, 1, WAIT_MS);
      await owner.commit({ records: [record(OTHER, 1, 5)] });
      await assertStillWaiting(harness, watching);
      await owner.commit({ records: [record(ENTITY, 2)] });
      assert.equal(await soon(harness, watching), 2);
    },
  },
  {
    role,
    name: "whoever follows an entity loads what was committed, with its wake time, until it is purged",
    run: async (harness) => {
      const { journal } = harness.store;
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1, 2)], wakes: [{ entity: ENTITY, atMs: 7 }] });
      let wakeAtMs: number | null = 7;
      for (let seen = 2; seen < 8; seen += 2) {
        const watching = journal.watch(0, ENTITY, seen, WAIT_MS);
        const loading = async (aboveVersion: number): Promise<unknown> =>
          (await journal.load([{ partition: 0, entity: ENTITY, aboveVersion }]))[0];
        assert.deepEqual(await loading(seen), { entity: ENTITY, snapshot: null, records: [], wakeAtMs });
        const wakes = seen === 4 ? [{ entity: ENTITY, atMs: null }] : [];
        if (seen === 4) wakeAtMs = null;
        await owner.commit({ records: [record(ENTITY, seen + 1), record(ENTITY, seen + 2)], wakes });
        assert.equal(await soon(harness, watching), seen + 2);
        const records = [record(ENTITY, seen + 1), record(ENTITY, seen + 2)];
        assert.deepEqual(await loading(seen), { entity: ENTITY, snapshot: null, records, wakeAtMs });
        assert.deepEqual(await loading(seen + 1), { entity: ENTITY, snapshot: null, records: [records[1]], wakeAtMs });
      }
      const watching = journal.watch(0, ENTITY, 8, SHORT_MS);
      await owner.commit({ purge: [ENTITY] });
      assert.equal(await inVain(harness, watching), 0);
      assert.equal(await journal.watch(0, ENTITY, 0, 0), 0);
      const [gone] = await journal.load([{ partition: 0, entity: ENTITY, aboveVersion: 2 }]);
      assert.deepEqual(gone, { entity: ENTITY, snapshot: null, records: [], wakeAtMs: null });
    },
  },
  {
    role,
    name: "whoever waits for the end of an entity hears of it, and need not hear of anything before",
    run: async (harness) => {
      const { journal } = harness.store;
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1)], headers: [header(ENTITY, { class: "open" })] });
      let seen = 1;
      const watching = async (): Promise<number> => {
        // A driver may tell more than it must, and must not keep us here for ever.
        for (let i = 0; i < 10 && seen < 4; i++) seen = await journal.watch(0, ENTITY, seen, WAIT_MS, { end: true });
        return seen;
      };
      const ended = watching();
      await owner.commit({ records: [record(ENTITY, 2)] });
      await owner.commit({ records: [record(ENTITY, 3)] });
      await assertStillWaiting(harness, ended);
      await owner.commit({ records: [record(ENTITY, 4)], headers: [header(ENTITY, { class: "endedBadly" })] });
      assert.equal(await soon(harness, ended), 4);
      assert.equal(await soon(harness, journal.watch(0, ENTITY, 3, WAIT_MS, { end: true })), 4);
      await owner.commit({ records: [record(ENTITY, 5)], headers: [header(ENTITY, { class: "open" })] });
      assert.equal(await inVain(harness, journal.watch(0, ENTITY, 5, SHORT_MS, { end: true })), 5);
    },
  },
  {
    role,
    name: "an entity without a header has no end to wait for",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1)] });
      const watching = harness.store.journal.watch(0, ENTITY, 1, WAIT_MS, { end: true });
      await owner.commit({ records: [record(ENTITY, 2)] });
      assert.equal(await soon(harness, watching), 2);
    },
  },
  {
    role,
    name: "watch goes on waiting while the entity is not far enough",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const watching = harness.store.journal.watch(0, ENTITY, 2, WAIT_MS);
      await owner.commit({ records: [record(ENTITY, 1, 2)] });
      await assertStillWaiting(harness, watching);
      await owner.commit({ records: [record(ENTITY, 3)] });
      assert.equal(await soon(harness, watching), 3);
    },
  },
  {
    role,
    name: "watch answers the version as it is when the time is up, 0 for an entity nobody knows",
    run: async (harness) => {
      const { journal } = harness.store;
      const owner = await acquire(harness.store);
      await owner.commit({ records: [record(ENTITY, 1, 2)] });
      const watching = [journal.watch(0, ENTITY, 2, SHORT_MS), journal.watch(0, OTHER, 0, SHORT_MS)];
      assert.deepEqual(await inVain(harness, Promise.all(watching)), [2, 0]);
    },
  },
  {
    role,
    name: "watch wakes everybody who waits for the entity",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const watching = [1, 2, 3].map(() => harness.store.journal.watch(0, ENTITY, 0, WAIT_MS));
      await owner.commit({ records: [record(ENTITY, 1)] });
      assert.deepEqual(await soon(harness, Promise.all(watching)), [1, 1, 1]);
    },
  },
  {
    role,
    name: "watch wakes in whichever partition the entity lives",
    requires: severalPartitions,
    run: async (harness) => {
      const owner = await acquire(harness.store, 1);
      const watching = harness.store.journal.watch(1, ENTITY, 0, WAIT_MS);
      await assertStillWaiting(harness, watching);
      await owner.commit({ records: [record(ENTITY, 1)] });
      assert.equal(await soon(harness, watching), 1);
    },
  },
];

/** Records that do not follow on one of version 1. */
const WRONG_VERSIONS: readonly (readonly [string, readonly JournalRecord[]])[] = [
  ["a gap", [record(ENTITY, 3)]],
  ["an overlap", [record(ENTITY, 1)]],
  ["a gap within the batch", [record(ENTITY, 2, 2), record(ENTITY, 5)]],
  ["an overlap within the batch", [record(ENTITY, 2, 2), record(ENTITY, 3)]],
  ["a record without events", [record(ENTITY, 2, 0)]],
  ["an entity that begins at version 2", [record(ENTITY, 2), record(OTHER, 2)]],
];

const versionCases = WRONG_VERSIONS.map(([what, records]): Case => ({
  role,
  name: `${what} in a journal rejects the commit, and nothing of it is written`,
  run: async ({ store }) => {
    const { owner, parts } = await createWorld(store);
    await owner.commit({ records: [record(ENTITY, 1)] });
    const entities = [ENTITY, OTHER].map((entity) => ({ partition: 0, entity }));
    const before = [await observe(store), await store.journal.load(entities)];
    await assert.rejects(owner.send(owner.batch({ ...parts, records })));
    assert.deepEqual([await observe(store), await store.journal.load(entities)], before);
    // Nor was a number used up.
    await owner.commit({ ...parts, records: [record(ENTITY, 2)] });
  },
}));

export const journalCases: readonly Case[] = [...versionCases, ...loadCases, ...snapshotCases, ...watchCases];
