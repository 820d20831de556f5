import assert from "node:assert/strict";
import type { Counts, DeadLetterQuery, Header, HeaderQuery, Store } from "../contract.ts";
import { type Case, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import { appendTexts, behind, collect, deadLetter, header, lease, message, task } from "./things.ts";

const role = "queries";

async function entities(store: Store, query: HeaderQuery): Promise<readonly string[]> {
  const all = await collect((cursor) => store.queries.headers(behind(query, cursor)));
  return all.map(({ entity }) => entity);
}

async function letters(store: Store, query: DeadLetterQuery): Promise<readonly string[]> {
  const all = await collect((cursor) => store.queries.deadLetters(behind(query, cursor)));
  return all.map(({ id }) => id);
}

const headerCases: readonly Case[] = [
  {
    role,
    name: "what has ended and what is open is counted, if at all: once however often it is written, and not once it is gone",
    run: async ({ store }) => {
      const owner = await acquire(store);
      // Whoever counts may go on from what was counted before.
      await store.queries.counts();
      const ended = { class: "endedWell", status: "COMPLETED", endedAtMs: 2000 } as const;
      await owner.commit({
        headers: [header("e/a"), header("e/b", ended), header("e/c", ended), header("e/d", ended), header("e/o")],
      });
      const headers = [header("e/a", ended), header("e/b", ended), header("e/c"), header("e/f"), header("e/f")];
      // What belongs to no workflow is no execution. What was called stays with its caller, and is not counted with what ended.
      const called = [header(`execution/${"0a".repeat(16)}`, ended), header(`execution/${"b1".repeat(16)}`, ended)];
      const others = [...called, header("e/l", { workflow: "" })];
      await owner.commit({ headers: [...headers, ...others], purge: ["e/d", "e/o"] });
      await owner.commit({ purge: [called[1]!.entity] });
      const { ended: count, open } = await store.queries.counts();
      assert.ok(count === undefined || count === 2, `${count} are counted`);
      assert.ok(open === undefined || open === 2, `${open} are counted as open`);
    },
  },
  {
    role,
    name: "headers are as they were committed, newest first",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const headers = [
        header("e/a", { createdAtMs: 900, class: "endedBadly", status: "FAILED", endedAtMs: 950, version: 7 }),
        header("e/b", { createdAtMs: 10_000, tenant: "tenant" }),
        header("e/c", { createdAtMs: 2000, workflow: "other" }),
      ];
      await owner.commit({ headers });
      assert.deepEqual((await store.queries.headers({ limit: 10 })).items, [headers[1], headers[2], headers[0]]);
    },
  },
  {
    role,
    name: "headers page by page are all of them once, in order, at equal times too",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const headers = Array.from({ length: 17 }, (_, i) => header(`e/${i}`, { createdAtMs: 100 + (i % 4) }));
      await owner.commit({ headers });
      const all = await collect((cursor) => store.queries.headers(behind({ limit: 3 }, cursor)));
      assert.deepEqual(all.map(({ entity }) => entity).sort(), headers.map(({ entity }) => entity).sort());
      const times = all.map(({ createdAtMs }) => createdAtMs);
      assert.deepEqual(
        times,
        [...times].sort((a, b) => b - a),
      );
    },
  },
  {
    role,
    name: "a page has at most its limit, and the last one has no cursor",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ headers: [1, 2, 3].map((i) => header(`e/${i}`, { createdAtMs: i })) });
      const first = await store.queries.headers({ limit: 2 });
      assert.equal(first.items.length, 2);
      assert.ok(first.cursor !== null);
      const second = await store.queries.headers({ limit: 2, cursor: first.cursor });
      assert.deepEqual([second.items.length, second.cursor], [1, null]);
    },
  },
  {
    role,
    name: "paging is not disturbed by what is created and purged meanwhile",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ headers: [1, 2, 3, 4].map((i) => header(`e/${i}`, { createdAtMs: i })) });
      const first = await store.queries.headers({ limit: 2 });
      const later = ["e/new", "e/newer"].map((entity) => header(entity, { createdAtMs: 9 }));
      await owner.commit({ headers: later, purge: ["e/3"] });
      const second = await store.queries.headers({ limit: 2, cursor: first.cursor! });
      assert.deepEqual(
        [...first.items, ...second.items].map(({ entity }) => entity),
        ["e/4", "e/3", "e/2", "e/1"],
      );
    },
  },
  {
    role,
    name: "headers can be asked for by class",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const classes: readonly Header["class"][] = ["open", "endedWell", "endedBadly", "open"];
      await owner.commit({ headers: classes.map((name, i) => header(`e/${i}`, { class: name, createdAtMs: i })) });
      assert.deepEqual(await entities(store, { class: "open", limit: 1 }), ["e/3", "e/0"]);
      assert.deepEqual(await entities(store, { class: "endedWell", limit: 10 }), ["e/1"]);
      assert.deepEqual(await entities(store, { class: "endedBadly", limit: 10 }), ["e/2"]);
    },
  },
  {
    role,
    name: "headers can be asked for by workflow",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const names = ["w", "v", "w", "ww"];
      await owner.commit({ headers: names.map((workflow, i) => header(`e/${i}`, { workflow, createdAtMs: i })) });
      assert.deepEqual(await entities(store, { workflow: "w", limit: 1 }), ["e/2", "e/0"]);
      assert.deepEqual(await entities(store, { workflow: "none", limit: 10 }), []);
    },
  },
  {
    role,
    name: "headers can be asked for by class and workflow together",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({
        headers: [
          header("e/0", { workflow: "w", class: "open" }),
          header("e/1", { workflow: "w", class: "endedWell" }),
          header("e/2", { workflow: "v", class: "open" }),
        ],
      });
      assert.deepEqual(await entities(store, { workflow: "w", class: "open", limit: 10 }), ["e/0"]);
    },
  },
  {
    role,
    name: "headers can be asked for by the time since when they were created, with other filters and page by page",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const times = [10, 20, 20, 30, 40];
      await owner.commit({
        headers: times.map((createdAtMs, i) => header(`e/${i}`, { createdAtMs, workflow: i === 3 ? "v" : "w" })),
      });
      assert.deepEqual(await entities(store, { sinceMs: 20, limit: 1 }), ["e/4", "e/3", "e/2", "e/1"]);
      assert.deepEqual(await entities(store, { sinceMs: 21, workflow: "w", limit: 10 }), ["e/4"]);
      assert.deepEqual(await entities(store, { sinceMs: 41, limit: 10 }), []);
    },
  },
  {
    role,
    name: "a header is found by its entity, as it is now",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const ended = header("e/1", { class: "endedWell", status: "COMPLETED", endedAtMs: 9, version: 5, tenant: "t" });
      await owner.commit({ headers: [header("e/1"), header("e/2"), header("e/3")] });
      await owner.commit({ headers: [ended], purge: ["e/3"] });
      assert.deepEqual(await store.queries.header(0, "e/1"), ended);
      assert.deepEqual(await store.queries.header(0, "e/2"), header("e/2"));
      assert.equal(await store.queries.header(0, "e/3"), null);
      assert.equal(await store.queries.header(0, "e/none"), null);
    },
  },
  {
    role,
    name: "a header written again takes the place of the one before, in its old place among the others",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ headers: [1, 2, 3].map((i) => header(`e/${i}`, { createdAtMs: i })) });
      const ended = header("e/2", {
        createdAtMs: 2,
        class: "endedWell",
        status: "COMPLETED",
        endedAtMs: 9,
        version: 5,
      });
      await owner.commit({ headers: [ended] });
      assert.deepEqual(await entities(store, { limit: 2 }), ["e/3", "e/2", "e/1"]);
      assert.deepEqual(await entities(store, { class: "open", limit: 2 }), ["e/3", "e/1"]);
      assert.deepEqual((await store.queries.headers({ class: "endedWell", limit: 10 })).items, [ended]);
    },
  },
  {
    role,
    name: "a header of a fenced commit is not seen",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ headers: [header("e/1")] });
      const batch = owner.batch({ headers: [header("e/1", { class: "endedWell" }), header("e/2")] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual((await store.queries.headers({ limit: 10 })).items, [header("e/1")]);
    },
  },
];

