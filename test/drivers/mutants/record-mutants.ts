import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type { Counts, DeadLetter, Header, HeaderQuery, Page, Queries, Records } from "../../../src/store/contract.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";

export const onRecords = (name: string, changes: (records: Records, store: MemoryStore) => Partial<Records>): Mutant =>
  mutant(name, (store) => ({ records: bent<Records>(store.records, changes(store.records, store)) }));

export const onQueries = (name: string, changes: (queries: Queries, store: MemoryStore) => Partial<Queries>): Mutant =>
  mutant(name, (store) => ({ queries: bent<Queries>(store.queries, changes(store.queries, store)) }));

const onCounts = (name: string, change: (counts: Counts) => Partial<Counts>): Mutant =>
  onQueries(name, (queries) => ({
    counts: async () => {
      const counts = await queries.counts();
      return { ...counts, ...change(counts) };
    },
  }));

const recordMutants: readonly Mutant[] = [
  onRecords("putting again overwrites", (records, store) => ({
    put: (given, options) => {
      for (const { scope, hash } of given) store.data.records.get(scope)?.delete(hash);
      return records.put(given, options);
    },
  })),
  onRecords("a record is said to be there in every scope", (_, store) => ({
    has: async ({ hash }) => [...store.data.records.values()].some((texts) => texts.has(hash)),
  })),
  onRecords("putting again fails", (records, store) => ({
    put: async (given, options) => {
      if (given.some(({ scope, hash }) => store.data.records.get(scope)?.has(hash))) throw new Error("there already");
      return records.put(given, options);
    },
  })),
  onRecords("one put too many at the same moment is lost", (records) => {
    let isBusy = false;
    return {
      put: async (given, options) => {
        if (isBusy) return "stored";
        isBusy = true;
        await pause();
        const outcome = await records.put(given, options);
        isBusy = false;
        return outcome;
      },
    };
  }),
  onRecords("scopes are not told apart", (records) => ({
    put: (given, options) =>
      records.put(
        given.map((one) => ({ ...one, scope: "" })),
        options,
      ),
    get: (keys) => records.get(keys.map((one) => ({ ...one, scope: "" }))),
  })),
  onRecords("no put is ever refused", (records) => ({ put: (given) => records.put(given) })),
  onRecords("every put may be refused", (records) => ({ put: (given) => records.put(given, { refusable: true }) })),
  onRecords("a put that may be refused is refused", (records) => ({
    put: async (given, options) => (options?.refusable === true ? "refused" : records.put(given)),
  })),
  onRecords("of a put that is refused the first record is there", (records) => ({
    put: async (given, options) => {
      const outcome = await records.put(given, options);
      if (outcome === "refused") await records.put(given.slice(0, 1));
      return outcome;
    },
  })),
  onRecords("what is not there is left out", (records) => ({
    get: async (keys) => (await records.get(keys)).filter((text) => text !== null),
  })),
  onRecords("putting or getting nothing fails", (records) => ({
    get: async (keys) => {
      if (keys.length === 0) throw new Error("no keys");
      return records.get(keys);
    },
  })),
  onRecords("publish counts every call", (_, store) => ({
    publish: async (name, hash) => {
      const versions = store.data.published.get(name) ?? new Map<string, number>();
      store.data.published.set(name, versions);
      versions.delete(hash);
      versions.set(`${hash} ${versions.size}`, 0);
      return versions.size;
    },
  })),
  onRecords("publish knows the last content only", (_, store) => {
    const last = new Map<string, { hash: string; version: number }>();
    return {
      publish: async (name, hash) => {
        const known = last.get(name) ?? { hash: "", version: store.data.published.get(name)?.size ?? 0 };
        const next = known.hash === hash ? known : { hash, version: known.version + 1 };
        last.set(name, next);
        return next.version;
      },
    };
  }),
  onRecords("publish counts all names together", (records) => ({ publish: (_, hash) => records.publish("", hash) })),
  onRecords("publish looks, then writes", (_, store) => ({
    publish: async (name, hash) => {
      const versions = store.data.published.get(name) ?? new Map<string, number>();
      store.data.published.set(name, versions);
      const version = versions.get(hash) ?? versions.size + 1;
      await pause();
      versions.set(hash, version);
      return version;
    },
  })),
  onRecords("publish at the same moment leaves gaps", (_, store) => {
    const taken = new Map<string, number>();
    return {
      publish: async (name, hash) => {
        const next = Math.max(taken.get(name) ?? 0, store.data.published.get(name)?.size ?? 0) + 1;
        taken.set(name, next);
        await pause();
        const versions = store.data.published.get(name) ?? new Map<string, number>();
        store.data.published.set(name, versions);
        const version = versions.get(hash) ?? next;
        versions.set(hash, version);
        return version;
      },
    };
  }),
  onRecords("a process that registered is alive for ever", (records) => ({
    register: (registration) => records.register(registration, 1e12),
  })),
  onRecords("registering again does not make a process live longer", (records, store) => ({
    register: async (registration, ttlMs) => {
      const known = store.data.registrations.get(registration.process);
      await records.register(registration, ttlMs);
      if (known !== undefined) {
        store.data.registrations.set(registration.process, { registration, untilMs: known.untilMs });
      }
    },
  })),
  onRecords("what a process said first stays", (records, store) => ({
    register: (registration, ttlMs) =>
      records.register(store.data.registrations.get(registration.process)?.registration ?? registration, ttlMs),
  })),
  onRecords("a process is known by what it says", (records) => ({
    register: (registration, ttlMs) =>
      records.register({ ...registration, process: `${registration.process} ${registration.text}` }, ttlMs),
  })),
  onRecords("every process is a worker", (records) => ({
    register: (registration, ttlMs) => records.register({ ...registration, role: "worker" }, ttlMs),
  })),
];

