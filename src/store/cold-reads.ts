import { DEFINITION_SCOPE, partitionOf } from "../core/entity.ts";
import { LABEL_LISTS } from "../core/execution/label-listing.ts";
import { EXAMPLES } from "../core/execution/review-listing.ts";
import type { Archive } from "./archive.ts";
import type {
  DeadLetter,
  DeadLetterQuery,
  EntityKey,
  Header,
  HeaderQuery,
  Journal,
  Listed,
  ListingQuery,
  Loaded,
  Page,
  PageQuery,
  Queries,
  Records,
  Store,
} from "./contract.ts";
import { pageOf, type PlaceInTime } from "./page.ts";
import { ArchiveAway } from "./store-error.ts";

/**
 * The same store for whoever only reads: what it does not have is looked for in the archive. Something is removed from
 * the store only when all of it is in the archive, so between the two it is never nowhere.
 */
export function withArchive(store: Store, archive: Archive): Store {
  return {
    capabilities: store.capabilities,
    partitions: store.partitions,
    inbox: store.inbox,
    journal: journalOf(store.journal, archive),
    tasks: store.tasks,
    records: recordsOf(store.records, archive),
    queries: queriesOf(store, archive),
    close: () => store.close(),
  };
}

function journalOf(journal: Journal, archive: Archive): Journal {
  return {
    commit: (batches) => journal.commit(batches),
    due: (...args) => journal.due(...args),
    load: async (requests) => {
      const hot = await journal.load(requests);
      // With nothing above a version there may still be something below it.
      const missing = hot
        .map((loaded, i) => ({ loaded, request: requests[i]! }))
        .filter(({ loaded }) => isNothing(loaded));
      if (missing.length === 0) return hot;
      const versions = await Promise.all(
        missing.map(({ request }) => journal.watch(request.partition, request.entity, 0, 0)),
      );
      const gone = missing.filter((_, i) => versions[i] === 0);
      if (gone.length === 0) return hot;
      const cold = await asked(archive.journal.load(gone.map(({ request }) => request)));
      const found = new Map(gone.map(({ loaded }, i) => [loaded, cold[i]!]));
      return hot.map((loaded) => found.get(loaded) ?? loaded);
    },
    watch: async (partition, entity, aboveVersion, waitMs, options) => {
      const hot = await journal.watch(partition, entity, aboveVersion, 0);
      if (hot > aboveVersion) return hot;
      if (hot === 0) {
        const tip = (await asked(archive.tips([entity]))).get(entity);
        // Nobody goes on with it there: there is nothing to wait for.
        if (tip !== undefined) return tip.version;
      }
      return journal.watch(partition, entity, aboveVersion, waitMs, options);
    },
  };
}

/** How long an archive may take: not so long that the store would be blamed for it. */
const PATIENCE_MS = 5_000;

/** Whoever asked is told which of the two does not answer. */
async function asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (cause) {
    throw new ArchiveAway(cause);
  } finally {
    clearTimeout(timer);
  }
}

function isNothing({ records, snapshot }: Loaded): boolean {
  return records.length === 0 && snapshot === null;
}

function recordsOf(records: Records, archive: Archive): Records {
  return {
    put: (...args) => records.put(...args),
    get: async (keys) => {
      const hot = await records.get(keys);
      const missing = keys.filter(({ scope }, i) => hot[i] === null && isShipped(scope));
      if (missing.length === 0) return hot;
      const cold = await asked(archive.records.get(missing));
      const found = new Map(missing.map((key, i) => [key, cold[i] ?? null]));
      return keys.map((key, i) => hot[i] ?? found.get(key) ?? null);
    },
    publish: (...args) => records.publish(...args),
    published: (...args) => records.published(...args),
    versions: (name) => records.versions(name),
    unpublish: (name) => records.unpublish(name),
    register: (...args) => records.register(...args),
    registered: () => records.registered(),
  };
}

/** Keys, signatures and the like are the store's alone. */
function isShipped(scope: string): boolean {
  return scope === DEFINITION_SCOPE || scope.startsWith("execution/");
}