const deadLetterCases: readonly Case[] = [
  {
    role,
    name: "dead letters are as they were committed, newest first",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const poison = { ...deadLetter("b", 10_000), class: "poison", entity: "e/x", queue: "q" } as const;
      await owner.commit({ deadLetters: [deadLetter("a", 900), poison, deadLetter("c", 2000)] });
      const { items, cursor } = await store.queries.deadLetters({ limit: 10 });
      assert.deepEqual(items, [poison, deadLetter("c", 2000), deadLetter("a", 900)]);
      assert.equal(cursor, null);
    },
  },
  {
    role,
    name: "dead letters page by page are all of them once, at equal times too",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const letters = Array.from({ length: 11 }, (_, i) => deadLetter(`l${i}`, 100 + (i % 3)));
      await owner.commit({ deadLetters: letters });
      const all = await collect((cursor) => store.queries.deadLetters(behind({ limit: 2 }, cursor)));
      assert.deepEqual(all.map(({ id }) => id).sort(), letters.map(({ id }) => id).sort());
      const first = await store.queries.deadLetters({ limit: 2 });
      assert.equal(first.items.length, 2);
    },
  },
  {
    role,
    name: "dead letters can be asked for by queue, class and entity, each and all, page by page",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const parts = [
        { queue: "q", class: "poison", entity: "e/1" },
        { queue: "q", class: "exhausted", entity: "e/1" },
        { queue: "qq", class: "poison", entity: "e/2" },
        { queue: "q", class: "poison", entity: "e/2" },
      ] as const;
      await owner.commit({ deadLetters: parts.map((part, i) => ({ ...deadLetter(`l${i}`, i), ...part })) });
      assert.deepEqual(await letters(store, { queue: "q", limit: 1 }), ["l3", "l1", "l0"]);
      assert.deepEqual(await letters(store, { class: "poison", limit: 2 }), ["l3", "l2", "l0"]);
      assert.deepEqual(await letters(store, { entity: "e/1", limit: 1 }), ["l1", "l0"]);
      assert.deepEqual(await letters(store, { queue: "q", class: "poison", entity: "e/1", limit: 10 }), ["l0"]);
      assert.deepEqual(await letters(store, { entity: "e/none", limit: 10 }), []);
    },
  },
  {
    role,
    name: "a dead letter is found by its id, as it is now",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1), deadLetter("b", 2), deadLetter("c", 3)] });
      await owner.commit({ deadLetters: [deadLetter("a", 5, '"again"')], discard: ["c"] });
      assert.deepEqual(await store.queries.deadLetter("a"), deadLetter("a", 5, '"again"'));
      assert.deepEqual(await store.queries.deadLetter("b"), deadLetter("b", 2));
      assert.equal(await store.queries.deadLetter("c"), null);
      assert.equal(await store.queries.deadLetter("none"), null);
    },
  },
  {
    role,
    name: "a dead letter written again takes the place of the one before",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1), deadLetter("b", 2)] });
      await owner.commit({ deadLetters: [deadLetter("a", 3, '"again"')] });
      const { items } = await store.queries.deadLetters({ limit: 10 });
      assert.deepEqual(items, [deadLetter("a", 3, '"again"'), deadLetter("b", 2)]);
      assert.equal((await store.queries.counts()).deadLetters, 2);
    },
  },
  {
    role,
    name: "a dead letter of a fenced commit is not seen",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ deadLetters: [deadLetter("a", 1)] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual((await store.queries.deadLetters({ limit: 10 })).items, []);
      assert.equal((await store.queries.counts()).deadLetters, 0);
    },
  },
  {
    role,
    name: "a commit removes the dead letters it discards and no others, and an unknown one is nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1), deadLetter("b", 2), deadLetter("c", 3)] });
      await owner.commit({ discard: ["b", "none", "a"] });
      assert.deepEqual((await store.queries.deadLetters({ limit: 10 })).items, [deadLetter("c", 3)]);
      assert.equal((await store.queries.counts()).deadLetters, 1);
    },
  },
  {
    role,
    name: "a dead letter that one batch both discards and writes is there, as it was written",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1), deadLetter("b", 1)] });
      await owner.commit({
        discard: ["a", "b", "new"],
        deadLetters: [deadLetter("a", 5, '"written"'), deadLetter("new", 2)],
      });
      const { items } = await store.queries.deadLetters({ limit: 10 });
      assert.deepEqual(items, [deadLetter("a", 5, '"written"'), deadLetter("new", 2)]);
    },
  },
  {
    role,
    name: "a discarded dead letter may be written again",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1), deadLetter("b", 2)] });
      await owner.commit({ discard: ["a"] });
      await owner.commit({ deadLetters: [deadLetter("a", 1)] });
      const { items } = await store.queries.deadLetters({ limit: 10 });
      assert.deepEqual(items, [deadLetter("b", 2), deadLetter("a", 1)]);
    },
  },
  {
    role,
    name: "a fenced commit discards nothing",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ deadLetters: [deadLetter("a", 1)] });
      const batch = owner.batch({ discard: ["a"] });
      assert.equal((await owner.send({ ...batch, fence: { ...batch.fence, nonce: "another" } })).kind, "fenced");
      assert.deepEqual((await store.queries.deadLetters({ limit: 10 })).items, [deadLetter("a", 1)]);
    },
  },
];

