import type { Published } from "../../../src/store/contract.ts";
import type { Mutant } from "./mutant.ts";
import { byOffset, onQueries, onRecords } from "./record-mutants.ts";

const newestOf = (versions: readonly Published[]): Published | null => versions[0] ?? null;

const numberMutants: readonly Mutant[] = [
  onRecords("a version is not found by its hash", (records) => ({
    published: async (name, version) => (typeof version === "string" ? null : records.published(name, version)),
  })),
  onRecords("a hash of digits is taken for a number", (records) => ({
    published: (name, version) =>
      records.published(name, typeof version === "string" && /^\d+$/.test(version) ? Number(version) : version),
  })),
  onRecords("an unknown version is the newest", (records) => ({
    published: async (name, version) => (await records.published(name, version)) ?? records.published(name),
  })),
  onRecords("the newest version is the one published last", (records) => {
    const last = new Map<string, string>();
    return {
      publish: (name, hash) => {
        last.set(name, hash);
        return records.publish(name, hash);
      },
      published: (name, version) => records.published(name, version ?? last.get(name)),
    };
  }),
  onRecords("the newest version is found by its digits", (records) => ({
    published: async (name, version) => {
      const versions = await records.versions(name);
      const byDigits = versions.toSorted((a, b) => (String(a.version) < String(b.version) ? 1 : -1));
      return version === undefined ? newestOf(byDigits) : records.published(name, version);
    },
  })),
  onRecords("versions come oldest first", (records) => ({
    versions: async (name) => (await records.versions(name)).toReversed(),
  })),
  onRecords("versions come in order of their hashes", (records) => ({
    versions: async (name) => (await records.versions(name)).toSorted((a, b) => (a.hash < b.hash ? -1 : 1)),
  })),
  onRecords("versions have no limit", (_, store) => ({
    versions: async (name) =>
      [...(store.data.published.get(name) ?? [])]
        .filter(([hash]) => store.data.unpublished.get(name)?.has(hash) !== true)
        .map(([hash, version]) => ({ version, hash }))
        .toReversed(),
  })),
  onRecords("the oldest 1,000 versions are listed", (records, store) => ({
    versions: async (name) => {
      const versions = await records.versions(name);
      const all = [...(store.data.published.get(name) ?? [])].map(([hash, version]) => ({ version, hash }));
      return versions.length < 1000 ? versions : all.slice(0, 1000).toReversed();
    },
  })),
];

const unpublishMutants: readonly Mutant[] = [
  onRecords("unpublish does nothing", () => ({ unpublish: async () => {} })),
  onRecords("unpublish takes the newest version only", (records, store) => ({
    unpublish: async (name) => {
      const newest = await records.published(name);
      if (newest !== null) store.data.unpublished.set(name, new Set([newest.hash]));
    },
  })),
  onRecords("unpublish takes all names that begin so", (records, store) => ({
    unpublish: async (name) => {
      for (const one of store.data.published.keys()) if (one.startsWith(name)) await records.unpublish(one);
    },
  })),
  onRecords("unpublish forgets the numbers", (_, store) => ({
    unpublish: async (name) => {
      store.data.published.delete(name);
    },
  })),
  onRecords("unpublish removes the definitions", (records, store) => ({
    unpublish: async (name) => {
      for (const { hash } of await records.versions(name)) store.data.records.get("definition")?.delete(hash);
      await records.unpublish(name);
    },
  })),
  onRecords("unpublishing an unknown name fails", (records) => ({
    unpublish: async (name) => {
      if ((await records.published(name)) === null) throw new Error("there is no such name");
      await records.unpublish(name);
    },
  })),
  onRecords("publishing again brings back all versions", (records, store) => ({
    publish: async (name, hash) => {
      store.data.unpublished.delete(name);
      return records.publish(name, hash);
    },
  })),
  onRecords("what was unpublished stays so", (records, store) => ({
    publish: async (name, hash) => {
      const gone = store.data.unpublished.get(name)?.has(hash) === true;
      const version = await records.publish(name, hash);
      if (gone) store.data.unpublished.get(name)?.add(hash);
      return version;
    },
  })),
  onRecords("a restart forgets what was unpublished", (_, store) => {
    store.data.unpublished.clear();
    return {};
  }),
];

const workflowMutants: readonly Mutant[] = [
  onQueries("workflows come in order of UTF-16", (queries) => ({
    workflows: async (query) => {
      const all = (await queries.workflows({ limit: 10_000 })).items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      return byOffset(all, query.cursor, query.limit);
    },
  })),
  onQueries("workflows are paged by their number", (queries) => ({
    workflows: async ({ cursor, limit }) => byOffset((await queries.workflows({ limit: 10_000 })).items, cursor, limit),
  })),
  onQueries("workflows have no limit", (queries) => ({
    workflows: (query) => queries.workflows({ ...query, limit: 10_000 }),
  })),
  onQueries("workflows are listed with their first version", (queries, store) => ({
    workflows: async (query) => {
      const page = await queries.workflows(query);
      const items = await Promise.all(
        page.items.map(async ({ name }) => ({ name, ...(await store.records.versions(name)).at(-1)! })),
      );
      return { ...page, items };
    },
  })),
  onQueries("workflows are listed once for each version", (queries, store) => ({
    workflows: async (query) => {
      const page = await queries.workflows(query);
      const items = await Promise.all(
        page.items.map(async ({ name }) => (await store.records.versions(name)).map((one) => ({ name, ...one }))),
      );
      return { ...page, items: items.flat() };
    },
  })),
];

export const publishMutants: readonly Mutant[] = [...numberMutants, ...unpublishMutants, ...workflowMutants];