function queriesOf({ queries, capabilities }: Store, archive: Archive): Queries {
  const { queries: cold } = archive;
  const isOurs = async ({ entity }: { readonly entity: EntityKey }): Promise<boolean> =>
    (await queries.header(partitionOf(entity, capabilities.partitionCount), entity)) !== null;
  return {
    header: async (partition, entity) =>
      (await queries.header(partition, entity)) ?? (await asked(cold.header(partition, entity))),
    headers: (query) =>
      merged<Header, HeaderQuery>(query, {
        hot: (part) => queries.headers(part),
        cold: (part) => cold.headers(part),
        place: ({ createdAtMs, entity }) => ({ atMs: createdAtMs, key: entity }),
        // What the store has, it knows better: there it may be in another class by now.
        isOurs,
        // What is open has not left the store.
        isNeeded: query.class !== "open",
      }),
    deadLetter: async (id) => {
      const hot = await queries.deadLetter(id);
      if (hot !== null) return hot;
      const letter = await asked(cold.deadLetter(id));
      return letter === null || (await isOurs(letter)) ? null : letter;
    },
    deadLetters: (query) =>
      merged<DeadLetter, DeadLetterQuery>(query, {
        hot: (part) => queries.deadLetters(part),
        cold: (part) => cold.deadLetters(part),
        place: ({ atMs, id }) => ({ atMs, key: id }),
        isOurs,
        isNeeded: true,
      }),
    listing: (query) =>
      query.list.startsWith(LABEL_LISTS) || query.list === EXAMPLES
        ? merged<Listed, ListingQuery>(query, {
            hot: (part) => queries.listing(part),
            cold: (part) => cold.listing(part),
            place: ({ atMs, id }) => ({ atMs, key: id }),
            isOurs: async ({ list, id }) => (await queries.listed(list, id)) !== null,
            isNeeded: true,
          })
        : queries.listing(query),
    listed: (...args) => queries.listed(...args),
    workflows: (query) => queries.workflows(query),
    counts: () => queries.counts(),
  };
}

interface Sides<Item, Query> {
  readonly hot: (query: Query) => Promise<Page<Item>>;
  readonly cold: (query: Query) => Promise<Page<Item>>;
  readonly place: (item: Item) => PlaceInTime;
  /** Whether the store itself has what an item of the archive is about. */
  readonly isOurs: (item: Item) => Promise<boolean>;
  /** Whether the list may lack some without the archive. */
  readonly isNeeded: boolean;
}

const ARCHIVE_AWAY = { items: [], cursor: null, incomplete: "archive_unavailable" } as const satisfies Page<never>;

/** Both lists as one, newest first. They name places in the same way, so one cursor serves for both. */
async function merged<Item, Query extends PageQuery>(query: Query, sides: Sides<Item, Query>): Promise<Page<Item>> {
  const { limit } = query;
  // The archive first: what is removed from the store between the two is then in both, and not in neither. A list that
  // is not whole is of more use than none, as long as it says so.
  const cold = await asked(sides.cold(query)).catch((): Page<Item> => ARCHIVE_AWAY);
  const hot = await sides.hot(query);
  const ours = new Set(hot.items.map((item) => nameOf(sides.place(item))));
  const others = cold.items.filter((item) => !ours.has(nameOf(sides.place(item))));
  const isOurs = await Promise.all(others.map((item) => sides.isOurs(item)));
  const found = [...hot.items, ...others.filter((_, i) => !isOurs[i])].sort((a, b) =>
    compare(sides.place(b), sides.place(a)),
  );
  // Beyond the end of a list that has more to come, the other list may not be shown: it would be out of order.
  const ends = [hot, cold].flatMap(({ cursor, items }) => (cursor === null ? [] : [sides.place(items.at(-1)!)]));
  const within = found.filter((item) => ends.every((end) => compare(sides.place(item), end) >= 0));
  const gap = cold === ARCHIVE_AWAY && sides.isNeeded ? { incomplete: ARCHIVE_AWAY.incomplete } : {};
  if (within.length > limit) return { ...pageOf(within, limit, sides.place), ...gap };
  const next = ends.toSorted((a, b) => compare(b, a))[0];
  return { items: within, cursor: next === undefined ? null : nameOf(next), ...gap };
}

function nameOf({ atMs, key }: PlaceInTime): string {
  return `${atMs}/${key}`;
}

/** By the bytes of the names, as the stores do. */
function compare(a: PlaceInTime, b: PlaceInTime): number {
  return a.atMs - b.atMs || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key));
}
