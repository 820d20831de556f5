import assert from "node:assert/strict";
import {
  type Case,
  durableTasks,
  LONG_MS,
  PAST_SHORT_MS,
  severalPartitions,
  SHORT_MS,
  soon,
  WAIT_MS,
} from "./harness.ts";
import { acquire } from "./owner.ts";
import {
  inboxBodies,
  inboxTexts,
  lease,
  leaseOne,
  leaseRequest,
  leaseTokens,
  readRequest,
  settlement,
  task,
} from "./things.ts";

const role = "tasks";

const lost = (token: string): unknown => ({ kind: "deliveryLost", token });

const lapseCases: readonly Case[] = [
  {
    role,
    name: "a lease that ran out lapses: the task is gone, and deliveryLost is posted",
    run: async ({ store, advance }) => {
      const leased = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      const messages = (await inboxTexts(store)).map((text) => JSON.parse(text) as { readonly to: string });
      assert.equal(messages[0]?.to, leased.entity);
      assert.deepEqual(await inboxBodies(store), [lost("t")]);
      assert.equal((await store.queries.counts()).leased, 0);
      const beat = await store.tasks.heartbeat([{ ref: leased.ref, token: "t" }], LONG_MS);
      assert.deepEqual(beat, { lost: ["t"], cancelled: [] });
    },
  },
  {
    role,
    name: "a lapse twice posts once",
    run: async ({ store, advance }) => {
      await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual([await store.tasks.lapse(10), await store.tasks.lapse(10)], [1, 0]);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 0);
      assert.deepEqual(await inboxBodies(store), [lost("t")]);
    },
  },
  {
    role,
    name: "lapses at the same moment post each task once",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      const tokens = ["a", "b", "c", "d"];
      await owner.commit({ tasks: tokens.map((token) => task(token)) });
      await lease(store, { leaseMs: SHORT_MS });
      await advance(PAST_SHORT_MS);
      const counts = await Promise.all([1, 2, 3].map(() => store.tasks.lapse(10)));
      assert.equal(counts[0]! + counts[1]! + counts[2]!, 4);
      const bodies = (await inboxBodies(store)) as readonly { readonly token: string }[];
      assert.deepEqual(bodies.map(({ token }) => token).sort(), tokens);
    },
  },
  {
    role,
    name: "a lapse removes at most its limit, and the next one goes on",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: ["a", "b", "c"].map((token) => task(token)) });
      await lease(store, { leaseMs: SHORT_MS });
      await advance(PAST_SHORT_MS);
      assert.deepEqual([await store.tasks.lapse(2), await store.tasks.lapse(2)], [2, 1]);
      assert.equal((await inboxTexts(store)).length, 3);
    },
  },
  {
    role,
    name: "a lapse leaves running leases and queued tasks alone",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: ["short", "long", "queued"].map((token) => task(token)) });
      await lease(store, { max: 1, leaseMs: SHORT_MS });
      await lease(store, { max: 1, leaseMs: LONG_MS });
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      assert.deepEqual(await inboxBodies(store), [lost("short")]);
      const { leased, queued } = await store.queries.counts();
      assert.deepEqual([leased, queued["queue"]], [1, 1]);
    },
  },
  {
    role,
    name: "a lapse hands the task to nobody, not even to one who waits",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await leaseOne(store, owner, "t", SHORT_MS);
      const leasing = store.tasks.lease(leaseRequest({ waitMs: 2 * PAST_SHORT_MS }));
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      await advance(2 * PAST_SHORT_MS);
      assert.deepEqual(await leasing, []);
      assert.deepEqual(await leaseTokens(store), []);
    },
  },
  {
    role,
    name: "deliveryLost goes to the inbox of the task's partition",
    requires: severalPartitions,
    run: async ({ store, advance }) => {
      await leaseOne(store, await acquire(store, 1), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      await store.tasks.lapse(10);
      assert.deepEqual(await inboxBodies(store, 1), [lost("t")]);
      assert.deepEqual(await inboxBodies(store, 0), []);
    },
  },
  {
    role,
    name: "a lapse wakes the owner",
    run: async (harness) => {
      await leaseOne(harness.store, await acquire(harness.store), "t", SHORT_MS);
      await harness.advance(PAST_SHORT_MS);
      const reading = harness.store.inbox.read([readRequest()], WAIT_MS);
      await harness.store.tasks.lapse(10);
      assert.equal((await soon(harness, reading))[0]?.messages.length, 1);
    },
  },
  {
    role,
    name: "a lapse posts to an inbox however full",
    run: async ({ store, advance, inboxLimit }) => {
      await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await store.inbox.append(
        Array.from({ length: inboxLimit }, () => ({ partition: 0, start: false, text: '{"body":"filler"}' })),
      );
      await advance(PAST_SHORT_MS);
      await store.tasks.lapse(10);
      assert.deepEqual((await inboxBodies(store)).at(-1), lost("t"));
    },
  },
  {
    role,
    name: "a lease that runs out while no process is there lapses afterwards",
    requires: durableTasks,
    run: async (harness) => {
      await leaseOne(harness.store, await acquire(harness.store), "t", SHORT_MS);
      const store = await harness.reopen!();
      await harness.advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      assert.deepEqual(await inboxBodies(store), [lost("t")]);
    },
  },
];

