import assert from "node:assert/strict";
import type { Settlement } from "../contract.ts";
import { type Case, PAST_SHORT_MS, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import { inboxBodies, inboxTexts, lease, leaseOne, leaseTokens, settlement, task } from "./things.ts";

const role = "tasks";

const OUTCOMES: readonly Settlement["outcome"][] = ["completed", "failed", "handedBack"];

export const settleCases: readonly Case[] = [
  ...OUTCOMES.map((outcome): Case => ({
    role,
    name: `a lease settled as ${outcome} is gone, and its message is posted`,
    run: async ({ store }) => {
      const owner = await acquire(store);
      const leased = await leaseOne(store, owner, "t");
      assert.deepEqual(await store.tasks.settle([settlement(leased, outcome, '"result"')]), ["settled"]);
      assert.deepEqual(await inboxTexts(store), ['"result"']);
      assert.deepEqual(await leaseTokens(store), []);
      assert.equal((await store.queries.counts()).leased, 0);
      const { lost } = await store.tasks.heartbeat([{ ref: leased.ref, token: "t" }], SHORT_MS);
      assert.deepEqual(lost, ["t"]);
    },
  })),
  {
    role,
    name: "what was settled does not lapse",
    run: async ({ store, advance }) => {
      const leased = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await store.tasks.settle([settlement(leased, "failed", '"result"')]);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 0);
      assert.deepEqual(await inboxTexts(store), ['"result"']);
    },
  },
  {
    role,
    name: "a completion of a task that is gone is posted, for the owner to judge",
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      await store.tasks.settle([settlement(leased, "handedBack", '"back"')]);
      assert.deepEqual(await store.tasks.settle([settlement(leased, "completed", '"late"')]), ["posted"]);
      assert.deepEqual(await inboxTexts(store), ['"back"', '"late"']);
    },
  },
  ...(["failed", "handedBack"] as const).map((outcome): Case => ({
    role,
    name: `a task that is gone and settled as ${outcome} is stale, and nothing is posted`,
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      await store.tasks.settle([settlement(leased, "completed", '"first"')]);
      assert.deepEqual(await store.tasks.settle([settlement(leased, outcome)]), ["stale"]);
      assert.deepEqual(await inboxTexts(store), ['"first"']);
    },
  })),
  {
    role,
    name: "a task the store has never seen is settled as one that is gone",
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      const unknown = { ...leased, token: "unknown" };
      const outcomes = await store.tasks.settle([
        settlement(unknown, "failed"),
        settlement(unknown, "completed", '"unknown"'),
      ]);
      assert.deepEqual(outcomes, ["stale", "posted"]);
      assert.deepEqual(await inboxTexts(store), ['"unknown"']);
    },
  },
  {
    role,
    name: "a settlement that names another token than its lease leaves the lease alone",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      const [a, b] = await lease(store);
      const crossed = settlement({ ...a!, token: "b" }, "failed");
      assert.deepEqual(await store.tasks.settle([crossed]), ["stale"]);
      assert.equal((await store.queries.counts()).leased, 2);
      const outcomes = await store.tasks.settle([settlement(a!, "failed", '"a"'), settlement(b!, "failed", '"b"')]);
      assert.deepEqual(outcomes, ["settled", "settled"]);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"']);
    },
  },
  {
    role,
    name: "several settlements are answered and posted in order, those of gone tasks among them",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      const [a, b] = await lease(store);
      const outcomes = await store.tasks.settle([
        settlement(b!, "failed", '"1"'),
        settlement(b!, "failed", '"2"'),
        settlement(b!, "completed", '"3"'),
        settlement(a!, "completed", '"4"'),
      ]);
      assert.deepEqual(outcomes, ["settled", "stale", "posted", "settled"]);
      assert.deepEqual(await inboxTexts(store), ['"1"', '"3"', '"4"']);
      assert.deepEqual(await store.tasks.settle([]), []);
    },
  },
  {
    role,
    name: "a result goes to the inbox of its partition",
    requires: severalPartitions,
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store, 1), "t");
      await store.tasks.settle([settlement(leased, "completed", '"a"')]);
      await store.tasks.settle([settlement(leased, "completed", '"b"')]);
      assert.deepEqual(await inboxTexts(store, 0), []);
      assert.deepEqual(await inboxTexts(store, 1), ['"a"', '"b"']);
    },
  },
  {
    role,
    name: "a lease that ran out but has not lapsed is settled like any other",
    run: async ({ store, advance }) => {
      const leased = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await store.tasks.settle([settlement(leased, "failed", '"result"')]), ["settled"]);
      assert.equal(await store.tasks.lapse(10), 0);
    },
  },
  {
    role,
    name: "a failure settled twice at the same moment is posted once",
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      const results = [1, 2, 3].map(() => store.tasks.settle([settlement(leased, "failed", '"result"')]));
      assert.deepEqual((await Promise.all(results)).flat().sort(), ["settled", "stale", "stale"]);
      assert.deepEqual(await inboxTexts(store), ['"result"']);
    },
  },
  {
    role,
    name: "a failure and a lapse at the same moment are one message",
    run: async ({ store, advance }) => {
      const leased = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      const failure = settlement(leased, "failed", '{"body":"failed"}');
      const [[outcome], count] = await Promise.all([store.tasks.settle([failure]), store.tasks.lapse(10)]);
      const lost = { kind: "deliveryLost", token: "t" };
      assert.equal(count, outcome === "settled" ? 0 : 1);
      assert.deepEqual(await inboxBodies(store), outcome === "settled" ? ["failed"] : [lost]);
    },
  },
  {
    role,
    name: "a failure of a lost delivery is stale and leaves the next delivery alone",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      const zombie = await leaseOne(store, owner, "t:1", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      const second = await leaseOne(store, owner, "t:2");
      const late = [settlement(zombie, "failed"), settlement(zombie, "handedBack")];
      assert.deepEqual(await store.tasks.settle(late), ["stale", "stale"]);
      assert.equal((await inboxTexts(store)).length, 1);
      assert.deepEqual(await store.tasks.settle([settlement(second, "completed")]), ["settled"]);
    },
  },
  {
    role,
    name: "a completion of a lost delivery is posted and leaves the next delivery alone",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      const zombie = await leaseOne(store, owner, "t:1", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      const second = await leaseOne(store, owner, "t:2");
      assert.deepEqual(await store.tasks.settle([settlement(zombie, "completed", '"late"')]), ["posted"]);
      assert.equal((await inboxTexts(store)).at(-1), '"late"');
      assert.deepEqual(await store.tasks.settle([settlement(second, "failed")]), ["settled"]);
    },
  },
];
