import assert from "node:assert/strict";
import { type Case, canReopen, LONG_MS, PAST_SHORT_MS, SHORT_MS } from "./harness.ts";

const role = "records";

const put = (scope: string, hash: string, text: string): { scope: string; hash: string; text: string } => ({
  scope,
  hash,
  text,
});

export const recordCases: readonly Case[] = [
  {
    role,
    name: "what was put is got, in the order asked for, and null for what was not",
    run: async ({ store }) => {
      await store.records.put([put("s", "a", '"A"'), put("s", "b", '"B"')]);
      const keys = ["b", "none", "a", "b"].map((hash) => ({ scope: "s", hash }));
      assert.deepEqual(await store.records.get(keys), ['"B"', null, '"A"', '"B"']);
    },
  },
  {
    role,
    name: "putting again changes nothing",
    run: async ({ store }) => {
      await store.records.put([put("s", "a", '"A"')]);
      await store.records.put([put("s", "a", '"other"'), put("s", "b", '"B"')]);
      const keys = ["a", "b"].map((hash) => ({ scope: "s", hash }));
      assert.deepEqual(await store.records.get(keys), ['"A"', '"B"']);
    },
  },
  {
    role,
    name: "one hash in two scopes is two records",
    run: async ({ store }) => {
      await store.records.put([put("a", "x", '"A"'), put("b", "x", '"B"')]);
      const keys = ["a", "b", "c"].map((scope) => ({ scope, hash: "x" }));
      assert.deepEqual(await store.records.get(keys), ['"A"', '"B"', null]);
    },
  },
  {
    role,
    name: "putting at the same moment works for all",
    run: async ({ store }) => {
      await Promise.all(
        [1, 2, 3, 4].map((i) => store.records.put([put("s", "same", '"A"'), put("s", `${i}`, `${i}`)])),
      );
      const keys = ["same", "1", "2", "3", "4"].map((hash) => ({ scope: "s", hash }));
      assert.deepEqual(await store.records.get(keys), ['"A"', "1", "2", "3", "4"]);
    },
  },
  {
    role,
    name: "a long text is got as it was put, also beside others and after others",
    run: async ({ store }) => {
      const long = JSON.stringify("x".repeat(1_500_000));
      await store.records.put([put("s", "a", '"A"'), put("s", "long", long)]);
      await store.records.put([put("s", "b", '"B"')]);
      const keys = ["a", "long", "b"].map((hash) => ({ scope: "s", hash }));
      assert.deepEqual(await store.records.get(keys), ['"A"', long, '"B"']);
    },
  },
  {
    role,
    name: "whether a record is there is told without reading it, by a store that can",
    run: async ({ store }) => {
      if (store.records.has === undefined) return;
      await store.records.put([put("s", "a", '"A"')]);
      const asked = [put("s", "a", ""), put("s", "b", ""), put("other", "a", "")];
      assert.deepEqual(await Promise.all(asked.map((key) => store.records.has!(key))), [true, false, false]);
    },
  },
  {
    role,
    name: "putting and getting nothing is nothing",
    run: async ({ store }) => {
      await store.records.put([]);
      assert.deepEqual(await store.records.get([]), []);
    },
  },
  {
    role,
    name: "publish counts the contents of a name, and the same content has the same number",
    run: async ({ store }) => {
      const versions: number[] = [];
      for (const hash of ["a", "b", "b", "a", "c", "a"]) versions.push(await store.records.publish("name", hash));
      assert.deepEqual(versions, [1, 2, 2, 1, 3, 1]);
    },
  },
  {
    role,
    name: "publish counts each name by itself",
    run: async ({ store }) => {
      await store.records.publish("name", "a");
      assert.equal(await store.records.publish("name", "b"), 2);
      assert.equal(await store.records.publish("other", "b"), 1);
      assert.equal(await store.records.publish("other", "a"), 2);
    },
  },
  {
    role,
    name: "different contents published at the same moment get different numbers, without a gap",
    run: async ({ store }) => {
      const hashes = ["a", "b", "c", "d", "e"];
      const versions = await Promise.all(hashes.map((hash) => store.records.publish("name", hash)));
      assert.deepEqual(new Set(versions), new Set([1, 2, 3, 4, 5]));
      assert.deepEqual(await Promise.all(hashes.map((hash) => store.records.publish("name", hash))), versions);
    },
  },
  {
    role,
    name: "the same content published at the same moment gets one number",
    run: async ({ store }) => {
      await store.records.publish("name", "before");
      const versions = await Promise.all([1, 2, 3, 4, 5].map(() => store.records.publish("name", "a")));
      assert.deepEqual(versions, [2, 2, 2, 2, 2]);
      assert.equal(await store.records.publish("name", "b"), 3);
    },
  },
  {
    role,
    name: "records and published numbers outlive the process",
    requires: canReopen,
    run: async (harness) => {
      await harness.store.records.put([put("s", "a", '"A"')]);
      await harness.store.records.publish("name", "a");
      await harness.store.records.publish("name", "b");
      const store = await harness.reopen!();
      assert.deepEqual(await store.records.get([{ scope: "s", hash: "a" }]), ['"A"']);
      assert.equal(await store.records.publish("name", "c"), 3);
      assert.equal(await store.records.publish("name", "b"), 2);
    },
  },
  {
    role,
    name: "a registered process is alive, with what it says of itself",
    run: async ({ store }) => {
      const engine = { process: "p1", role: "engine", text: '{"a":1}' } as const;
      const worker = { process: "p2", role: "worker", text: '{"b":2}' } as const;
      await store.records.register(engine, LONG_MS);
      await store.records.register(worker, LONG_MS);
      const alive = await store.records.registered();
      assert.deepEqual(
        [...alive].sort((a, b) => (a.process < b.process ? -1 : 1)),
        [engine, worker],
      );
    },
  },
  {
    role,
    name: "registering again takes the place of what was said before",
    run: async ({ store }) => {
      await store.records.register({ process: "p", role: "worker", text: "1" }, LONG_MS);
      await store.records.register({ process: "p", role: "worker", text: "2" }, LONG_MS);
      assert.deepEqual(await store.records.registered(), [{ process: "p", role: "worker", text: "2" }]);
    },
  },
  {
    role,
    name: "a process that stops registering is not alive after its time",
    run: async ({ store, advance }) => {
      await store.records.register({ process: "short", role: "worker", text: "1" }, SHORT_MS);
      await store.records.register({ process: "long", role: "engine", text: "2" }, LONG_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await store.records.registered(), [{ process: "long", role: "engine", text: "2" }]);
    },
  },
  {
    role,
    name: "registering again makes a process live longer",
    run: async ({ store, advance }) => {
      const registration = { process: "p", role: "worker", text: "1" } as const;
      await store.records.register(registration, SHORT_MS);
      await store.records.register(registration, LONG_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await store.records.registered(), [registration]);
    },
  },
  {
    role,
    name: "a process that registered for a minute or longer is known over a restart, as it was last",
    requires: canReopen,
    run: async (harness) => {
      await harness.store.records.register({ process: "p", role: "worker", text: "1" }, LONG_MS);
      await harness.store.records.register({ process: "p", role: "worker", text: "2" }, 2 * LONG_MS);
      const store = await harness.reopen!();
      assert.deepEqual(await store.records.registered(), [{ process: "p", role: "worker", text: "2" }]);
    },
  },
];