const countCases: readonly Case[] = [
  {
    role,
    name: "an empty store counts nothing",
    run: async ({ store }) => {
      const { inbox, queued, leased, deadLetters } = await store.queries.counts();
      assert.deepEqual([inbox, leased, deadLetters], [0, 0, 0]);
      assert.deepEqual(
        Object.values(queued).filter((count) => count > 0),
        [],
      );
    },
  },
  {
    role,
    name: "counts say how many messages, queued and leased tasks and dead letters there are",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await appendTexts(store, ['"a"', '"b"']);
      await owner.commit({
        tasks: [task("a"), task("b"), task("c", { queue: "other" }), task("d", { queue: "other" })],
        mail: [message('"mail"')],
        deadLetters: [deadLetter("a", 1)],
      });
      await lease(store, { max: 1 });
      const { inbox, queued, leased, deadLetters } = await store.queries.counts();
      assert.deepEqual([inbox, queued["queue"], queued["other"], leased, deadLetters], [3, 1, 2, 1, 1]);
    },
  },
  {
    role,
    name: "counts say of each queue what workers have of it, and since when the oldest task waits",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("a"), task("b"), task("c", { queue: "other" })] });
      await advance(SHORT_MS);
      await owner.commit({ tasks: [task("d", { priority: 5 })] });
      const before = await store.queries.counts();
      if (before.leasedOf === undefined || before.oldestAtMs === undefined) return;
      const ageMs = ({ storeTimeMs, oldestAtMs }: Counts, queue: string): number => storeTimeMs - oldestAtMs![queue]!;
      assert.ok(ageMs(before, "queue") >= SHORT_MS - 50, "what is urgent and new does not hide what is old");
      await lease(store, { max: 1 });
      await lease(store, { max: 1, queues: ["other"] });
      await lease(store, { max: 1 });
      const after = await store.queries.counts();
      assert.deepEqual([after.leasedOf!["queue"], after.leasedOf!["other"]], [2, 1]);
      assert.equal(after.oldestAtMs!["other"], undefined);
      assert.ok(ageMs(after, "queue") >= SHORT_MS - 50, "one of the first is still there");
    },
  },
  {
    role,
    name: "counts show the store's time, the same clock that renew shows",
    run: async ({ store, advance }) => {
      const { storeTimeMs } = await store.partitions.renew([], SHORT_MS);
      await advance(SHORT_MS);
      const passedMs = (await store.queries.counts()).storeTimeMs - storeTimeMs;
      assert.ok(passedMs >= SHORT_MS - 50 && passedMs < SHORT_MS + 5000, `${passedMs} ms have passed`);
    },
  },
];

export const queryCases: readonly Case[] = [...headerCases, ...deadLetterCases, ...countCases];
