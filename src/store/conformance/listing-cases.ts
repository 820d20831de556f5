import assert from "node:assert/strict";
import type { Listed, Listing, Store } from "../contract.ts";
import { type Case, canReopen, severalPartitions } from "./harness.ts";
import { acquire } from "./owner.ts";
import { behind, collect, ENTITY, listing, OTHER, record } from "./things.ts";

const role = "queries";

const off = (listed: Listed): Listing => ({ ...listed, text: null });

async function ids(store: Store, list: string, limit = 10): Promise<readonly string[]> {
  const all = await collect((cursor) => store.queries.listing(behind({ list, limit }, cursor)));
  return all.map(({ id }) => id);
}

/** Named lists that a commit adds to and takes from. */
export const listingCases: readonly Case[] = [
  {
    role,
    name: "listings are as they were committed, newest first",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const listings = [
        listing("reviews", "a", { atMs: 900, entity: OTHER }),
        listing("reviews", "b", { atMs: 10_000, text: '"text"' }),
        listing("reviews", "c", { atMs: 2000 }),
      ];
      await owner.commit({ listings });
      const { items, cursor } = await store.queries.listing({ list: "reviews", limit: 10 });
      assert.deepEqual(items, [listings[1], listings[2], listings[0]]);
      assert.equal(cursor, null);
    },
  },
  {
    role,
    name: "lists are told apart, and what is on one is found there by its id",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const [first, second] = [listing("reviews", "a"), listing("batches", "a", { text: '"other"', entity: OTHER })];
      await owner.commit({ listings: [first, second, listing("batches", "b")] });
      assert.deepEqual(await ids(store, "reviews"), ["a"]);
      assert.deepEqual(await ids(store, "none"), []);
      assert.deepEqual(await store.queries.listed("reviews", "a"), first);
      assert.deepEqual(await store.queries.listed("batches", "a"), second);
      assert.equal(await store.queries.listed("reviews", "b"), null);
      assert.equal(await store.queries.listed("none", "a"), null);
    },
  },
  {
    role,
    name: "a list page by page is all of it once, in order, at equal times too, and each page has at most its limit",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const listings = Array.from({ length: 17 }, (_, i) => listing("l", `${i}`, { atMs: 100 + (i % 4) }));
      await owner.commit({ listings });
      const all = await collect((cursor) => store.queries.listing(behind({ list: "l", limit: 3 }, cursor)));
      assert.deepEqual(all.map(({ id }) => id).sort(), listings.map(({ id }) => id).sort());
      const times = all.map(({ atMs }) => atMs);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => b - a),
      );
      assert.equal((await store.queries.listing({ list: "l", limit: 3 })).items.length, 3);
    },
  },
  {
    role,
    name: "paging a list is not disturbed by what comes and goes meanwhile",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const listings = [1, 2, 3, 4].map((i) => listing("l", `${i}`, { atMs: i }));
      await owner.commit({ listings });
      const first = await store.queries.listing({ list: "l", limit: 2 });
      const later = ["new", "newer"].map((id) => listing("l", id, { atMs: 9 }));
      await owner.commit({ listings: [...later, off(listings[2]!)] });
      const second = await store.queries.listing({ list: "l", limit: 2, cursor: first.cursor! });
      assert.deepEqual(
        [...first.items, ...second.items].map(({ id }) => id),
        ["4", "3", "2", "1"],
      );
    },
  },
  {
    role,
    name: "a listing of the same list and id takes the place of the one before, with its own time and entity",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ listings: [1, 2, 3].map((i) => listing("l", `${i}`, { atMs: i })) });
      const again = listing("l", "2", { atMs: 5, entity: OTHER, text: '"again"' });
      await owner.commit({ listings: [again] });
      assert.deepEqual(await ids(store, "l", 2), ["2", "3", "1"]);
      assert.deepEqual(await store.queries.listed("l", "2"), again);
      await owner.commit({ purge: [ENTITY] });
      assert.deepEqual(await ids(store, "l"), ["2"]);
    },
  },
  {
    role,
    name: "a commit takes off a list what it says and nothing else, and what is not there is nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const [a, b, other] = [listing("l", "a"), listing("l", "b"), listing("other", "a")];
      await owner.commit({ listings: [a, b, other] });
      await owner.commit({ listings: [off({ ...a, atMs: 5 }), off(listing("l", "none")), off(listing("none", "b"))] });
      assert.deepEqual(await ids(store, "l"), ["b"]);
      assert.deepEqual(await ids(store, "other"), ["a"]);
      assert.equal(await store.queries.listed("l", "a"), null);
    },
  },
  {
    role,
    name: "of several listings with one id in one batch the last counts",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const [on, later] = [listing("l", "on"), listing("l", "on", { atMs: 5, text: '"later"' })];
      await owner.commit({ listings: [off(on), on, later, listing("l", "off"), off(listing("l", "off"))] });
      assert.deepEqual((await store.queries.listing({ list: "l", limit: 10 })).items, [later]);
    },
  },
  {
    role,
    name: "what was taken off a list may be put on it again",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ listings: [listing("l", "a"), listing("l", "b", { atMs: 2000 })] });
      await owner.commit({ listings: [off(listing("l", "a"))] });
      await owner.commit({ listings: [listing("l", "a")] });
      assert.deepEqual(await ids(store, "l"), ["b", "a"]);
    },
  },
  {
    role,
    name: "a purge takes an entity off all lists, with what the batch says of it, and leaves the others",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({
        records: [record(ENTITY, 1), record(OTHER, 1)],
        listings: [listing("l", "a"), listing("m", "b"), listing("l", "c", { entity: OTHER })],
      });
      await owner.commit({ listings: [listing("l", "new")], purge: [ENTITY] });
      assert.deepEqual(await ids(store, "l"), ["c"]);
      assert.deepEqual(await ids(store, "m"), []);
      assert.equal(await store.queries.listed("m", "b"), null);
      await owner.commit({ listings: [listing("l", "a")] });
      assert.deepEqual(await ids(store, "l"), ["c", "a"]);
    },
  },
  {
    role,
    name: "a list holds what all partitions have put on it",
    requires: severalPartitions,
    run: async ({ store }) => {
      const owners = [await acquire(store, 0), await acquire(store, 1)];
      const batches = owners.map((owner, i) =>
        owner.batch({ listings: [listing("l", `${i}`, { atMs: i, entity: `e/${i}` })] }),
      );
      await store.journal.commit(batches);
      assert.deepEqual(await ids(store, "l"), ["1", "0"]);
    },
  },
  {
    role,
    name: "a fenced commit changes no list",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ listings: [listing("l", "a")] });
      const batch = owner.batch({ listings: [off(listing("l", "a")), listing("l", "b")] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual(await ids(store, "l"), ["a"]);
    },
  },
  {
    role,
    name: "lists outlive the process",
    requires: canReopen,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ listings: [listing("l", "a"), listing("l", "b")] });
      await owner.commit({ listings: [off(listing("l", "b"))] });
      const store = await harness.reopen!();
      assert.deepEqual(await ids(store, "l"), ["a"]);
    },
  },
];
