import assert from "node:assert/strict";
import type { Store, Wake } from "../contract.ts";
import { type Case, severalPartitions } from "./harness.ts";
import { acquire, type Owner } from "./owner.ts";
import { ENTITY, header, OTHER, record, snapshot } from "./things.ts";

const role = "journal";

async function wakes(owner: Owner, times: Readonly<Record<string, number | null>>): Promise<void> {
  await owner.commit({ wakes: Object.entries(times).map(([entity, atMs]) => ({ entity, atMs })) });
}

async function due(
  store: Store,
  beforeMs: number,
  limit = 100,
  after?: Wake,
): Promise<readonly (readonly [string, number])[]> {
  return (await store.journal.due(0, beforeMs, limit, after)).map(({ entity, atMs }) => [entity, atMs]);
}

const dueCases: readonly Case[] = [
  {
    role,
    name: "what is due comes earliest first, by number and not by digits",
    run: async ({ store }) => {
      await wakes(await acquire(store), { "e/a": 1000, "e/b": 90, "e/c": 200, "e/d": 5 });
      assert.deepEqual(await due(store, 5000), [
        ["e/d", 5],
        ["e/b", 90],
        ["e/c", 200],
        ["e/a", 1000],
      ]);
    },
  },
  {
    role,
    name: "due is what is at or before the time, and nothing later",
    run: async ({ store }) => {
      await wakes(await acquire(store), { "e/a": 99, "e/b": 100, "e/c": 101 });
      assert.deepEqual(await due(store, 100), [
        ["e/a", 99],
        ["e/b", 100],
      ]);
    },
  },
  {
    role,
    name: "due gives the earliest up to its limit, and asking takes nothing out",
    run: async ({ store }) => {
      await wakes(await acquire(store), { "e/a": 3, "e/b": 2, "e/c": 1 });
      const first = [
        ["e/c", 1],
        ["e/b", 2],
      ];
      assert.deepEqual(await due(store, 100, 2), first);
      assert.deepEqual(await due(store, 100, 2), first);
    },
  },
  {
    role,
    name: "due goes on beyond the last one seen, and who walks so meets each once, at equal times too",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const names = Array.from({ length: 25 }, (_, i) => `e/${String.fromCharCode(97 + i)}`);
      await wakes(owner, Object.fromEntries(names.toReversed().map((name, i) => [name, 10 + (i % 3)])));
      const seen: (readonly [string, number])[] = [];
      for (let after: Wake | undefined; ;) {
        const page = await store.journal.due(0, 100, 4, after);
        if (page.length === 0) break;
        seen.push(...page.map(({ entity, atMs }) => [entity, atMs] as const));
        after = page.at(-1);
      }
      assert.deepEqual(seen, await due(store, 100));
      assert.deepEqual(seen.map(([entity]) => entity).sort(), names);
      const sorted = [...seen].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
      assert.deepEqual(seen, sorted);
    },
  },
  {
    role,
    name: "due beyond an entity that has gone since goes on at its place",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await wakes(owner, { "e/a": 1, "e/b": 2, "e/c": 3 });
      await wakes(owner, { "e/b": null });
      assert.deepEqual(await due(store, 100, 100, { entity: "e/b", atMs: 2 }), [["e/c", 3]]);
    },
  },
  {
    role,
    name: "a wake time can be moved earlier",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await wakes(owner, { "e/a": 100, "e/b": 50 });
      await wakes(owner, { "e/a": 10 });
      assert.deepEqual(await due(store, 1000), [
        ["e/a", 10],
        ["e/b", 50],
      ]);
    },
  },
  {
    role,
    name: "a wake time can be moved later, and is not due at the old one",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await wakes(owner, { "e/a": 10, "e/b": 50 });
      await wakes(owner, { "e/a": 100 });
      assert.deepEqual(await due(store, 60), [["e/b", 50]]);
      assert.deepEqual(await due(store, 1000), [
        ["e/b", 50],
        ["e/a", 100],
      ]);
    },
  },
  {
    role,
    name: "a wake time moved away and back is there once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      for (const atMs of [10, 20, 10, 20, 10]) await wakes(owner, { "e/a": atMs });
      assert.deepEqual(await due(store, 1000), [["e/a", 10]]);
    },
  },
  {
    role,
    name: "a wake time of null is none",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await wakes(owner, { "e/a": 10, "e/b": 20 });
      await wakes(owner, { "e/a": null, "e/c": null });
      assert.deepEqual(await due(store, 1000), [["e/b", 20]]);
      const loaded = await store.journal.load([
        { partition: 0, entity: "e/a" },
        { partition: 0, entity: "e/b" },
      ]);
      assert.deepEqual(
        loaded.map(({ wakeAtMs }) => wakeAtMs),
        [null, 20],
      );
    },
  },
  {
    role,
    name: "a load says when the entity wakes",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1)], wakes: [{ entity: ENTITY, atMs: 10 }] });
      await wakes(owner, { [ENTITY]: 30 });
      assert.equal((await store.journal.load([{ partition: 0, entity: ENTITY }]))[0]?.wakeAtMs, 30);
    },
  },
  {
    role,
    name: "a load says so in whichever partition the entity lives",
    requires: severalPartitions,
    run: async ({ store }) => {
      await wakes(await acquire(store, 1), { [ENTITY]: 30 });
      assert.equal((await store.journal.load([{ partition: 1, entity: ENTITY }]))[0]?.wakeAtMs, 30);
    },
  },
  {
    role,
    name: "a commit that says nothing of an entity's wake time leaves it",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1)], wakes: [{ entity: ENTITY, atMs: 10 }] });
      await owner.commit({ records: [record(ENTITY, 2)] });
      assert.deepEqual(await due(store, 1000), [[ENTITY, 10]]);
    },
  },
  {
    role,
    name: "due gives the entities of its partition",
    requires: severalPartitions,
    run: async ({ store }) => {
      await wakes(await acquire(store, 0), { "e/a": 10 });
      await wakes(await acquire(store, 1), { "e/b": 10 });
      assert.deepEqual(await store.journal.due(1, 1000, 10), [{ entity: "e/b", atMs: 10 }]);
      assert.deepEqual(await store.journal.due(0, 1000, 10), [{ entity: "e/a", atMs: 10 }]);
    },
  },
];

