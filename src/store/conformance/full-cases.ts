import assert from "node:assert/strict";
import type { Counts } from "../contract.ts";
import { StoreError } from "../store-error.ts";
import { canBeFull, type Case, LONG_MS, refusesCommits } from "./harness.ts";
import { acquire } from "./owner.ts";
import { inboxTexts, lease, leaseOne, message, settlement, task } from "./things.ts";
import { createWorld, observe } from "./world.ts";

const BLOB = { scope: "s", hash: "a", text: '"A"' };

/** By a limit of its own, or because what is below it has no room. */
const saysFull = ({ fill = 0, isFull = false }: Counts): boolean => isFull || fill > 0.75;

/** What a store without room may refuse, and what it may not: else nothing could end, and it would never empty. */
export const fullCases: readonly Case[] = [
  {
    role: "records",
    name: "a store with room takes a put that may be refused",
    run: async ({ store }) => {
      assert.equal(await store.records.put([BLOB], { refusable: true }), "stored");
      assert.equal(await store.records.put([BLOB], { refusable: false }), "stored");
      assert.equal(await store.records.put([]), "stored");
      assert.deepEqual(await store.records.get([BLOB]), [BLOB.text]);
    },
  },
  {
    role: "records",
    name: "a full store refuses a put that may be refused, and nothing of it is there",
    requires: canBeFull,
    run: async ({ store, setFull }) => {
      const blobs = [BLOB, { ...BLOB, hash: "b" }];
      await setFull!(true);
      assert.equal(await store.records.put(blobs, { refusable: true }), "refused");
      assert.deepEqual(await store.records.get(blobs), [null, null]);
      await setFull!(false);
      assert.equal(await store.records.put(blobs, { refusable: true }), "stored");
      assert.deepEqual(await store.records.get(blobs), [BLOB.text, BLOB.text]);
    },
  },
  {
    role: "records",
    name: "a full store takes a put that may not be refused",
    requires: canBeFull,
    run: async ({ store, setFull }) => {
      await setFull!(true);
      assert.equal(await store.records.put([BLOB]), "stored");
      assert.equal(await store.records.put([{ ...BLOB, hash: "b" }], { refusable: false }), "stored");
      assert.deepEqual(await store.records.get([BLOB, { ...BLOB, hash: "b" }]), [BLOB.text, BLOB.text]);
    },
  },
  {
    role: "records",
    name: "a store that refuses commits takes a put that may not be refused, or says that it is the store's trouble",
    requires: refusesCommits,
    run: async ({ store, refuseCommits }) => {
      const large = { ...BLOB, text: JSON.stringify("x".repeat(100_000)) };
      await refuseCommits!(true);
      const put = await store.records.put([large]).catch((error: unknown) => error);
      assert.ok(put === "stored" || put instanceof StoreError);
      await refuseCommits!(false);
      assert.equal(await store.records.put([large]), "stored");
      assert.deepEqual(await store.records.get([large]), [large.text]);
    },
  },
  {
    role: "inbox",
    name: "a full store refuses starts, and nothing else, and says that it is full",
    requires: canBeFull,
    run: async ({ store, setFull }) => {
      assert.equal(saysFull(await store.queries.counts()), false);
      await setFull!(true);
      assert.equal(saysFull(await store.queries.counts()), true);
      const outcomes = await store.inbox.append([message('"start"', { start: true }), message('"command"')]);
      assert.deepEqual(outcomes, ["full", "appended"]);
      assert.deepEqual(await inboxTexts(store), ['"command"']);
    },
  },
  {
    role: "journal",
    name: "a full store commits everything a batch can say",
    requires: canBeFull,
    run: async ({ store, setFull }) => {
      const { owner, parts } = await createWorld(store);
      await setFull!(true);
      const before = await observe(store);
      await owner.commit(parts);
      assert.notDeepEqual(await observe(store), before);
    },
  },
  {
    role: "tasks",
    name: "a full store leases, beats, settles and lapses",
    requires: canBeFull,
    run: async ({ store, setFull, advance }) => {
      const owner = await acquire(store);
      const first = await leaseOne(store, owner, "a");
      await owner.commit({ tasks: [task("b")] });
      await setFull!(true);
      const [second] = await lease(store, { leaseMs: 1 });
      const started = { partition: 0, text: '"started"' };
      const beat = await store.tasks.heartbeat([{ ref: first.ref, token: "a", started }], LONG_MS);
      assert.deepEqual([second?.token, beat], ["b", { lost: [], cancelled: [] }]);
      assert.deepEqual(await store.tasks.settle([settlement(first, "completed")]), ["settled"]);
      await advance(50);
      assert.equal(await store.tasks.lapse(10), 1);
      assert.equal((await inboxTexts(store)).length, 3);
    },
  },
  {
    role: "journal",
    name: "a refused commit says why, writes nothing and uses up no number",
    requires: refusesCommits,
    run: async ({ store, refuseCommits }) => {
      const { owner, parts } = await createWorld(store);
      const before = await observe(store);
      await refuseCommits!(true);
      const batch = owner.batch(parts);
      const outcome = await owner.send(batch);
      assert.ok(outcome.kind === "refused" && outcome.reason.length > 0);
      await refuseCommits!(false);
      assert.deepEqual(await observe(store), before);
      assert.deepEqual(await owner.send(batch), { kind: "committed" });
      assert.notDeepEqual(await observe(store), before);
    },
  },
];
