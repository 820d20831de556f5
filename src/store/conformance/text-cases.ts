import assert from "node:assert/strict";
import type { Case } from "./harness.ts";
import { acquire } from "./owner.ts";
import {
  appendTexts,
  deadLetter,
  ENTITY,
  inboxTexts,
  lease,
  listing,
  message,
  record,
  reply,
  settlement,
  snapshot,
  task,
} from "./things.ts";

const role = "texts";

/**
 * What a driver has to give back unchanged: well-formed Unicode without a raw NUL, which is what `JSON.stringify` makes
 * of anything (it escapes NUL and lone surrogates). A driver that parses a text, or stores it as a JSON type, changes
 * the last five.
 */
const TEXTS: readonly (readonly [string, string])[] = [
  ["a NUL and other control characters", JSON.stringify("\0\u0001\u001f\u007f\u0085")],
  ["lone surrogates", JSON.stringify(["\ud800", "\udfff", "a\udc00b"])],
  [
    "letters of many scripts and emoji",
    JSON.stringify({ "ключ 鍵": "héllo, 世界, 👩‍🚀, \u{10ffff}, \u2028\u2029\ufeff" }),
  ],
  ["quotes, backslashes, percent signs and braces", JSON.stringify("'\"\\ %s %% {0} {{x}} $1 :a ?; -- /* ")],
  ["composed and decomposed letters", JSON.stringify(["\u00e9", "e\u0301"])],
  ["spaces and line ends", '{ "b" :\t1,\r\n  "a": 2 }\n'],
  ["keys twice", '{"a":1,"a":2}'],
  ["numbers no double holds", "[12345678901234567890,1.0,1e400,0.1000,-0]"],
  ["escapes nobody needs", '"\\u0061\\/"'],
  ["keys in the order of their writing", '{"b":1,"a":2,"10":3,"9":4}'],
];

/** Sends a text through every place that keeps one, and compares. */
const roundTrip = (what: string, text: string): Case => ({
  role,
  name: `${what} come back as they were, everywhere`,
  run: async ({ store }) => {
    const owner = await acquire(store);
    await appendTexts(store, [text]);
    await store.records.put([{ scope: "s", hash: "h", text }]);
    await store.records.register({ process: "p", role: "worker", text }, 60_000);
    await owner.commit({
      records: [{ ...record(ENTITY, 1), text }],
      snapshots: [{ ...snapshot(ENTITY, 1), text }],
      tasks: [task("t", { text })],
      mail: [message(text)],
      replies: [{ ...reply("r"), text }],
      deadLetters: [deadLetter("l", 1, text)],
      listings: [listing("l", "i", { text })],
    });
    const [leased] = await lease(store);
    await store.tasks.settle([settlement(leased!, "completed", text)]);
    assert.equal(leased?.text, text);
    assert.deepEqual(await inboxTexts(store), [text, text, text]);
    const loaded = await store.journal.load([
      { partition: 0, entity: ENTITY },
      { partition: 0, entity: ENTITY, aboveVersion: 0 },
    ]);
    assert.equal(loaded[0]?.snapshot?.text, text);
    assert.equal(loaded[1]?.records[0]?.text, text);
    assert.equal((await store.inbox.replies("process", 0))[0]?.text, text);
    assert.equal((await store.queries.deadLetters({ limit: 1 })).items[0]?.text, text);
    assert.equal((await store.queries.listed("l", "i"))?.text, text);
    assert.deepEqual(await store.records.get([{ scope: "s", hash: "h" }]), [text]);
    assert.equal((await store.records.registered())[0]?.text, text);
  },
});

export const textCases: readonly Case[] = [
  ...TEXTS.map(([what, text]) => roundTrip(what, text)),
  {
    role,
    name: "a text of 1 MiB goes through inbox and records",
    run: async ({ store }) => {
      const text = JSON.stringify("ä👩‍🚀 ".repeat(140_000)).slice(0, 1024 * 1024 - 1) + '"';
      await appendTexts(store, [text, '"after"']);
      assert.deepEqual(await inboxTexts(store), [text, '"after"']);
      await store.records.put([{ scope: "s", hash: "h", text }]);
      assert.deepEqual(await store.records.get([{ scope: "s", hash: "h" }]), [text]);
    },
  },
  {
    role,
    name: "a record as long as the driver lets a batch be is committed and loaded",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const text = JSON.stringify("x".repeat(Math.min(store.capabilities.maxBatchBytes, 1024 * 1024) - 4096));
      await owner.commit({ records: [{ ...record(ENTITY, 1), text }] });
      const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY }]);
      assert.equal(loaded?.records[0]?.text, text);
    },
  },
  {
    role,
    name: "names may hold anything but NUL: they separate, match and sort nothing by accident",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const odd = [
        "a:b",
        "a",
        "A",
        "a/b",
        "a%",
        "a_",
        "a*",
        "{a}",
        "a b",
        "a'b",
        'a"b',
        "a\\b",
        "ä",
        "👩‍🚀",
        "__proto__",
      ];
      await owner.commit({
        records: odd.map((name) => record(`execution/${name}`, 1)),
        tasks: odd.map((name) => task(`token ${name}`, { queue: name })),
        replies: odd.map((name) => reply("r", name)),
        deadLetters: odd.map((name) => ({ ...deadLetter(name, 1), queue: name })),
        listings: odd.map((name) => listing(name, name, { entity: `execution/${name}` })),
      });
      await store.records.put(
        odd.map((name) => ({ scope: `execution/${name}`, hash: name, text: JSON.stringify(name) })),
      );
      for (const name of odd) {
        const entity = `execution/${name}`;
        assert.deepEqual((await store.journal.load([{ partition: 0, entity }]))[0]?.records, [record(entity, 1)]);
        const leased = await lease(store, { queues: [name] });
        assert.deepEqual(
          leased.map(({ token, queue }) => [token, queue]),
          [[`token ${name}`, name]],
        );
        assert.deepEqual(await store.inbox.replies(name, 0), [reply("r", name)]);
        assert.deepEqual(await store.records.get([{ scope: entity, hash: name }]), [JSON.stringify(name)]);
        assert.equal(await store.records.publish(name, name), 1);
        assert.deepEqual(await store.records.published(name), { version: 1, hash: name });
        assert.deepEqual((await store.queries.deadLetter(name))?.queue, name);
        const listed = await store.queries.listing({ list: name, limit: 10 });
        assert.deepEqual(listed.items, [listing(name, name, { entity })]);
      }
      await owner.commit({ purge: ["execution/a"] });
      for (const name of odd) assert.equal((await store.queries.listed(name, name)) === null, name === "a");
      await store.records.unpublish("a");
      for (const name of odd) assert.equal((await store.records.published(name)) === null, name === "a");
    },
  },
];
