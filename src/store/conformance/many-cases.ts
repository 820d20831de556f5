import assert from "node:assert/strict";
import type { Store } from "../contract.ts";
import { type Case, LONG_MS, PAST_SHORT_MS, severalPartitions, SHORT_MS } from "./harness.ts";
import { acquire } from "./owner.ts";
import {
  appendTexts,
  ENTITY,
  inboxBodies,
  inboxTexts,
  lease,
  leaseTokens,
  OTHER,
  read,
  settlement,
  task,
} from "./things.ts";

const role = "tasks";

/** As many as a driver may keep together: what it does with one of them must not be done to the others. */
const MANY = 40;
const tokens = Array.from({ length: MANY }, (_, i) => `t${String(i).padStart(2, "0")}`);
const many = tokens.map((token, i) => task(token, { entity: i % 2 === 0 ? ENTITY : OTHER }));
const text = (token: string): string => `"done ${token}"`;

export const manyCases: readonly Case[] = [
  {
    role,
    name: "of many tasks of one commit each is leased once, as it was committed, and counted",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      assert.equal((await store.queries.counts()).queued["queue"], MANY);
      const leased = await lease(store);
      assert.equal((await store.queries.counts()).leased, MANY);
      const given = leased.map(({ token, entity, partition, queue, priority, text }) => {
        return { token, entity, partition, queue, priority, text };
      });
      assert.deepEqual(given, many);
      assert.equal(new Set(leased.map(({ ref }) => ref)).size, MANY);
      assert.deepEqual(await leaseTokens(store), []);
    },
  },
  {
    role,
    name: "many tasks of one commit go to whoever has room for a few",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const leased: string[] = [];
      for (const max of [1, 3, 7, 2, 1]) {
        const some = await leaseTokens(store, { max });
        assert.equal(some.length, max);
        leased.push(...some);
      }
      while (leased.length < MANY) {
        const some = await leaseTokens(store, { max: 30 });
        assert.ok(some.length > 0 && some.length <= 30);
        leased.push(...some);
      }
      assert.deepEqual(leased, tokens);
    },
  },
  {
    role,
    name: "those of higher priority come before many that are older",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [task("before"), ...many, task("behind")] });
      await owner.commit({ tasks: tokens.map((token) => task(`high ${token}`, { priority: 5 })) });
      await owner.commit({ tasks: [task("last")] });
      const leased = await leaseTokens(store, { max: 1_000 });
      assert.deepEqual(leased, [...tokens.map((token) => `high ${token}`), "before", ...tokens, "behind", "last"]);
    },
  },
  {
    role,
    name: "a lease passes over nothing that comes before",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: [...many, ...tokens.map((token) => task(`more ${token}`))] });
      await lease(store);
      const [one, two] = ["one", "two"].map((name) => tokens.slice(0, 4).map((token) => `${name} ${token}`));
      await owner.commit({ tasks: one!.map((token) => task(token)) });
      await owner.commit({ tasks: [...two!.map((token) => task(token)), task("low", { priority: -5 })] });
      const inLine = [...one!, ...two!, "low"];
      const leased = await leaseTokens(store, { max: 10 });
      assert.deepEqual(leased, inLine.slice(0, leased.length));
      assert.ok(leased.length >= 4);
    },
  },
  {
    role,
    name: "many results at once are settled, and read in the order in which they were given",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const done = (await lease(store)).map((one) => settlement(one, "completed", text(one.token)));
      const outcomes = await store.tasks.settle(done);
      assert.deepEqual(
        outcomes,
        done.map(() => "settled"),
      );
      assert.equal((await store.queries.counts()).leased, 0);
      assert.equal((await store.queries.counts()).inbox, MANY);
      const { messages, position } = await read(store);
      assert.deepEqual(messages, tokens.map(text));
      await owner.commit({ consumed: position });
      assert.deepEqual(await inboxTexts(store), []);
      assert.equal((await store.queries.counts()).inbox, 0);
      assert.deepEqual(
        await store.tasks.settle(done),
        done.map(() => "posted"),
      );
    },
  },
  {
    role,
    name: "many failures at once are posted once, also if they come again",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const failed = (await lease(store)).map((one) => settlement(one, "failed", text(one.token)));
      assert.deepEqual(
        new Set(await store.tasks.settle([...failed, ...failed.slice(3).map((one) => ({ ...one }))])),
        new Set(["settled", "stale"]),
      );
      assert.deepEqual(
        await store.tasks.settle(failed),
        failed.map(() => "stale"),
      );
      assert.deepEqual([...(await inboxTexts(store))].sort(), tokens.map(text));
    },
  },
  {
    role,
    name: "of many tasks some are settled and the others stay with their worker",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const leased = await lease(store);
      const [early, late] = [leased.filter((_, i) => i % 3 === 0), leased.filter((_, i) => i % 3 !== 0)];
      await store.tasks.settle(early.map((one) => settlement(one, "completed", text(one.token))));
      assert.equal((await store.queries.counts()).leased, late.length);
      const beats = leased.map(({ ref, token }) => ({ ref, token }));
      const { lost, cancelled } = await store.tasks.heartbeat(beats, LONG_MS);
      assert.deepEqual([[...lost].sort(), cancelled], [early.map(({ token }) => token), []]);
      const outcomes = await store.tasks.settle(late.map((one) => settlement(one, "failed", text(one.token))));
      assert.deepEqual(
        outcomes,
        late.map(() => "settled"),
      );
      assert.equal((await store.queries.counts()).leased, 0);
      assert.deepEqual([...(await inboxTexts(store))].sort(), tokens.map(text));
    },
  },
  {
    role,
    name: "a heartbeat of one of many keeps that one, and the others lapse",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const leased = await lease(store, { leaseMs: SHORT_MS });
      const kept = leased[17]!;
      await store.tasks.heartbeat([{ ref: kept.ref, token: kept.token }], LONG_MS);
      await advance(PAST_SHORT_MS);
      assert.equal(await lapseAll(store), MANY - 1);
      const lost = (await inboxBodies(store)) as readonly { readonly token: string }[];
      assert.deepEqual(
        lost.map(({ token }) => token).sort(),
        tokens.filter((token) => token !== kept.token),
      );
      assert.deepEqual(await store.tasks.settle([settlement(kept, "failed")]), ["settled"]);
    },
  },
  {
    role,
    name: "many leases that run out lapse, each of them once",
    run: async ({ store, advance }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const leased = await lease(store, { leaseMs: SHORT_MS });
      await advance(PAST_SHORT_MS);
      assert.equal(await lapseAll(store), MANY);
      const messages = (await inboxTexts(store)).map(
        (one) => JSON.parse(one) as { to: string; body: { token: string } },
      );
      const told = messages.map(({ to, body }) => `${body.token} of ${to}`).sort();
      assert.deepEqual(
        told,
        many.map(({ token, entity }) => `${token} of ${entity}`),
      );
      const late = await store.tasks.settle(leased.map((one) => settlement(one, "failed")));
      assert.deepEqual(new Set(late), new Set(["stale"]));
    },
  },
  {
    role,
    name: "of many tasks those are withdrawn that were revoked, whether they are queued or leased",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const [first, second] = ["first", "second"].map((queue) => tokens.map((token) => `${queue} ${token}`));
      await owner.commit({ tasks: first!.map((token) => task(token, { queue: "first" })) });
      await owner.commit({ tasks: second!.map((token) => task(token, { queue: "second" })) });
      const leased = await lease(store, { queues: ["first"] });
      const gone = [first![0]!, first![21]!, second![0]!, second![39]!];
      await owner.commit({ revoke: gone });
      const left = second!.filter((token) => !gone.includes(token));
      assert.equal((await store.queries.counts()).queued["second"], left.length);
      assert.deepEqual(await leaseTokens(store, { queues: ["second"] }), left);
      const beats = leased.map(({ ref, token }) => ({ ref, token }));
      const { lost, cancelled } = await store.tasks.heartbeat(beats, LONG_MS);
      assert.deepEqual([lost, [...cancelled].sort()], [[], gone.slice(0, 2)]);
    },
  },
  {
    role,
    name: "many tasks that are committed with some of them revoked are leased without those",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many, revoke: ["t03", "t30"] });
      assert.deepEqual(
        await leaseTokens(store),
        tokens.filter((token) => token !== "t03" && token !== "t30"),
      );
    },
  },
  {
    role,
    name: "a batch that comes again has sent out its many tasks once",
    run: async ({ store }) => {
      const owner = await acquire(store);
      const batch = owner.batch({ tasks: many });
      assert.deepEqual(await owner.send(batch), { kind: "committed" });
      assert.deepEqual(await owner.send(batch), { kind: "alreadyApplied" });
      assert.deepEqual(await leaseTokens(store, { max: 1_000 }), tokens);
    },
  },
  {
    role: "inbox",
    name: "many results are read one by one where no more is asked for, and nothing of them is lost or read twice",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const done = (await lease(store)).map((one) => settlement(one, "completed", text(one.token)));
      await store.tasks.settle(done);
      await appendTexts(store, ['"behind"']);
      const seen: string[] = [];
      for (const limit of [1, 1, 3, 1, 100, 2, 100, 100, 100]) {
        const { messages, position } = await read(store, { limit });
        assert.ok(messages.length <= limit);
        const rest = [...tokens.map(text), '"behind"'].slice(seen.length + messages.length);
        assert.deepEqual((await read(store, { after: position })).messages, rest);
        seen.push(...messages);
        await owner.commit({ consumed: position });
      }
      assert.deepEqual(seen, [...tokens.map(text), '"behind"']);
      assert.deepEqual(await inboxTexts(store), []);
    },
  },
  {
    role: "inbox",
    name: "who may read no more characters is given many results in parts, and is told that there are more",
    run: async ({ store }) => {
      const owner = await acquire(store);
      await owner.commit({ tasks: many });
      const done = (await lease(store)).map((one) => settlement(one, "completed", text(one.token)));
      await store.tasks.settle(done);
      const maxChars = text(tokens[0]!).length * 3;
      const seen: string[] = [];
      while (seen.length < MANY) {
        const { messages, position } = await read(store, { maxChars });
        assert.ok(messages.length > 0 && messages.length <= 3);
        seen.push(...messages);
        await owner.commit({ consumed: position });
      }
      assert.deepEqual(seen, tokens.map(text));
    },
  },
  {
    role,
    name: "many tasks of several partitions are settled by one call, each in its own inbox",
    requires: severalPartitions,
    run: async ({ store }) => {
      const owners = [await acquire(store, 0), await acquire(store, 1)];
      for (const [partition, owner] of owners.entries()) {
        await owner.commit({ tasks: tokens.map((token) => task(`${partition} ${token}`, { partition })) });
      }
      const leased = await lease(store, { max: 1_000 });
      const outcomes = await store.tasks.settle(leased.map((one) => settlement(one, "completed", text(one.token))));
      assert.deepEqual(new Set(outcomes), new Set(["settled"]));
      for (const partition of [0, 1]) {
        assert.deepEqual(
          await inboxTexts(store, partition),
          tokens.map((token) => text(`${partition} ${token}`)),
        );
      }
    },
  },
];

/** What lapsed in all. A driver may take some at a time, but one that never ends must not take the suite with it. */
async function lapseAll(store: Store): Promise<number> {
  let all = 0;
  for (let round = 0; round <= MANY; round++) {
    const lapsed = await store.tasks.lapse(1_000);
    if (lapsed === 0) return all;
    all += lapsed;
  }
  return assert.fail("the lapses do not end");
}
