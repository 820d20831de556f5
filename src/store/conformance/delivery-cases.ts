import assert from "node:assert/strict";
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
import {
  appendTexts,
  inboxTexts,
  leaseOne,
  message,
  numbered,
  read,
  readRequest,
  reply,
  settlement,
} from "./things.ts";

const role = "inbox";

const admissionCases: readonly Case[] = [
  {
    role,
    name: "a start is refused once the inbox is full, and leaves nothing",
    run: async ({ store, inboxLimit }) => {
      await appendTexts(store, numbered(inboxLimit));
      assert.deepEqual(await store.inbox.append([message('"start"', { start: true })]), ["overloaded"]);
      assert.deepEqual(await inboxTexts(store), numbered(inboxLimit));
    },
  },
  {
    role,
    name: "a start is taken as long as the inbox is not full",
    run: async ({ store, inboxLimit }) => {
      await appendTexts(store, numbered(inboxLimit - 1));
      assert.deepEqual(await store.inbox.append([message('"start"', { start: true })]), ["appended"]);
      assert.equal((await inboxTexts(store)).at(-1), '"start"');
    },
  },
  {
    role,
    name: "what is no start is never refused, not even between starts that are",
    run: async ({ store, inboxLimit }) => {
      await appendTexts(store, numbered(inboxLimit));
      const outcomes = await store.inbox.append([
        message('"start"', { start: true }),
        message('"command"'),
        message('"start"', { start: true }),
        message('"result"'),
      ]);
      assert.deepEqual(outcomes, ["overloaded", "appended", "overloaded", "appended"]);
      assert.deepEqual((await inboxTexts(store)).slice(inboxLimit), ['"command"', '"result"']);
    },
  },
  {
    role,
    name: "starts are taken again when a commit has made room",
    run: async ({ store, inboxLimit }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(inboxLimit));
      const { position } = await read(store, { limit: 1 });
      await owner.commit({ consumed: position });
      assert.deepEqual(await store.inbox.append([message('"start"', { start: true })]), ["appended"]);
    },
  },
  {
    role,
    name: "a full inbox refuses the starts of its own partition only",
    requires: severalPartitions,
    run: async ({ store, inboxLimit }) => {
      await appendTexts(store, numbered(inboxLimit), 0);
      const starts = [1, 0].map((partition) => message('"start"', { partition, start: true }));
      assert.deepEqual(await store.inbox.append(starts), ["appended", "overloaded"]);
    },
  },
  {
    role,
    name: "mail is never refused, not even a start",
    run: async ({ store, inboxLimit }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(inboxLimit));
      await owner.commit({ mail: [message('"child"', { start: true }), message('"cancel"')] });
      assert.deepEqual((await inboxTexts(store)).slice(inboxLimit), ['"child"', '"cancel"']);
    },
  },
  {
    role,
    name: "a result is posted to an inbox however full",
    run: async ({ store, inboxLimit }) => {
      const leased = await leaseOne(store, await acquire(store), "t");
      await appendTexts(store, numbered(inboxLimit));
      assert.deepEqual(await store.tasks.settle([settlement(leased, "completed", '"result"')]), ["settled"]);
      assert.equal((await inboxTexts(store)).at(-1), '"result"');
    },
  },
];

const waitingCases: readonly Case[] = [
  {
    role,
    name: "a read of an empty inbox waits for a message",
    run: async (harness) => {
      const { store } = harness;
      const reading = store.inbox.read([readRequest()], WAIT_MS);
      await assertStillWaiting(harness, reading);
      await appendTexts(store, ['"a"']);
      assert.deepEqual((await soon(harness, reading))[0]?.messages, ['"a"']);
    },
  },
  {
    role,
    name: "a read that waits in vain answers an empty result for each request",
    run: async (harness) => {
      const results = await inVain(harness, harness.store.inbox.read([readRequest()], SHORT_MS));
      assert.deepEqual(
        results.map(({ partition, messages }) => ({ partition, messages })),
        [{ partition: 0, messages: [] }],
      );
    },
  },
  {
    role,
    name: "a read beyond the batch in flight waits although that batch is still there",
    run: async (harness) => {
      const { store } = harness;
      await appendTexts(store, ['"a"']);
      const { position } = await read(store);
      const reading = store.inbox.read([readRequest({ after: position })], WAIT_MS);
      await assertStillWaiting(harness, reading);
      await appendTexts(store, ['"b"']);
      assert.deepEqual((await soon(harness, reading))[0]?.messages, ['"b"']);
    },
  },
  {
    role,
    name: "a read of several partitions is woken by any of them",
    requires: severalPartitions,
    run: async (harness) => {
      const { store } = harness;
      const requests = [0, 1].map((partition) => readRequest({ partition }));
      const reading = store.inbox.read(requests, WAIT_MS);
      await appendTexts(store, ['"a"'], 1);
      const results = await soon(harness, reading);
      assert.deepEqual(
        results.map(({ messages }) => messages),
        [[], ['"a"']],
      );
    },
  },
  {
    role,
    name: "a read is not ended by a message for another partition",
    requires: severalPartitions,
    run: async (harness) => {
      const reading = harness.store.inbox.read([readRequest()], WAIT_MS);
      await appendTexts(harness.store, ['"a"'], 1);
      await assertStillWaiting(harness, reading);
      await appendTexts(harness.store, ['"b"'], 0);
      assert.deepEqual((await soon(harness, reading))[0]?.messages, ['"b"']);
    },
  },
  {
    role,
    name: "a read is woken by mail",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const reading = harness.store.inbox.read([readRequest()], WAIT_MS);
      await owner.commit({ mail: [message('"mail"')] });
      assert.deepEqual((await soon(harness, reading))[0]?.messages, ['"mail"']);
    },
  },
  {
    role,
    name: "a read is woken by a result",
    run: async (harness) => {
      const leased = await leaseOne(harness.store, await acquire(harness.store), "t");
      const reading = harness.store.inbox.read([readRequest()], WAIT_MS);
      await harness.store.tasks.settle([settlement(leased, "completed", '"result"')]);
      assert.deepEqual((await soon(harness, reading))[0]?.messages, ['"result"']);
    },
  },
];

