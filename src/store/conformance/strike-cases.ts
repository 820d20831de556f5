import assert from "node:assert/strict";
import { type Case, type Harness, LONG_MS, PAST_SHORT_MS, SHORT_MS } from "./harness.ts";
import { acquire, type Owner, reacquire } from "./owner.ts";

const role = "partitions";

/** Acquires, does something, and vanishes: the lease runs out. */
async function vanish({ store, advance }: Harness, before?: (owner: Owner) => Promise<unknown>): Promise<Owner> {
  const owner = await acquire(store, 0, SHORT_MS);
  await before?.(owner);
  await advance(PAST_SHORT_MS);
  return owner;
}

async function assertNext({ store }: Harness, strikes: number, suspect: string | null): Promise<void> {
  const { tenure } = await acquire(store);
  assert.deepEqual([tenure.strikes, tenure.suspect], [strikes, suspect]);
}

export const strikeCases: readonly Case[] = [
  {
    role,
    name: "every owner in a row that vanishes without a commit is a strike",
    run: async (harness) => {
      const seen: number[] = [];
      for (let i = 0; i < 3; i++) seen.push((await vanish(harness)).tenure.strikes);
      assert.deepEqual(seen, [0, 1, 2]);
      await assertNext(harness, 3, null);
    },
  },
  {
    role,
    name: "an owner that vanishes after a commit is no strike",
    run: async (harness) => {
      await vanish(harness, (owner) => owner.commit());
      await assertNext(harness, 0, null);
    },
  },
  {
    role,
    name: "a commit clears the strikes before it",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness);
      await vanish(harness, (owner) => owner.commit());
      const { tenure } = await vanish(harness);
      assert.equal(tenure.strikes, 0);
      await assertNext(harness, 1, null);
    },
  },
  {
    role,
    name: "an owner that releases without a commit is no strike",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await harness.store.partitions.release(owner.fence);
      await assertNext(harness, 0, null);
    },
  },
  {
    role,
    name: "a release ends the row: no strikes, no suspect",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness, (owner) => owner.commit({ suspect: "m" }));
      const owner = await acquire(harness.store);
      assert.deepEqual([owner.tenure.strikes, owner.tenure.suspect], [2, "m"]);
      await harness.store.partitions.release(owner.fence);
      await assertNext(harness, 0, null);
    },
  },
  {
    role,
    name: "renewing is no commit: who only renewed is a strike",
    run: async (harness) => {
      await vanish(harness, ({ fence }) => harness.store.partitions.renew([fence], SHORT_MS));
      await assertNext(harness, 1, null);
    },
  },
  {
    role,
    name: "a commit with a suspect keeps the strikes, counts as none, and shows the suspect to the next owner",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness, (owner) => owner.commit({ suspect: "m" }));
      await assertNext(harness, 2, "m");
    },
  },
  {
    role,
    name: "a later suspect replaces an earlier one",
    run: async (harness) => {
      await vanish(harness, async (owner) => {
        await owner.commit({ suspect: "m" });
        await owner.commit({ suspect: "n" });
      });
      await assertNext(harness, 1, "n");
    },
  },
  {
    role,
    name: "a commit without a suspect clears strikes and suspect",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness, async (owner) => {
        await owner.commit({ suspect: "m" });
        await owner.commit();
      });
      await assertNext(harness, 0, null);
    },
  },
  {
    role,
    name: "a suspect after a plain commit counts again from one",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness, async (owner) => {
        await owner.commit();
        await owner.commit({ suspect: "m" });
      });
      await assertNext(harness, 1, "m");
    },
  },
  {
    role,
    name: "the suspect stays while owners vanish without touching anything",
    run: async (harness) => {
      await vanish(harness, (owner) => owner.commit({ suspect: "m" }));
      await vanish(harness);
      await assertNext(harness, 2, "m");
    },
  },
  {
    role,
    name: "reacquire is no strike and keeps what there was",
    run: async (harness) => {
      await vanish(harness);
      await vanish(harness, (owner) => owner.commit({ suspect: "m" }));
      const owner = await acquire(harness.store);
      const { tenure } = await reacquire(harness.store, owner);
      assert.deepEqual([tenure.strikes, tenure.suspect], [2, "m"]);
    },
  },
  {
    role,
    name: "a reacquired tenure that vanishes without a commit of its own is one strike",
    run: async (harness) => {
      const owner = await acquire(harness.store);
      await owner.commit();
      await reacquire(harness.store, owner, SHORT_MS);
      await harness.advance(PAST_SHORT_MS);
      await assertNext(harness, 1, null);
    },
  },
  {
    role,
    name: "a fenced commit neither clears strikes nor sets or clears a suspect",
    run: async (harness) => {
      await vanish(harness, (owner) => owner.commit({ suspect: "m" }));
      await vanish(harness, async (owner) => {
        const batch = owner.batch();
        const wrong = { ...batch.fence, seq: batch.fence.seq + 1 };
        assert.equal((await owner.send({ ...batch, fence: wrong })).kind, "fenced");
        assert.equal((await owner.send({ ...batch, fence: wrong, suspect: "n" })).kind, "fenced");
      });
      await assertNext(harness, 2, "m");
    },
  },
  {
    role,
    name: "being refused a partition that is held is no strike",
    run: async (harness) => {
      const owner = await acquire(harness.store, 0, LONG_MS);
      await harness.store.partitions.acquire(0, "second", LONG_MS);
      await harness.store.partitions.release(owner.fence);
      await vanish(harness);
      await assertNext(harness, 1, null);
    },
  },
];