const heartbeatCases: readonly Case[] = [
  {
    role,
    name: "a heartbeat makes the lease longer",
    run: async ({ store, advance }) => {
      const { ref } = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      assert.deepEqual(await store.tasks.heartbeat([{ ref, token: "t" }], LONG_MS), { lost: [], cancelled: [] });
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 0);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "a lease that a heartbeat made longer still runs out, at the new time",
    run: async ({ store, advance }) => {
      const { ref } = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await store.tasks.heartbeat([{ ref, token: "t" }], 4 * SHORT_MS);
      await advance(2 * SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 0);
      await advance(4 * SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
    },
  },
  {
    role,
    name: "a heartbeat makes longer the leases it names, and no others of the same worker",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: ["a", "b", "c"].map((token) => task(token)) });
      const [a, , c] = await lease(store, { leaseMs: SHORT_MS });
      const beats = [c!, a!].map(({ ref, token }) => ({ ref, token }));
      assert.deepEqual(await store.tasks.heartbeat(beats, LONG_MS), { lost: [], cancelled: [] });
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
      assert.deepEqual(await inboxBodies(store), [lost("b")]);
    },
  },
  {
    role,
    name: "a heartbeat whose name and token do not belong together is lost, and makes nothing longer",
    run: async ({ store, advance }) => {
      const { ref } = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      const beats = [
        { ref, token: "another" },
        { ref: `${ref}9`, token: "t" },
      ];
      const { lost, cancelled } = await store.tasks.heartbeat(beats, LONG_MS);
      assert.deepEqual([[...lost].sort(), cancelled], [["another", "t"], []]);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
    },
  },
  {
    role,
    name: "a heartbeat after the time ran out keeps the lease, if it has not lapsed yet",
    run: async ({ store, advance }) => {
      const { ref } = await leaseOne(store, await acquire(store), "t", SHORT_MS);
      await advance(PAST_SHORT_MS);
      assert.deepEqual(await store.tasks.heartbeat([{ ref, token: "t" }], LONG_MS), { lost: [], cancelled: [] });
      assert.equal(await store.tasks.lapse(10), 0);
    },
  },
  {
    role,
    name: "a heartbeat of a lost delivery does not keep the next one alive",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      const zombie = await leaseOne(store, owner, "t:1", SHORT_MS);
      await advance(PAST_SHORT_MS);
      await store.tasks.lapse(10);
      await leaseOne(store, owner, "t:2", SHORT_MS);
      const beat = await store.tasks.heartbeat([{ ref: zombie.ref, token: "t:1" }], LONG_MS);
      assert.deepEqual(beat.lost, ["t:1"]);
      await advance(PAST_SHORT_MS);
      assert.equal(await store.tasks.lapse(10), 1);
    },
  },
  {
    role,
    name: "a heartbeat posts what it has to say to the owner, as it is, and one without posts nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b")] });
      const [a, b] = await lease(store);
      await store.tasks.heartbeat(
        [
          { ref: a!.ref, token: "a", started: { partition: 0, text: '{ "a": 1.0 }' } },
          { ref: b!.ref, token: "b" },
        ],
        LONG_MS,
      );
      assert.deepEqual(await inboxTexts(store), ['{ "a": 1.0 }']);
    },
  },
  {
    role,
    name: "what a heartbeat says goes to the partition it names",
    requires: severalPartitions,
    run: async ({ store }) => {
      const { ref } = await leaseOne(store, await acquire(store, 1), "t");
      await store.tasks.heartbeat([{ ref, token: "t", started: { partition: 1, text: '"started"' } }], LONG_MS);
      assert.deepEqual(await inboxTexts(store, 1), ['"started"']);
      assert.deepEqual(await inboxTexts(store, 0), []);
    },
  },
  {
    role,
    name: "a heartbeat that is lost posts nothing",
    run: async ({ store }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      await store.tasks.settle([settlement(leased, "completed", '"done"')]);
      const started = { partition: 0, text: '"started"' };
      const beat = await store.tasks.heartbeat([{ ref: leased.ref, token: "t", started }], LONG_MS);
      assert.deepEqual(beat, { lost: ["t"], cancelled: [] });
      assert.deepEqual(await inboxTexts(store), ['"done"']);
    },
  },
];

export const taskLapseCases: readonly Case[] = [...lapseCases, ...heartbeatCases];
