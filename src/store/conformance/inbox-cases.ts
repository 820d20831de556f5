import assert from "node:assert/strict";
import type { Position, ReadResult } from "../contract.ts";
import { type Case, durableInbox, lateAppends, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import { appendTexts, inboxTexts, message, numbered, read, readRequest } from "./things.ts";

const role = "inbox";

export const inboxCases: readonly Case[] = [
  {
    role,
    name: "messages are read in the order of their append, in one call and over several",
    run: async ({ store }) => {
      await appendTexts(store, ['"a"', '"b"']);
      await appendTexts(store, ['"c"']);
      await appendTexts(store, ['"d"', '"e"']);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"', '"c"', '"d"', '"e"']);
    },
  },
  {
    role,
    name: "an inbox is read by anybody, and reading takes nothing out",
    run: async ({ store }) => {
      await appendTexts(store, ['"a"', '"b"']);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"']);
      await acquire(store);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"']);
    },
  },
  {
    role,
    name: "the same text appended twice is two messages",
    run: async ({ store }) => {
      await appendTexts(store, ['"a"']);
      await appendTexts(store, ['"a"']);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"a"']);
    },
  },
  {
    role,
    name: "an append of nothing is nothing",
    run: async ({ store }) => {
      assert.deepEqual(await store.inbox.append([]), []);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "each partition has its own inbox, and one append may go to several",
    requires: severalPartitions,
    run: async ({ store }) => {
      const outcomes = await store.inbox.append([
        message('"a"', { partition: 1 }),
        message('"b"'),
        message('"c"', { partition: 1 }),
      ]);
      assert.deepEqual(outcomes, ["appended", "appended", "appended"]);
      assert.deepEqual(await inboxTexts(store, 0), ['"b"']);
      assert.deepEqual(await inboxTexts(store, 1), ['"a"', '"c"']);
    },
  },
  {
    role,
    name: "a read gives the oldest up to its limit",
    run: async ({ store }) => {
      await appendTexts(store, numbered(5));
      assert.deepEqual((await read(store, { limit: 2 })).messages, numbered(2));
    },
  },
  {
    role,
    name: "a read stops before the message that would make it too long",
    run: async ({ store }) => {
      await appendTexts(store, ['"aaaa"', '"bbbb"', '"cccc"', '"d"']);
      assert.deepEqual((await read(store, { maxChars: 12 })).messages, ['"aaaa"', '"bbbb"']);
      assert.deepEqual((await read(store, { maxChars: 17 })).messages, ['"aaaa"', '"bbbb"']);
    },
  },
  {
    role,
    name: "a read gives the first message however long it is, and its position names just that one",
    run: async ({ store }) => {
      await appendTexts(store, ['"much too long"', '"b"']);
      const { messages, position } = await read(store, { maxChars: 3 });
      assert.deepEqual(messages, ['"much too long"']);
      await (await acquire(store)).commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), ['"b"']);
    },
  },
  {
    role,
    name: "one result for each request, in order, with the limit for each",
    requires: severalPartitions,
    run: async ({ store }) => {
      await appendTexts(store, numbered(3, "zero"), 0);
      await appendTexts(store, numbered(3, "one"), 1);
      const requests = [1, 0].map((partition) => readRequest({ partition, limit: 2 }));
      const results = await store.inbox.read(requests, 0);
      assert.deepEqual(
        results.map(({ partition, messages }) => ({ partition, messages })),
        [
          { partition: 1, messages: numbered(2, "one") },
          { partition: 0, messages: numbered(2, "zero") },
        ],
      );
    },
  },
  {
    role,
    name: "a partition without messages has an empty result beside one that has some",
    requires: severalPartitions,
    run: async ({ store }) => {
      await appendTexts(store, ['"a"'], 1);
      const results = await store.inbox.read(
        [0, 1].map((partition) => readRequest({ partition })),
        SHORT_MS,
      );
      assert.deepEqual(
        results.map(({ messages }) => messages),
        [[], ['"a"']],
      );
    },
  },
  {
    role,
    name: "a commit consumes the messages of the position and no others",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(3));
      const { position } = await read(store, { limit: 2 });
      await appendTexts(store, ['"new"']);
      await owner.commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), ['"m2"', '"new"']);
      assert.equal((await store.queries.counts()).inbox, 2);
    },
  },
  {
    role,
    name: "a fenced commit consumes nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(3));
      const { position } = await read(store);
      const batch = owner.batch({ consumed: position });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual(await inboxTexts(store), numbered(3));
    },
  },
  {
    role,
    name: "a read after a position gives what is beyond the batch in flight",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(5));
      const first = await read(store, { limit: 2 });
      const second = await read(store, { limit: 2, after: first.position });
      assert.deepEqual(second.messages, ['"m2"', '"m3"']);
      await owner.commit({ consumed: first.position });
      assert.deepEqual((await read(store, { after: second.position })).messages, ['"m4"']);
      assert.deepEqual((await read(store)).messages, ['"m2"', '"m3"', '"m4"']);
      await owner.commit({ consumed: second.position });
      assert.deepEqual(await inboxTexts(store), ['"m4"']);
    },
  },
  {
    role,
    name: "a read after a position that was consumed meanwhile goes on behind it",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(3));
      const { position } = await read(store, { limit: 1 });
      await owner.commit({ consumed: position });
      assert.deepEqual((await read(store, { after: position })).messages, ['"m1"', '"m2"']);
    },
  },
  {
    role,
    name: "a read without a position begins at the beginning, whatever was read before",
    run: async ({ store }) => {
      await appendTexts(store, numbered(3));
      const { position } = await read(store, { limit: 2 });
      await read(store, { after: position });
      assert.deepEqual((await read(store)).messages, numbered(3));
    },
  },
  {
    role,
    name: "read, commit, read beyond it: batch after batch everything is read once and nothing is left",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(7));
      const seen: string[] = [];
      let inFlight: Position | null = null;
      // More often than it should take: a driver that gives the same again must not keep us here for ever.
      for (let i = 0; i < 10; i++) {
        const next: ReadResult = await read(store, { limit: 2, after: inFlight });
        await owner.commit({ consumed: inFlight });
        if (next.messages.length === 0) break;
        seen.push(...next.messages);
        inFlight = next.position;
      }
      assert.deepEqual(seen, numbered(7));
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "of many starts and others all are read once, each kind in its order",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const starts = numbered(20, "s").map((text) => message(text, { start: true }));
      const others = numbered(40, "o").map((text) => message(text));
      await store.inbox.append([...starts.slice(0, 15), ...others, ...starts.slice(15)]);
      const seen: string[] = [];
      let inFlight: Position | null = null;
      for (let i = 0; i < 20; i++) {
        const next: ReadResult = await read(store, { limit: 8, after: inFlight });
        assert.ok(next.messages.length <= 8);
        await owner.commit({ consumed: inFlight });
        if (next.messages.length === 0) break;
        seen.push(...next.messages);
        inFlight = next.position;
      }
      const of = (kind: string): readonly string[] => seen.filter((text) => text.startsWith(`"${kind}`));
      assert.deepEqual([of("s"), of("o")], [numbered(20, "s"), numbered(40, "o")]);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role,
    name: "a position of an empty read consumes nothing, and everything is beyond it",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const { messages, position } = await read(store);
      assert.deepEqual(messages, []);
      await appendTexts(store, ['"a"']);
      assert.deepEqual((await read(store, { after: position })).messages, ['"a"']);
      await owner.commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), ['"a"']);
    },
  },
  {
    role,
    name: "a position survives a trip through JSON",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, numbered(3));
      const position = JSON.parse(JSON.stringify((await read(store, { limit: 2 })).position));
      assert.deepEqual((await read(store, { after: position })).messages, ['"m2"']);
      await owner.commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), ['"m2"']);
    },
  },
  {
    role,
    name: "a message that becomes visible late, before ones already read, is not consumed with them",
    requires: lateAppends,
    run: async (harness) => {
      const { store } = harness;
      const owner = await acquire(store);
      const show = await harness.appendLate!(message('"late"'));
      await appendTexts(store, ['"a"', '"b"']);
      const { messages, position } = await read(store);
      assert.deepEqual(messages, ['"a"', '"b"']);
      await show();
      await owner.commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), ['"late"']);
    },
  },
  {
    role,
    name: "a message that becomes visible late is read beyond the batch in flight",
    requires: lateAppends,
    run: async (harness) => {
      const { store } = harness;
      const show = await harness.appendLate!(message('"late"'));
      await appendTexts(store, ['"a"', '"b"']);
      const { position } = await read(store);
      await show();
      await appendTexts(store, ['"c"']);
      assert.deepEqual([...(await read(store, { after: position })).messages].sort(), ['"c"', '"late"']);
    },
  },
  {
    role,
    name: "nothing is lost or doubled when many append at the same moment, and each one's order is kept",
    run: async ({ store, inboxLimit }) => {
      const senders = Array.from({ length: 8 }, (_, i) => numbered(5, `sender ${i} `));
      assert.ok(inboxLimit > 0);
      await Promise.all(
        senders.map(async (texts) => {
          for (const text of texts) await appendTexts(store, [text]);
        }),
      );
      const texts = await inboxTexts(store);
      assert.deepEqual([...texts].sort(), senders.flat().sort());
      for (const sender of senders) {
        assert.deepEqual(
          texts.filter((text) => sender.includes(text)),
          sender,
        );
      }
    },
  },
  {
    role,
    name: "messages from outside outlive the process",
    requires: durableInbox,
    run: async (harness) => {
      await appendTexts(harness.store, ['"a"', '"b"']);
      const store = await harness.reopen!();
      await appendTexts(store, ['"c"']);
      assert.deepEqual(await inboxTexts(store), ['"a"', '"b"', '"c"']);
    },
  },
];