const mailCases: readonly Case[] = [
  {
    role,
    name: "mail is there with the commit, in order, behind what was there before",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, ['"a"']);
      await owner.commit({ mail: [message('"b"'), message('"c"')] });
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"', '"c"']);
    },
  },
  {
    role,
    name: "mail goes to the inbox of its partition",
    requires: severalPartitions,
    run: async ({ store }) => {
      const owner = await acquire(store, 0);
      await owner.commit({ mail: [message('"a"', { partition: 1 }), message('"b"', { partition: 0 })] });
      assert.deepEqual(await inboxTexts(store, 0), ['"b"']);
      assert.deepEqual(await inboxTexts(store, 1), ['"a"']);
    },
  },
  {
    role,
    name: "mail of a fenced commit is never seen",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ mail: [message('"mail"')] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, epoch: 0 } })).kind, "fenced");
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "mail of a commit to its own inbox is not consumed by that commit",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, ['"a"']);
      const { position } = await read(store);
      await owner.commit({ consumed: position, mail: [message('"b"')] });
      assert.deepEqual(await inboxTexts(store), ['"b"']);
    },
  },
  {
    role,
    name: "mail outlives the process, until it is consumed",
    requires: canReopen,
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit({ mail: [message('"a"'), message('"b"')] });
      const { position } = await read(harness.store, { limit: 1 });
      await owner.commit({ consumed: position });
      const store = await harness.reopen!();
      assert.deepEqual(await inboxTexts(store), ['"b"']);
    },
  },
];

const replyCases: readonly Case[] = [
  {
    role,
    name: "replies come with the commit, in order, each once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ replies: [reply("1"), reply("2")] });
      await owner.commit({ replies: [reply("3")] });
      assert.deepEqual(await store.inbox.replies("process", 0), [reply("1"), reply("2"), reply("3")]);
      assert.deepEqual(await store.inbox.replies("process", 0), []);
    },
  },
  {
    role,
    name: "replies go to the process that asked",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ replies: [reply("1", "a"), reply("2", "b")] });
      assert.deepEqual(await store.inbox.replies("b", 0), [reply("2", "b")]);
      assert.deepEqual(await store.inbox.replies("c", 0), []);
      assert.deepEqual(await store.inbox.replies("a", 0), [reply("1", "a")]);
    },
  },
  {
    role,
    name: "a process waits for replies",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      const waiting = harness.store.inbox.replies("process", WAIT_MS);
      await owner.commit({ replies: [reply("0", "another")] });
      await assertStillWaiting(harness, waiting);
      await owner.commit({ replies: [reply("1")] });
      assert.deepEqual(await soon(harness, waiting), [reply("1")]);
    },
  },
  {
    role,
    name: "a process that waits for replies in vain gets none",
    run: async (harness) => {
      assert.deepEqual(await inVain(harness, harness.store.inbox.replies("process", SHORT_MS)), []);
    },
  },
  {
    role,
    name: "a reply read twice at the same moment is given once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ replies: [reply("1")] });
      const both = await Promise.all([store.inbox.replies("process", 0), store.inbox.replies("process", 0)]);
      assert.deepEqual(both.flat(), [reply("1")]);
    },
  },
  {
    role,
    name: "replies of a fenced commit are never given",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ replies: [reply("1")] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, seq: 9 } })).kind, "fenced");
      assert.deepEqual(await store.inbox.replies("process", 0), []);
    },
  },
];

export const deliveryCases: readonly Case[] = [...admissionCases, ...waitingCases, ...mailCases, ...replyCases];
