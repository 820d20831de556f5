import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { Journal, Listed, Listing } from "../../../src/store/contract.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch } from "./mutant.ts";
import { byOffset, onQueries } from "./record-mutants.ts";

const onListings = (name: string, change: (listings: readonly Listing[], store: MemoryStore) => readonly Listing[]) =>
  onBatch(name, (batch, store) => ({ ...batch, listings: change(batch.listings ?? [], store) }));

const isOn = (store: MemoryStore, { list, id }: Listing): boolean => store.data.lists.get(list)?.byId.has(id) === true;

const allOf = (store: MemoryStore, list: string): readonly Listed[] => {
  const ids = store.data.lists.get(list)?.places.flat() ?? [];
  return ids.toReversed().map(({ key }) => store.data.lists.get(list)!.byId.get(key)!);
};

export const listingMutants: readonly Mutant[] = [
  onListings("nothing is put on a list", () => []),
  onListings("what is on a list stays as it was", (listings, store) =>
    listings.filter((one) => one.text === null || !isOn(store, one)),
  ),
  onListings("a listing written again keeps its time", (listings, store) =>
    listings.map((one) => {
      const known = store.data.lists.get(one.list)?.byId.get(one.id);
      return { ...one, atMs: known?.atMs ?? one.atMs };
    }),
  ),
  onListings("a listing written again keeps its entity", (listings, store) =>
    listings.map((one) => {
      const known = store.data.lists.get(one.list)?.byId.get(one.id);
      return { ...one, entity: known?.entity ?? one.entity };
    }),
  ),
  onListings("nothing is taken off a list", (listings) => listings.filter(({ text }) => text !== null)),
  onListings("what is taken off a list has to have its time", (listings, store) =>
    listings.filter(({ list, id, atMs, text }) => {
      const known = store.data.lists.get(list)?.byId.get(id);
      return text !== null || known?.atMs === atMs;
    }),
  ),
  onListings("one taken off takes its list with it", (listings, store) => {
    const gone = new Set(listings.filter(({ text }) => text === null).map(({ list }) => list));
    const more = [...gone].flatMap((list) => allOf(store, list).map((one) => ({ ...one, text: null })));
    return [...more, ...listings];
  }),
  onBatch("a commit that takes off what is not there fails", (batch, store) => {
    const fails = (batch.listings ?? []).some((one) => one.text === null && !isOn(store, one));
    if (fails) throw new Error("it is not on the list");
    return batch;
  }),
  onListings("a batch first puts on and then takes off", (listings) =>
    listings.toSorted((a, b) => Number(a.text === null) - Number(b.text === null)),
  ),
  onListings("a batch first takes off and then puts on", (listings) =>
    listings.toSorted((a, b) => Number(b.text === null) - Number(a.text === null)),
  ),
  onListings("of one id in a batch the first counts", (listings) => {
    const first = new Map<string, Listing>();
    for (const one of listings) {
      const key = `${one.list} ${one.id}`;
      if (!first.has(key)) first.set(key, one);
    }
    return [...first.values()];
  }),
  mutant("what was taken off a list once stays off", (store) => {
    const taken = new Set<string>();
    const keyOf = ({ list, id }: Listing): string => `${list} ${id}`;
    const bend = (listings: readonly Listing[]): readonly Listing[] => {
      for (const one of listings) if (one.text === null) taken.add(keyOf(one));
      return listings.filter((one) => one.text === null || !taken.has(keyOf(one)));
    };
    return {
      journal: bent<Journal>(store.journal, {
        commit: (batches) =>
          store.journal.commit(batches.map((batch) => ({ ...batch, listings: bend(batch.listings ?? []) }))),
      }),
    };
  }),
  onListings("lists are one list", (listings) => listings.map((one) => ({ ...one, list: "reviews" }))),
  onListings("every listing is of the first entity", (listings) =>
    listings.map((one) => ({ ...one, entity: listings[0]!.entity })),
  ),
  onBatch("a purge takes its entity off no list", (batch, store) => {
    for (const entity of batch.purge) store.data.listedOf.delete(entity);
    return batch;
  }),
  afterBatch("a purge takes its entity off its lists before it puts it on", (batch, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const one of batch.listings ?? []) {
      if (one.text === null || !batch.purge.includes(one.entity)) continue;
      const list = store.data.lists.get(one.list);
      list?.byId.set(one.id, { ...one, text: one.text });
      list?.places.push([{ atMs: one.atMs, key: one.id }]);
    }
  }),
  onBatch("a purge empties the lists its entity is on", (batch, store) => {
    const lists = batch.purge.flatMap((entity) => [...(store.data.listedOf.get(entity) ?? [])].map(({ list }) => list));
    const off = lists.flatMap((list) => allOf(store, list).map((one) => ({ ...one, text: null })));
    return { ...batch, listings: [...(batch.listings ?? []), ...off] };
  }),
  onBatch("a purge takes its entity off its first list only", (batch, store) => {
    for (const entity of batch.purge) {
      for (const one of [...(store.data.listedOf.get(entity) ?? [])].slice(1)) {
        store.data.listedOf.get(entity)?.delete(one);
      }
    }
    return batch;
  }),
  onBatch("partitions have lists of their own", (batch) => ({
    ...batch,
    listings: batch.fence.partition === 0 ? (batch.listings ?? []) : [],
  })),
  afterBatch("a fenced commit lists all the same", (batch, outcome, store) => {
    if (outcome.kind !== "fenced") return;
    for (const { list, id, text } of batch.listings ?? []) {
      if (text === null) store.data.lists.get(list)?.byId.delete(id);
    }
  }),
  onQueries("lists come oldest first", (_, store) => ({
    listing: async ({ list, cursor, limit }) => byOffset(allOf(store, list).toReversed(), cursor, limit),
  })),
  onQueries("lists are paged by number", (_, store) => ({
    listing: async ({ list, cursor, limit }) => byOffset(allOf(store, list), cursor, limit),
  })),
  onQueries("lists have no limit", (queries) => ({
    listing: (query) => queries.listing({ ...query, limit: 10_000 }),
  })),
  onQueries("listings of one time are one place", (_, store) => ({
    listing: async ({ list, cursor, limit }) => {
      const rest = allOf(store, list).filter(({ atMs }) => cursor === undefined || atMs < Number(cursor));
      const items = rest.slice(0, limit);
      return { items, cursor: rest.length > items.length ? String(items.at(-1)?.atMs) : null };
    },
  })),
  onQueries("what is listed is found on any list", (queries, store) => ({
    listed: async (list, id) =>
      (await queries.listed(list, id)) ??
      [...store.data.lists.values()].map(({ byId }) => byId.get(id)).find((one) => one !== undefined) ??
      null,
  })),
  onQueries("a restart forgets the lists", (_, store) => {
    store.data.lists.clear();
    store.data.listedOf.clear();
    return {};
  }),
];
