import assert from "node:assert/strict";
import type { Published, PublishedWorkflow, Store } from "../contract.ts";
import { MAX_VERSIONS } from "../page.ts";
import { type Case, canReopen } from "./harness.ts";
import { behind, collect } from "./things.ts";

const role = "records";

const version = (number: number, hash: string): Published => ({ version: number, hash });

const workflow = (name: string, number: number, hash: string): PublishedWorkflow => ({ name, version: number, hash });

async function publishAll(store: Store, name: string, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) await store.records.publish(name, hash);
}

async function workflows(store: Store, limit: number): Promise<readonly PublishedWorkflow[]> {
  return collect((cursor) => store.queries.workflows(behind({ limit }, cursor)));
}

/** What is published under a name, and who may still find it. */
export const publishCases: readonly Case[] = [
  {
    role,
    name: "what was published is found by its number and by its hash, and nothing else is",
    run: async ({ store }) => {
      await publishAll(store, "name", ["a", "b"]);
      await publishAll(store, "other", ["b", "2"]);
      assert.deepEqual(await store.records.published("name", 1), version(1, "a"));
      assert.deepEqual(await store.records.published("name", 2), version(2, "b"));
      assert.deepEqual(await store.records.published("name", "b"), version(2, "b"));
      assert.deepEqual(await store.records.published("other", "b"), version(1, "b"));
      assert.deepEqual(await store.records.published("other", "2"), version(2, "2"));
      for (const unknown of [0, 3, -1, 1.5, 3_000_000_000, 1e300, "c", "2", "name", "a\0"]) {
        assert.equal(await store.records.published("name", unknown), null);
      }
      for (const nobody of ["", "nam", "name\0", "\0"]) {
        assert.equal(await store.records.published(nobody), null);
        assert.deepEqual(await store.records.versions(nobody), []);
      }
    },
  },
  {
    role,
    name: "without a version the highest number is found, also if older content was published again",
    run: async ({ store }) => {
      assert.equal(await store.records.published("name"), null);
      await publishAll(
        store,
        "name",
        Array.from({ length: 11 }, (_, i) => `hash ${i}`),
      );
      await publishAll(store, "name", ["hash 0"]);
      assert.deepEqual(await store.records.published("name"), version(11, "hash 10"));
    },
  },
  {
    role,
    name: "versions are listed with the highest number first",
    run: async ({ store }) => {
      assert.deepEqual(await store.records.versions("name"), []);
      const hashes = ["k", "c", "z", "a", "y", "b", "x", "d", "w", "e", "v"];
      await publishAll(store, "name", [...hashes, "c"]);
      await publishAll(store, "other", ["k"]);
      const expected = hashes.map((hash, i) => version(i + 1, hash)).toReversed();
      assert.deepEqual(await store.records.versions("name"), expected);
    },
  },
  {
    role,
    name: "at most 1,000 versions are listed, the newest",
    run: async ({ store }) => {
      const hashes = Array.from({ length: MAX_VERSIONS + 1 }, (_, i) => `hash ${i}`);
      await Promise.all(hashes.map((hash) => store.records.publish("name", hash)));
      const versions = await store.records.versions("name");
      assert.deepEqual([versions.length, versions[0]?.version, versions.at(-1)?.version], [1000, 1001, 2]);
    },
  },
  {
    role,
    name: "a name that was unpublished is gone, with all its versions, and no other name is",
    run: async ({ store }) => {
      await publishAll(store, "name", ["a", "b"]);
      await publishAll(store, "names", ["a"]);
      await store.records.unpublish("name");
      for (const one of [undefined, 1, 2, "a", "b"]) assert.equal(await store.records.published("name", one), null);
      assert.deepEqual(await store.records.versions("name"), []);
      assert.deepEqual(await workflows(store, 10), [workflow("names", 1, "a")]);
    },
  },
  {
    role,
    name: "definitions stay when their name is unpublished",
    run: async ({ store }) => {
      const definition = { scope: "definition", hash: "a", text: '"A"' };
      await store.records.put([definition]);
      await store.records.publish("name", "a");
      await store.records.unpublish("name");
      assert.deepEqual(await store.records.get([definition]), ['"A"']);
    },
  },
  {
    role,
    name: "after an unpublish new content gets the next number, and old content its own again",
    run: async ({ store }) => {
      await publishAll(store, "name", ["a", "b"]);
      await store.records.unpublish("name");
      assert.equal(await store.records.publish("name", "a"), 1);
      assert.deepEqual(await store.records.versions("name"), [version(1, "a")]);
      assert.deepEqual(await store.records.published("name"), version(1, "a"));
      assert.equal(await store.records.published("name", 2), null);
      assert.equal(await store.records.publish("name", "c"), 3);
      assert.deepEqual(await store.records.versions("name"), [version(3, "c"), version(1, "a")]);
      assert.deepEqual(await workflows(store, 10), [workflow("name", 3, "c")]);
    },
  },
  {
    role,
    name: "unpublishing what is not there is nothing, and may be done again",
    run: async ({ store }) => {
      await store.records.unpublish("name");
      assert.equal(await store.records.publish("name", "a"), 1);
      await store.records.unpublish("name");
      await store.records.unpublish("name");
      assert.equal(await store.records.publish("name", "b"), 2);
    },
  },
  {
    role,
    name: "what is published, and what no longer is, outlives the process",
    requires: canReopen,
    run: async (harness) => {
      await publishAll(harness.store, "name", ["a", "b"]);
      await publishAll(harness.store, "gone", ["a"]);
      await harness.store.records.unpublish("gone");
      const store = await harness.reopen!();
      assert.deepEqual(await store.records.versions("name"), [version(2, "b"), version(1, "a")]);
      assert.deepEqual(await workflows(store, 10), [workflow("name", 2, "b")]);
      assert.equal(await store.records.publish("gone", "b"), 2);
    },
  },
  {
    role: "queries",
    name: "workflows are listed once for each name with its highest version, in order of their names' bytes",
    run: async ({ store }) => {
      // In UTF-16 the last two stand the other way round.
      const names = ["A", "a", "a b", "a/b", "aa", "b", "ä", "\uff5e", "\u{1f600}"];
      for (const name of names.toReversed()) await publishAll(store, name, ["z", `newest of ${name}`, "z"]);
      const { items, cursor } = await store.queries.workflows({ limit: 100 });
      assert.deepEqual(
        items,
        names.map((name) => workflow(name, 2, `newest of ${name}`)),
      );
      assert.equal(cursor, null);
    },
  },
  {
    role: "queries",
    name: "workflows page by page are all of them once, undisturbed by what comes and goes meanwhile",
    run: async ({ store }) => {
      const names = ["a", "b", "c", "d", "e", "f"];
      for (const name of names) await publishAll(store, name, ["x", "y"]);
      assert.deepEqual(
        (await workflows(store, 2)).map(({ name }) => name),
        names,
      );
      const first = await store.queries.workflows({ limit: 3 });
      assert.equal(first.items.length, 3);
      await store.records.unpublish("c");
      for (const name of ["aa", "ab"]) await publishAll(store, name, ["x"]);
      const second = await store.queries.workflows({ limit: 3, cursor: first.cursor! });
      assert.deepEqual(
        second.items.map(({ name }) => name),
        ["d", "e", "f"],
      );
      assert.equal(second.cursor, null);
    },
  },
];