const purgeCases: readonly Case[] = [
  {
    role,
    name: "a purge removes journal, snapshot, wake time, header and records of the entity, and of no other",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const both = [ENTITY, OTHER];
      await store.records.put(both.map((scope) => ({ scope, hash: "hash", text: '"blob"' })));
      await owner.commit({
        records: both.map((entity) => record(entity, 1)),
        snapshots: both.map((entity) => snapshot(entity, 1)),
        headers: both.map((entity) => header(entity)),
        wakes: both.map((entity) => ({ entity, atMs: 10 })),
      });
      await owner.commit({ purge: [ENTITY] });
      assert.deepEqual(await store.journal.load(both.map((entity) => ({ partition: 0, entity }))), [
        { entity: ENTITY, snapshot: null, records: [], wakeAtMs: null },
        { entity: OTHER, snapshot: snapshot(OTHER, 1), records: [], wakeAtMs: 10 },
      ]);
      assert.deepEqual((await store.queries.headers({ limit: 10 })).items, [header(OTHER)]);
      assert.deepEqual(await due(store, 1000), [[OTHER, 10]]);
      assert.deepEqual(await store.records.get(both.map((scope) => ({ scope, hash: "hash" }))), [null, '"blob"']);
      assert.equal(await store.journal.watch(0, ENTITY, 0, 0), 0);
    },
  },
  {
    role,
    name: "a purge leaves definitions alone",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await store.records.put([{ scope: "definition", hash: "hash", text: '"definition"' }]);
      await owner.commit({ records: [record(ENTITY, 1)] });
      await owner.commit({ purge: [ENTITY] });
      assert.deepEqual(await store.records.get([{ scope: "definition", hash: "hash" }]), ['"definition"']);
      assert.equal(await store.journal.watch(0, ENTITY, 0, 0), 0);
    },
  },
  {
    role,
    name: "a purged entity begins again at version 1",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1, 5)], snapshots: [snapshot(ENTITY, 5)] });
      await owner.commit({ purge: [ENTITY] });
      await owner.commit({ records: [record(ENTITY, 1)] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.deepEqual([loaded?.snapshot, loaded?.records], [null, [record(ENTITY, 1)]]);
    },
  },
  {
    role,
    name: "a purge comes after everything else its batch says of the entity",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({
        headers: [header(ENTITY)],
        wakes: [{ entity: ENTITY, atMs: 10 }],
        snapshots: [snapshot(ENTITY, 1)],
        purge: [ENTITY],
      });
      assert.deepEqual(await store.journal.load([{ partition: 0, entity: ENTITY }]), [
        { entity: ENTITY, snapshot: null, records: [], wakeAtMs: null },
      ]);
      assert.deepEqual((await store.queries.headers({ limit: 10 })).items, []);
      assert.deepEqual(await due(store, 1000), []);
    },
  },
  {
    role,
    name: "a purge of an entity nobody knows is nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(OTHER, 1)], purge: [ENTITY] });
      assert.equal(await store.journal.watch(0, OTHER, 0, 0), 1);
    },
  },
];

export const wakeCases: readonly Case[] = [...dueCases, ...purgeCases];
