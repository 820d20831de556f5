import assert from "node:assert/strict";
import type { Store } from "../contract.ts";
import { type Case, LONG_MS, WAIT_MS } from "./harness.ts";
import { acquire, type Owner } from "./owner.ts";
import { ENTITY, leaseRequest, message, readRequest, record } from "./things.ts";

const role = "store";

/** Every call of every role, with something to do. */
function everyCall(
  { partitions, inbox, journal, tasks, records, queries }: Store,
  { fence, batch }: Pick<Owner, "fence" | "batch">,
): readonly (readonly [string, () => Promise<unknown>])[] {
  const blob = { scope: "s", hash: "h", text: "1" };
  const beat = { ref: "1", token: "t" };
  return [
    ["acquire", () => partitions.acquire(0, "somebody", LONG_MS)],
    ["reacquire", () => partitions.reacquire(fence, LONG_MS)],
    ["renew", () => partitions.renew([fence], LONG_MS)],
    ["release", () => partitions.release(fence)],
    ["append", () => inbox.append([message('"a"')])],
    ["read", () => inbox.read([readRequest()], WAIT_MS)],
    ["replies", () => inbox.replies("process", WAIT_MS)],
    ["commit", () => journal.commit([batch({ records: [record(ENTITY, 1)] })])],
    ["load", () => journal.load([{ partition: 0, entity: ENTITY }])],
    ["due", () => journal.due(0, 1000, 10)],
    ["watch", () => journal.watch(0, ENTITY, 0, WAIT_MS)],
    ["lease", () => tasks.lease(leaseRequest({ waitMs: WAIT_MS }))],
    ["heartbeat", () => tasks.heartbeat([beat], LONG_MS)],
    ["settle", () => tasks.settle([{ ...beat, partition: 0, outcome: "completed", text: "1" }])],
    ["lapse", () => tasks.lapse(10)],
    ["put", () => records.put([blob])],
    ["a refusable put", () => records.put([blob], { refusable: true })],
    ["get", () => records.get([blob])],
    ["publish", () => records.publish("name", "hash")],
    ["published", () => records.published("name")],
    ["versions", () => records.versions("name")],
    ["unpublish", () => records.unpublish("name")],
    ["register", () => records.register({ process: "p", role: "worker", text: "1" }, LONG_MS)],
    ["registered", () => records.registered()],
    ["headers", () => queries.headers({ limit: 1 })],
    ["header", () => queries.header(0, ENTITY)],
    ["deadLetters", () => queries.deadLetters({ limit: 1 })],
    ["deadLetter", () => queries.deadLetter("letter")],
    ["listing", () => queries.listing({ list: "list", limit: 1 })],
    ["listed", () => queries.listed("list", "id")],
    ["workflows", () => queries.workflows({ limit: 1 })],
    ["counts", () => queries.counts()],
  ];
}

export const closeCases: readonly Case[] = [
  {
    role,
    name: "close ends all waiting, and hands out nothing",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ records: [record(ENTITY, 1)] });
      const waiting = Promise.all([
        store.inbox.read([readRequest()], WAIT_MS).then((results) => results.flatMap(({ messages }) => messages)),
        store.inbox.replies("process", WAIT_MS),
        store.tasks.lease(leaseRequest({ waitMs: WAIT_MS })),
        store.journal.watch(0, ENTITY, 1, WAIT_MS),
      ]);
      // All of them have come to wait.
      await advance(200);
      const [answers] = await Promise.all([waiting, store.close()]);
      assert.deepEqual(answers, [[], [], [], 1]);
    },
  },
  {
    role,
    name: "after close every call that has something to do rejects",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const calls = everyCall(store, { fence: owner.fence, batch: (parts) => owner.batch(parts) });
      await store.close();
      for (const [name, call] of calls) {
        const outcome = await call().then(
          () => "answered",
          () => "rejected",
        );
        assert.deepEqual([name, outcome], [name, "rejected"]);
      }
    },
  },
  {
    role,
    name: "closing again does nothing",
    run: async ({ store }) => {
      await Promise.all([store.close(), store.close()]);
      await store.close();
    },
  },
];