const without = (query: HeaderQuery, key: "class" | "workflow" | "sinceMs"): HeaderQuery => {
  const rest = { ...query };
  delete rest[key];
  return rest;
};

export const byOffset = <Item>(items: readonly Item[], cursor: string | undefined, limit: number): Page<Item> => {
  const start = Number(cursor ?? 0);
  const end = start + limit;
  return { items: items.slice(start, end), cursor: end < items.length ? String(end) : null };
};

const allHeaders = async (queries: Queries): Promise<readonly Header[]> =>
  (await queries.headers({ limit: 10_000 })).items;

const allLetters = async (queries: Queries): Promise<readonly DeadLetter[]> =>
  (await queries.deadLetters({ limit: 10_000 })).items;

const queryMutants: readonly Mutant[] = [
  onQueries("headers come oldest first", (queries) => ({
    headers: async (query) => {
      const all = (await queries.headers({ ...query, limit: 10_000 })).items.toReversed();
      return byOffset(all, query.cursor, query.limit);
    },
  })),
  onQueries("headers come in order of their digits", (queries) => ({
    headers: async (query) => {
      const page = await queries.headers(query);
      const items = [...page.items].sort((a, b) => (String(a.createdAtMs) < String(b.createdAtMs) ? 1 : -1));
      return { ...page, items };
    },
  })),
  onQueries("headers are paged by their number", (queries) => ({
    headers: async (query) => byOffset(await allHeaders(queries), query.cursor, query.limit),
  })),
  onQueries("headers of one time are one place", (queries) => ({
    headers: async ({ cursor, ...query }) => {
      const all = (await queries.headers({ ...query, limit: 10_000 })).items;
      const rest = all.filter(({ createdAtMs }) => cursor === undefined || createdAtMs < Number(cursor));
      const items = rest.slice(0, query.limit);
      return { items, cursor: rest.length > items.length ? String(items.at(-1)?.createdAtMs) : null };
    },
  })),
  onQueries("headers have no limit", (queries) => ({
    headers: (query) => queries.headers({ ...query, limit: 10_000 }),
  })),
  onQueries("the last page has a cursor", (queries) => ({
    headers: async (query) => {
      const page = await queries.headers(query);
      return { ...page, cursor: page.cursor ?? (page.items.length > 0 ? `0/` : null) };
    },
  })),
  onQueries("headers are asked for by the time after which they were created", (queries) => ({
    headers: ({ sinceMs, ...query }) =>
      queries.headers(sinceMs === undefined ? query : { ...query, sinceMs: sinceMs + 1 }),
  })),
  onQueries("headers know no time since when", (queries) => ({
    headers: (query) => queries.headers(without(query, "sinceMs")),
  })),
  onQueries("the header of another entity is found", (queries) => ({
    header: async (_, entity) =>
      (await allHeaders(queries)).find((header) => header.entity.startsWith(entity.slice(0, 2))) ?? null,
  })),
  onQueries("a header is found as it was at first", (queries) => {
    const known = new Map<string, Header>();
    return {
      header: async (partition, entity) => {
        const found = await queries.header(partition, entity);
        if (found !== null && !known.has(entity)) known.set(entity, { ...found, class: "open", status: "RUNNING" });
        return known.get(entity) ?? null;
      },
    };
  }),
  onQueries("headers are not told apart by class", (queries) => ({
    headers: (query) => queries.headers(without(query, "class")),
  })),
  onQueries("headers are not told apart by workflow", (queries) => ({
    headers: (query) => queries.headers(without(query, "workflow")),
  })),
  onQueries("a filter is applied to the page, not to the list", (queries) => ({
    headers: async ({ class: wanted, workflow, ...query }) => {
      const page = await queries.headers(query);
      const fits = (header: Header): boolean =>
        (wanted === undefined || header.class === wanted) &&
        (workflow === undefined || header.workflow.startsWith(workflow));
      const items = page.items.filter(fits);
      return { items, cursor: items.length === 0 ? null : page.cursor };
    },
  })),
  onQueries("class or workflow is enough", (queries) => ({
    headers: ({ class: wanted, ...query }) =>
      queries.headers(query.workflow === undefined && wanted !== undefined ? { ...query, class: wanted } : query),
  })),
  onBatch("the first header of an entity stays", (batch, store) => ({
    ...batch,
    headers: batch.headers.filter(({ entity }) => !store.data.headers.has(entity)),
  })),
  onBatch("a header written again is new", (batch, store) => ({
    ...batch,
    headers: batch.headers.map((header) =>
      store.data.headers.has(header.entity) ? { ...header, createdAtMs: header.createdAtMs + 1000 } : header,
    ),
  })),
  onBatch("headers lose what only some have", (batch) => ({
    ...batch,
    headers: batch.headers.map((header) => ({ ...header, tenant: "default", endedAtMs: null })),
  })),
  onQueries("dead letters come oldest first", (queries) => ({
    deadLetters: async ({ cursor, limit }) => byOffset((await allLetters(queries)).toReversed(), cursor, limit),
  })),
  onQueries("dead letters have no limit", (queries) => ({
    deadLetters: (query) => queries.deadLetters({ ...query, limit: 10_000 }),
  })),
  onQueries("dead letters of one time are one place", (queries) => ({
    deadLetters: async ({ cursor, limit }) => {
      const rest = (await allLetters(queries)).filter(({ atMs }) => cursor === undefined || atMs < Number(cursor));
      const items = rest.slice(0, limit);
      return { items, cursor: rest.length > items.length ? String(items.at(-1)?.atMs) : null };
    },
  })),
  ...(["queue", "class", "entity"] as const).map((filter) =>
    onQueries(`dead letters are not told apart by ${filter}`, (queries) => ({
      deadLetters: (query) => {
        const rest = { ...query };
        delete rest[filter];
        return queries.deadLetters(rest);
      },
    })),
  ),
  onQueries("a filter is applied to the page of dead letters, not to the list", (queries) => ({
    deadLetters: async ({ queue, class: wanted, entity, ...query }) => {
      const page = await queries.deadLetters(query);
      const items = page.items.filter(
        (letter) =>
          letter.queue === (queue ?? letter.queue) &&
          letter.class === (wanted ?? letter.class) &&
          letter.entity === (entity ?? letter.entity),
      );
      return { items, cursor: items.length === 0 ? null : page.cursor };
    },
  })),
  onQueries("a dead letter is found by what its id begins with", (queries) => ({
    deadLetter: async (id) =>
      (await allLetters(queries)).find((letter) => letter.id.startsWith(id[0]!)) ?? queries.deadLetter("b"),
  })),
  onBatch("the first dead letter of an id stays", (batch, store) => ({
    ...batch,
    deadLetters: batch.deadLetters.filter(({ id }) => !store.data.deadLetters.has(id)),
  })),
  afterBatch("a dead letter written again is there twice", (batch, outcome, store) => {
    if (outcome.kind !== "committed") return;
    for (const letter of batch.deadLetters) {
      const place = { atMs: letter.atMs, key: letter.id };
      if (letter.text === '"again"') store.data.deadLetterPlaces.push([place]);
    }
  }),
  onBatch("a commit discards its first dead letter only", (batch) => ({
    ...batch,
    discard: batch.discard.slice(0, 1),
  })),
  onBatch("a commit discards all dead letters", (batch, store) => ({
    ...batch,
    discard: batch.discard.length > 0 ? [...store.data.deadLetters.keys()] : [],
  })),
  onBatch("what is discarded with a batch is not written by it", (batch) => ({
    ...batch,
    deadLetters: batch.deadLetters.filter(({ id }) => !batch.discard.includes(id)),
  })),
  onBatch("what a batch writes it does not discard", (batch) => ({
    ...batch,
    discard: batch.deadLetters.length > 0 ? [] : batch.discard,
  })),
  mutant("a dead letter that was discarded does not come back", (store) => {
    const gone = new Set<string>();
    return {
      journal: bent<MemoryStore["journal"]>(store.journal, {
        commit: async (batches) => {
          const deadLetters = batches.map((batch) => batch.deadLetters.filter(({ id }) => !gone.has(id)));
          const outcomes = await store.journal.commit(
            batches.map((batch, i) => ({ ...batch, deadLetters: deadLetters[i]! })),
          );
          for (const { discard, deadLetters } of batches) {
            for (const id of discard) if (!deadLetters.some((letter) => letter.id === id)) gone.add(id);
          }
          return outcomes;
        },
      }),
    };
  }),
  onBatch("every dead letter is exhausted", (batch) => ({
    ...batch,
    deadLetters: batch.deadLetters.map((letter) => ({ ...letter, class: "exhausted" })),
  })),
  onCounts("what has ended is counted as open", ({ ended, open }) => ({ open: open! + ended! })),
  onCounts("a full store says nothing of it", () => ({ isFull: false })),
  onCounts("a store is always full", () => ({ isFull: true })),
  onCounts("messages are not counted", () => ({ inbox: 0 })),
  onCounts("queued tasks are counted over all queues", ({ queued }) => ({
    queued: Object.fromEntries(
      Object.keys(queued).map((name) => [name, Object.values(queued).reduce((sum, count) => sum + count, 0)]),
    ),
  })),
  onCounts("leased tasks are not counted", () => ({ leased: 0 })),
  onCounts("leased tasks are counted as queued", ({ queued, leased }) => ({
    queued: { ...queued, queue: (queued["queue"] ?? 0) + leased },
  })),
  onCounts("dead letters are not counted", () => ({ deadLetters: 0 })),
  onCounts("an empty store has one of everything", (counts) => ({ inbox: counts.inbox || 1 })),
];

export const recordAndQueryMutants: readonly Mutant[] = [...recordMutants, ...queryMutants];
